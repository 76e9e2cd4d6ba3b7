import { once } from 'node:events';
import { connect } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import type { UnaryHandler } from '../src/call.ts';
import { ClientBuffers } from '../src/client-buffers.ts';
import { ErrorCode, Flag, FrameType, frame, numberFrame, Setting, settingsFrame } from '../src/frames.ts';
import { HpackDecoder } from '../src/hpack/decoder.ts';
import { encodeHeaders } from '../src/hpack/encoder.ts';
import type { Limits } from '../src/limits.ts';
import { type ConnectionTimes, GrpcServer, jitterAge } from '../src/server.ts';
import { Code } from '../src/status.ts';
import { headersFrame, RawClient } from './support/raw-client.ts';

const echo = '/test.Echo/Call';

async function start(
  t: Test,
  limits: Partial<Limits> = {},
  {
    handler = (message) => message,
    times = {},
    buffers,
  }: { handler?: UnaryHandler; times?: Partial<ConnectionTimes>; buffers?: ClientBuffers } = {},
) {
  const violations: string[] = [];
  const server = new GrpcServer({
    methods: { unary: { [echo]: handler } },
    limits,
    times,
    buffers,
    onViolation: (_code, reason) => violations.push(reason),
  });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.drain(AbortSignal.abort()));
  const open = (settings?: readonly (readonly [number, number])[]) => {
    const raw = new RawClient(port);
    t.teardown(() => raw.socket.destroy());
    raw.open(settings);
    return raw;
  };
  return { server, port, open, violations };
}

const empty = Buffer.alloc(0);
const floods: Record<string, (count: number) => Uint8Array[]> = {
  PING: (count) => Array.from({ length: count }, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))),
  SETTINGS: (count) => Array.from({ length: count }, () => settingsFrame([])),
  PRIORITY: (count) => Array.from({ length: count }, () => frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(5))),
  WINDOW_UPDATE: (count) => Array.from({ length: count }, () => numberFrame(FrameType.WINDOW_UPDATE, 0, 1)),
  'unknown frame': (count) => Array.from({ length: count }, () => frame(0xfe, 0, 0, empty)),
  'empty DATA': (count) => [
    headersFrame(1),
    ...Array.from({ length: count }, () => frame(FrameType.DATA, 0, 1, empty)),
  ],
  'rapid reset': (count) =>
    Array.from({ length: count }, (_, index) =>
      Buffer.concat([
        headersFrame(2 * index + 1),
        numberFrame(FrameType.RST_STREAM, 2 * index + 1, ErrorCode.CANCEL),
      ]),
    ),
  'malformed requests': (count) =>
    Array.from({ length: count }, (_, index) =>
      frame(FrameType.HEADERS, 5, 2 * index + 1, encodeHeaders([[':method', 'POST']])),
    ),
};

for (const [name, make] of Object.entries(floods)) {
  t.test(`a flood of ${name} ends the connection`, async (t) => {
    const { open, violations } = await start(t, { overheadBurst: 100, overheadPerSecond: 0 });
    const raw = open();
    raw.send(...make(90));
    raw.call(1_000_001, echo);
    t.ok(
      await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 1_000_001),
      'below',
    );
    const flood = open();
    flood.send(...make(150));
    t.equal(await flood.goaway(), ErrorCode.ENHANCE_YOUR_CALM);
    await flood.end();
    t.match(violations, ['too many frames without a request']);
  });
}

t.test('completed calls refill the overhead budget', async (t) => {
  const { open } = await start(t, { overheadBurst: 20, overheadPerSecond: 0, overheadPerCall: 4 });
  const raw = open();
  for (let index = 0; index < 100; index++) {
    raw.call(2 * index + 1, echo);
    for (let pings = 0; pings < 3; pings++) raw.send(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
  }
  t.ok(await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 199));
});

t.test('header blocks are limited in frames and bytes', async (t) => {
  const { open } = await start(t, { maxContinuationFrames: 4 });
  const continued = (count: number, payload: Buffer) =>
    Array.from({ length: count }, () => frame(FrameType.CONTINUATION, 0, 1, payload));
  const many = open();
  many.send(headersFrame(1, { flags: 0 }), ...continued(5, empty));
  t.equal(await many.goaway(), ErrorCode.ENHANCE_YOUR_CALM, 'empty CONTINUATION frames');
  const large = open();
  large.send(headersFrame(1, { flags: 0 }), ...continued(4, Buffer.alloc(16_384)));
  t.equal(await large.goaway(), ErrorCode.ENHANCE_YOUR_CALM, 'large CONTINUATION frames');
});

t.test('streams beyond the limit are refused, others continue', async (t) => {
  const replies: (() => void)[] = [];
  const handler: UnaryHandler = (message) => new Promise((resolve) => replies.push(() => resolve(message)));
  const { open } = await start(t, { maxConcurrentStreams: 3 }, { handler });
  const raw = open();
  for (const id of [1, 3, 5, 7]) raw.call(id, echo);
  const refused = await raw.receive(({ type }) => type === FrameType.RST_STREAM);
  t.equal(refused?.streamId, 7);
  t.equal(refused?.payload.readUInt32BE(), ErrorCode.REFUSED_STREAM);
  for (const reply of replies) reply();
  t.ok(await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 5));
});

t.test('resets do not start more handlers than there may be streams', async (t) => {
  let running = 0;
  const replies: (() => void)[] = [];
  const handler: UnaryHandler = (message) => {
    running++;
    return new Promise((resolve) => replies.push(() => resolve(message)));
  };
  const { open, server } = await start(t, { maxConcurrentStreams: 3 }, { handler });
  const cancel = (id: number) => numberFrame(FrameType.RST_STREAM, id, ErrorCode.CANCEL);
  // The server resets a stream on which a frame follows END_STREAM.
  const provoke = (id: number) => frame(FrameType.DATA, 0, id, empty);
  for (const end of [cancel, provoke]) {
    running = 0;
    replies.length = 0;
    const raw = open();
    for (let id = 1; id < 40; id += 2) {
      raw.call(id, echo);
      raw.send(end(id));
    }
    await raw.receive(({ type, streamId }) => type === FrameType.RST_STREAM && streamId === 39);
    t.equal(running, 3);
    t.equal(server.callCount, 0);
    for (const reply of replies.splice(0)) reply();
    raw.call(41, echo);
    await awaitUntil(() => replies.length === 1, { what: 'the next call to be handled' });
    replies.pop()?.();
    t.ok(await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 41));
  }
});

t.test('frames on streams that have ended are limited', async (t) => {
  const { open } = await start(t, { overheadBurst: 50, overheadPerSecond: 0 });
  const raw = open();
  raw.call(1, echo);
  for (let count = 0; count < 100; count++) raw.send(frame(FrameType.DATA, 0, 1, Buffer.alloc(1)));
  t.equal(await raw.goaway(), ErrorCode.ENHANCE_YOUR_CALM);
});

t.test('a message may arrive in frames of one byte', async (t) => {
  const { open } = await start(t);
  const raw = open();
  const message = Buffer.from(Array.from({ length: 2_000 }, (_, index) => index % 256));
  const body = Buffer.concat([Buffer.from([0, 0, 0, 7, 208]), message]);
  raw.send(
    headersFrame(1),
    ...Array.from(body, (_, at) => frame(FrameType.DATA, 0, 1, body.subarray(at, at + 1))),
  );
  raw.send(frame(FrameType.DATA, Flag.END_STREAM, 1, empty));
  const reply = await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 1);
  t.ok(reply?.payload.subarray(5).equals(message));
});

t.test('a client that grants no window is disconnected, by bytes and by time', async (t) => {
  const handler: UnaryHandler = () => Buffer.alloc(1_000);
  const none = [[Setting.INITIAL_WINDOW_SIZE, 0]] as const;
  // A connection may hold an eighth.
  const buffers = new ClientBuffers({ maxBytes: 80_000 });
  const large = await start(t, {}, { handler, buffers });
  const greedy = large.open(none);
  for (let id = 1; id < 40; id += 2) greedy.call(id, echo);
  t.equal(await greedy.goaway(), ErrorCode.ENHANCE_YOUR_CALM);

  const slow = await start(t, { writeStallTimeoutMs: 200 }, { handler });
  const raw = slow.open(none);
  raw.call(1, echo);
  // Replies to PING are no progress.
  const pings = setInterval(() => raw.send(frame(FrameType.PING, 0, 0, Buffer.alloc(8))), 10);
  await raw.end();
  clearInterval(pings);
  await awaitUntil(() => slow.server.connectionCount === 0, { what: 'the connection is forgotten' });
});

/** A message of these bytes without its end. */
function beginMessage(streamId: number, bytes: number): Buffer[] {
  const body = Buffer.alloc(bytes);
  body.writeUInt32BE(1_000_000, 1);
  return [headersFrame(streamId), ...cutIntoFrames(streamId, body)];
}

function cutIntoFrames(streamId: number, body: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at < body.length; at += 16_384)
    frames.push(frame(FrameType.DATA, 0, streamId, body.subarray(at, at + 16_384)));
  return frames;
}

async function getGrpcStatus(raw: RawClient, streamId: number): Promise<string | undefined> {
  const headers = await raw.receive((one) => one.type === FrameType.HEADERS && one.streamId === streamId);
  const fields = headers && new HpackDecoder(16_384).decode(headers.payload);
  return fields?.find(([name]) => name === 'grpc-status')?.[1];
}

t.test('a connection that holds more than its share loses its largest incomplete request', async (t) => {
  const shed: string[] = [];
  const buffers = new ClientBuffers({
    maxBytes: 8 * 200_000,
    onShed: ({ protocol, address }) => shed.push(`${protocol} ${address}`),
  });
  const { open } = await start(t, {}, { buffers });
  const raw = open();
  raw.send(...beginMessage(1, 20_000), ...beginMessage(3, 150_000));
  raw.send(...beginMessage(5, 60_000));
  t.equal(await getGrpcStatus(raw, 3), String(Code.RESOURCE_EXHAUSTED));
  t.same(shed, ['grpc 127.0.0.1']);
  t.ok(buffers.bytes > 80_000 && buffers.bytes <= 200_000, `${buffers.bytes} bytes are held`);
  raw.send(numberFrame(FrameType.RST_STREAM, 1, ErrorCode.CANCEL));
  raw.call(7, echo);
  t.ok(await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 7));
  raw.socket.destroy();
  await awaitUntil(() => buffers.bytes === 0, { what: 'what was held is freed' });
});

t.test('the memory of streams, headers, header blocks and frames counts', async (t) => {
  const buffers = new ClientBuffers();
  const { open } = await start(t, {}, { buffers });
  const parts: Record<string, [bytes: number, ...frames: Uint8Array[]]> = {
    'ten streams': [10_000, ...Array.from({ length: 10 }, (_, index) => headersFrame(2 * index + 1))],
    headers: [15_000, headersFrame(1, { extra: [['x', 'y'.repeat(15_000)]] })],
    'a header block': [10_000, frame(FrameType.HEADERS, 0, 1, Buffer.alloc(10_000))],
    'a frame': [16_000, frame(FrameType.DATA, 0, 1, Buffer.alloc(16_000)).subarray(0, 20)],
  };
  for (const [name, [bytes, ...frames]] of Object.entries(parts)) {
    const raw = open();
    raw.send(...frames);
    await awaitUntil(() => buffers.bytes >= bytes, { what: name });
    raw.socket.destroy();
    await awaitUntil(() => buffers.bytes === 0, { what: `${name} to be freed` });
    t.pass(name);
  }
});

t.test('the windows grow while a large message arrives', async (t) => {
  const { open } = await start(t);
  const raw = open();
  const body = Buffer.alloc(500_005);
  body.writeUInt32BE(500_000, 1);
  const window = { connection: 65_535, stream: 65_535, seen: 0 };
  const readUpdates = (): void => {
    for (; window.seen < raw.frames.length; window.seen += 1) {
      const received = raw.frames[window.seen];
      if (received?.type !== FrameType.WINDOW_UPDATE) continue;
      if (received.streamId === 0) window.connection += received.payload.readUInt32BE();
      else window.stream += received.payload.readUInt32BE();
    }
  };
  raw.send(headersFrame(1));
  for (const part of cutIntoFrames(1, body)) {
    const bytes = part.length - 9;
    await awaitUntil(() => (readUpdates(), Math.min(window.connection, window.stream) >= bytes), {
      what: 'both windows let the frame pass',
    });
    window.connection -= bytes;
    window.stream -= bytes;
    raw.send(part);
  }
  raw.send(frame(FrameType.DATA, Flag.END_STREAM, 1, empty));
  t.ok(await raw.receive(({ type, streamId }) => type === FrameType.DATA && streamId === 1));
});

t.test('requests release the window of the connection', async (t) => {
  const { open } = await start(t);
  const raw = open();
  // 12 × 16 KiB through a window of 64 KiB.
  for (let id = 1; id < 25; id += 2) {
    raw.call(id, echo, Buffer.alloc(16_000));
    await raw.receive(({ type, streamId }) => type === FrameType.HEADERS && streamId === id);
    raw.send(numberFrame(FrameType.WINDOW_UPDATE, 0, 16_005));
  }
  t.ok(raw.frames.some(({ type }) => type === FrameType.WINDOW_UPDATE));
  t.notOk(raw.closed);
});

t.test('a request that does not complete is reset', async (t) => {
  const { open } = await start(t, { requestTimeoutMs: 50 });
  const raw = open();
  raw.send(headersFrame(1));
  const reset = await raw.receive(({ type }) => type === FrameType.RST_STREAM);
  t.equal(reset?.payload.readUInt32BE(), ErrorCode.CANCEL);
});

t.test('a connection without a preface is closed', async (t) => {
  const { port, server } = await start(t, { prefaceTimeoutMs: 50 });
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('PRI * HT');
  socket.resume();
  await once(socket, 'close');
  await awaitUntil(() => server.connectionCount === 0, { what: 'the connection is forgotten' });
});

t.test('HTTP/1.1 and TLS on a plaintext port end at once', async (t) => {
  const { port, violations } = await start(t);
  for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.from([22, 3, 1, 0, 200])]) {
    const socket = connect(port, '127.0.0.1');
    socket.end(bytes);
    socket.resume();
    await once(socket, 'close');
  }
  t.match(violations, [/preface/, /preface/]);
});

t.test('at the limit of connections, the one idle for the longest time is closed', async (t) => {
  const handler: UnaryHandler = () => new Promise(() => undefined);
  const { open, server } = await start(t, { maxConnections: 3 }, { handler });
  const settled = async () => {
    const raw = open();
    await raw.receive(({ type }) => type === FrameType.SETTINGS);
    return raw;
  };
  const busy = await settled();
  busy.call(1, echo);
  await awaitUntil(() => server.callCount === 1, { what: 'the call has started' });
  const idle = await settled();
  const active = await settled();
  active.send(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
  await active.receive(({ type }) => type === FrameType.PING);
  const next = await settled();
  await idle.end();
  t.notOk(busy.closed || active.closed || next.closed);
  t.equal(server.connectionCount, 3);
});

t.test('a client that does not read is paused, then closed', async (t) => {
  const handler: UnaryHandler = () => Buffer.alloc(16_000);
  const { open, server } = await start(
    t,
    { maxWriteBufferBytes: 100_000, writeStallTimeoutMs: 300, maxConcurrentStreams: 10_000 },
    { handler },
  );
  const raw = open([[Setting.INITIAL_WINDOW_SIZE, 1_000_000]]);
  raw.send(numberFrame(FrameType.WINDOW_UPDATE, 0, 0x7000_0000));
  await raw.receive(({ type, flags }) => type === FrameType.SETTINGS && (flags & Flag.ACK) !== 0);
  raw.socket.pause();
  const before = process.memoryUsage().rss;
  let stopped = false;
  raw.socket.once('close', () => {
    stopped = true;
  });
  for (let id = 1; id < 20_000 && !stopped; id += 2) {
    raw.call(id, echo);
    if (id % 200 === 1) await new Promise((resolve) => setImmediate(resolve));
  }
  await awaitUntil(() => server.connectionCount === 0, { what: 'the connection has been cut' });
  t.ok(process.memoryUsage().rss - before < 200_000_000, 'replies of 160 MB were not kept');
});

t.test('a connection without a keepalive response is closed, others are not', async (t) => {
  const { open, server } = await start(t, {}, { times: { keepaliveMs: 200 } });
  const silent = open();
  await silent.end();
  const alive = open();
  await alive.receive(({ type, flags }) => type === FrameType.PING && flags === 0);
  alive.send(frame(FrameType.PING, Flag.ACK, 0, Buffer.from('tg-alive')));
  alive.frames.length = 0;
  await alive.receive(({ type, flags }) => type === FrameType.PING && flags === 0);
  t.equal(server.connectionCount, 1);
});

/** Keeps the event loop from running, as a busy machine does. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

t.test('a server that was stalled grants clients their GOAWAY and their grace period', async (t) => {
  const handler: UnaryHandler = () => new Promise(() => undefined);
  const { open, server } = await start(t, {}, { handler, times: { maxAgeMs: 100, maxAgeGraceMs: 100 } });
  const fresh = open();
  await awaitUntil(() => server.connectionCount === 1, { what: 'the connection is accepted', everyMs: 0 });
  stall(400);
  t.equal(await fresh.goaway(), ErrorCode.NO_ERROR);
  await fresh.end();
  const busy = open();
  busy.call(1, echo);
  await awaitUntil(() => server.callCount === 1, { what: 'the call has started', everyMs: 0 });
  stall(400);
  t.equal(await busy.goaway(), ErrorCode.NO_ERROR);
  await busy.end();
});

t.test('the maximum age varies by a tenth, and 0 means none', async (t) => {
  t.equal(jitterAge(1_000, 0), 900);
  t.equal(Math.round(jitterAge(1_000, 0.999_999)), 1_100);
  t.equal(jitterAge(0, 0.5), Number.POSITIVE_INFINITY);
});

t.test('a connection of maximum age is drained, and closed after the grace period', async (t) => {
  const handler: UnaryHandler = () => new Promise(() => undefined);
  const { open } = await start(t, {}, { handler, times: { maxAgeMs: 100, maxAgeGraceMs: 100 } });
  const idle = open();
  t.equal(await idle.goaway(), ErrorCode.NO_ERROR);
  await idle.end();
  const busy = open();
  busy.call(1, echo);
  t.equal(await busy.goaway(), ErrorCode.NO_ERROR);
  await busy.end();
});
