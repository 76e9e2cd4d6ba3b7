import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
} from 'node:http2';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import type { Test } from 'tap';
import t from 'tap';
import { maxRequestBytes, requestBudget } from '../../src/ads/limits.ts';
import { RequestBudget } from '../../src/ads/stream.ts';
import { type SotwTestStream, typeUrl } from '../support/ads-client.ts';
import { type StartedAdsServer, startAdsServer } from '../support/start-ads-server.ts';
import { combined, largeSnapshot, testSnapshot } from '../support/test-snapshot.ts';

/**
 * Starts a server, violates the protocol on one stream, and checks that another one continues.
 */
async function endsAlone(
  t: Test,
  doWrong: (stream: SotwTestStream) => void,
): Promise<{ readonly code: number; readonly details: string; readonly reason: unknown }> {
  const { connect, snapshots, metrics } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const client = connect();
  const beside = client.sotw();
  beside.send();
  beside.ack(await beside.next());
  const stream = client.sotw();
  doWrong(stream);
  const end = await stream.ended;
  snapshots.set(testSnapshot({ shop: 2 }));
  await beside.next();
  const reason = (await metrics.refusedStreams.get()).values[0]?.labels.reason;
  return { ...end, reason };
}

/** An HTTP/2 connection whose client does not read, with a small window. */
async function openUnread(t: Test, port: number): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 1_000 } });
  session.on('error', () => undefined);
  t.teardown(() => session.destroy());
  await once(session, 'remoteSettings');
  return session;
}

/** A request as gRPC frames it. */
function framed(request: MessageInitShape<typeof DiscoveryRequestSchema>): Buffer {
  const message = toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, request));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const adsHeaders = {
  ':method': 'POST',
  ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  'content-type': 'application/grpc',
  te: 'trailers',
};

/** Subscribes on such a connection. */
function subscribeUnread(session: ClientHttp2Session): ClientHttp2Stream {
  const stream = session.request(adsHeaders);
  stream.on('error', () => undefined);
  stream.write(framed({ typeUrl }));
  return stream;
}

/** Reads one response, acknowledges it, and reads no more. */
async function readAndAck(stream: ClientHttp2Stream): Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  const length = () => (bytes.length < 5 ? Number.POSITIVE_INFINITY : 5 + bytes.readUInt32BE(1));
  stream.on('data', (more: Buffer) => {
    bytes = Buffer.concat([bytes, more]);
  });
  stream.resume();
  await awaitUntil(() => bytes.length >= length(), { what: 'a response' });
  stream.removeAllListeners('data').pause();
  const frame = bytes.subarray(0, length());
  // The next response may have begun.
  stream.unshift(bytes.subarray(frame.length));
  const { nonce } = fromBinary(DiscoveryResponseSchema, frame.subarray(5));
  stream.write(framed({ typeUrl, responseNonce: nonce }));
  return frame;
}

async function openStreams({ metrics }: StartedAdsServer): Promise<number> {
  return (await metrics.streams.get()).values.reduce((sum, { value }) => sum + value, 0);
}

t.test('bytes that are not a request end their stream', async (t) => {
  for (const bytes of [Uint8Array.of(0xff), Uint8Array.of(0x12, 0x7f), new Uint8Array(1_000).fill(0x0a)]) {
    t.match(await endsAlone(t, (stream) => stream.sendBytes(bytes)), {
      code: status.INVALID_ARGUMENT,
      details: 'the request is not a discovery request',
      reason: 'malformed',
    });
  }
});

t.test('request larger than two megabytes ends its stream', async (t) => {
  const end = await endsAlone(t, (stream) => stream.sendBytes(new Uint8Array(maxRequestBytes + 1)));
  t.equal(end.code, status.RESOURCE_EXHAUSTED);
});

t.test('deeply nested node ends only its stream', async (t) => {
  // DiscoveryRequest.node.metadata, a Struct of a Struct of a Struct …, written from the inside
  // out.
  const heads: Buffer[] = [];
  let size = 0;
  const wrap = (key: number): void => {
    const head = [key];
    let rest = size;
    for (; rest >= 0x80; rest >>>= 7) head.push((rest & 0x7f) | 0x80);
    head.push(rest);
    heads.unshift(Buffer.from(head));
    size += head.length;
  };
  for (let depth = 0; depth < 20_000; depth += 1) {
    for (const key of [0x2a, 0x12, 0x0a]) wrap(key);
  }
  for (const key of [0x1a, 0x12]) wrap(key);
  const bytes = Buffer.concat(heads);
  t.match(await endsAlone(t, (stream) => stream.sendBytes(bytes)), {
    code: status.INVALID_ARGUMENT,
    reason: 'malformed',
  });
});

t.test('flood of requests ends its stream', async (t) => {
  const end = await endsAlone(t, (stream) => {
    for (let count = 0; count <= requestBudget.burst; count += 1) stream.send({ responseNonce: 'stale' });
  });
  t.match(end, { code: status.RESOURCE_EXHAUSTED, reason: 'flood' });
});

t.test('too many types, names or characters end their stream', async (t) => {
  const manyTypes = await endsAlone(t, (stream) => {
    for (let count = 0; count <= 32; count += 1)
      stream.send({ typeUrl: `type.googleapis.com/type.${count}` });
  });
  t.match(manyTypes, { code: status.INVALID_ARGUMENT, reason: 'too_many_types' });
  const manyNames = Array.from({ length: 16_385 }, (_, index) => `domain-${index}`);
  for (const resourceNames of [manyNames, ['x'.repeat(513)]]) {
    const end = await endsAlone(t, (stream) => stream.send({ resourceNames }));
    t.match(end, {
      code: status.INVALID_ARGUMENT,
      details: /at most 16384 .* 512/,
      reason: 'too_many_names',
    });
  }
});

t.test('names that a delta client adds over several requests are bounded', async (t) => {
  const { connect } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const stream = connect().delta();
  for (let round = 0; round < 3; round += 1) {
    const resourceNamesSubscribe = Array.from({ length: 8_000 }, (_, index) => `domain-${round}-${index}`);
    stream.send({ resourceNamesSubscribe });
  }
  t.match(await stream.ended, { code: status.INVALID_ARGUMENT, details: /at most 16384 resource names/ });
});

t.test('client that does not read is cut and delays no other', async (t) => {
  const server = await startAdsServer(t, {
    snapshot: combined(largeSnapshot(3 * 1024 * 1024), testSnapshot({ shop: 1 })),
    // The reader has as long on a busy machine.
    sendTimeoutMs: 3_000,
  });
  const session = await openUnread(t, server.port);
  t.equal(session.remoteSettings.maxConcurrentStreams, 100);
  const streams = Array.from({ length: 4 }, () => subscribeUnread(session));
  const resets: (number | undefined)[] = [];
  for (const stream of streams) stream.on('close', () => resets.push(stream.rstCode));
  const reader = server.connect().sotw();
  reader.send({ resourceNames: ['shop'] });
  reader.ack(await reader.next(), { resourceNames: ['shop'] });
  await awaitUntil(() => resets.length === streams.length, { what: 'the end of streams that do not read' });
  t.ok(resets.every((code) => code === constants.NGHTTP2_ENHANCE_YOUR_CALM));
  t.match((await server.metrics.refusedStreams.get()).values, [{ labels: { reason: 'slow' }, value: 4 }]);
  t.equal(await openStreams(server), 1);
  t.equal(server.limiters.size, 1);
  t.equal(reader.responses.length, 1);
});

t.test('stream that half-closes or is refused while it does not read is cut', async (t) => {
  const server = await startAdsServer(t, {
    snapshot: largeSnapshot(1024 * 1024),
    sendTimeoutMs: 300,
  });
  const session = await openUnread(t, server.port);
  const [ended, refused] = [subscribeUnread(session), subscribeUnread(session)];
  const resets: (number | undefined)[] = [];
  for (const stream of [ended, refused]) stream.on('close', () => resets.push(stream.rstCode));
  await awaitUntil(async () => (await server.metrics.pushes.get()).values[0]?.value === 2, {
    what: 'a response on each stream',
  });
  ended.end();
  refused.write(framed({ typeUrl: '' }));
  await awaitUntil(() => resets.length === 2, { what: 'the end of both' });
  t.same(resets, [constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_ENHANCE_YOUR_CALM]);
  t.equal(await openStreams(server), 0);
});

t.test('client that does not read gets no further response, then the latest', async (t) => {
  const size = 100_000;
  const { port, snapshots, onlyLimiter, metrics } = await startAdsServer(t, {
    snapshot: largeSnapshot(size),
  });
  const stream = subscribeUnread(await openUnread(t, port));
  await awaitUntil(async () => (await metrics.pushes.get()).values[0]?.value === 1, { what: 'a response' });
  for (let version = 2; version <= 20; version += 1) snapshots.set(largeSnapshot(size, String(version)));
  t.match((await metrics.pushes.get()).values, [{ value: 1 }]);
  t.match((await readAndAck(stream)).toString('latin1'), /v:large=1\D/);
  t.match((await readAndAck(stream)).toString('latin1'), /v:large=20/);
  await awaitUntil(() => onlyLimiter().accepted, { what: 'the ACK' });
  t.match((await metrics.pushes.get()).values, [{ value: 2 }]);
});

t.test('streams that are cancelled, ended or lost are removed', async (t) => {
  const server = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const client = server.connect();
  const [cancelled, ended, silent] = [client.sotw(), client.delta(), client.sotw()];
  for (const stream of [cancelled, ended]) {
    stream.send();
    await stream.next();
  }
  const session = await openUnread(t, server.port);
  subscribeUnread(session);
  await awaitUntil(async () => (await openStreams(server)) === 4, { what: 'four streams' });
  await awaitUntil(() => server.limiters.size === 3, { what: 'three subscriptions' });
  cancelled.cancel();
  ended.end();
  session.destroy();
  await awaitUntil(async () => (await openStreams(server)) === 1, { what: 'the end of three' });
  t.equal(server.limiters.size, 0);
  silent.cancel();
  await awaitUntil(async () => (await openStreams(server)) === 0, { what: 'the end of the last' });
});

/** Streams that subscribe to everything and never read, on several connections. */
async function subscribeManyUnread(t: Test, port: number, count: number): Promise<ClientHttp2Stream[]> {
  const streams: ClientHttp2Stream[] = [];
  while (streams.length < count) {
    const session = await openUnread(t, port);
    session.setMaxListeners(0);
    const more = Math.min(100, count - streams.length);
    streams.push(...Array.from({ length: more }, () => subscribeUnread(session)));
  }
  return streams;
}

t.test('streams share the bytes of a response that their clients do not read', async (t) => {
  const size = 1_000_000;
  const server = await startAdsServer(t, { snapshot: largeSnapshot(size), maxBytesInFlight: 1_000 * size });
  const before = process.memoryUsage().arrayBuffers;
  await subscribeManyUnread(t, server.port, 60);
  await awaitUntil(async () => (await server.metrics.pushes.get()).values[0]?.value === 60, {
    what: 'a response on each stream',
  });
  const grown = process.memoryUsage().arrayBuffers - before;
  t.ok(grown < 10 * size, `${grown} bytes for 60 streams`);
});

t.test('limiter receives its update while hundreds of streams do not read', async (t) => {
  const server = await startAdsServer(t, {
    snapshot: combined(largeSnapshot(100_000), testSnapshot({ shop: 1 })),
    // Capacity for a sixth of the streams, and no stream is cut for being slow.
    maxBytesInFlight: 8 * 600_000,
    sendTimeoutMs: 3_600_000,
    stallMs: 3_600_000,
  });
  const limiter = server.connect().sotw();
  limiter.send();
  limiter.ack(await limiter.next());
  const hostile = await subscribeManyUnread(t, server.port, 260);
  await awaitUntil(() => server.limiters.size === 261, { what: 'all streams' });
  server.snapshots.set(combined(largeSnapshot(100_000, '2'), testSnapshot({ shop: 2 })));
  t.equal((await limiter.next()).resources.length, 2);
  t.ok(hostile.every(({ closed }) => !closed));
  const acknowledged = [...server.limiters.all()].filter(({ accepted }) => accepted !== undefined);
  t.equal(acknowledged.length, 1);
});

t.test('streams that stop reading after an ACK are cut while others wait', async (t) => {
  const size = 100_000;
  const server = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
    maxBytesInFlight: 8 * 300_000,
    sendTimeoutMs: 3_600_000,
    // An honest client on a busy machine reads in that time.
    stallMs: 1_000,
  });
  // Three responses fit at a time.
  const hostile = await subscribeManyUnread(t, server.port, 10);
  for (const stream of hostile) await readAndAck(stream);
  const hasAcks = () => [...server.limiters.all()].filter(({ accepted }) => accepted).length;
  await awaitUntil(() => hasAcks() === hostile.length, { what: 'all ACKs' });
  server.snapshots.set(largeSnapshot(size));
  const limiter = server.connect().sotw();
  limiter.send();
  limiter.ack(await limiter.next());
  server.snapshots.set(largeSnapshot(size, '2'));
  await limiter.next();
  await awaitUntil(() => hostile.filter(({ closed }) => closed).length >= 9, {
    what: 'the stalled streams',
  });
  t.match((await server.metrics.refusedStreams.get()).values, [{ labels: { reason: 'slow' } }]);
});

/** Opens connections of one address, each with a stream that never reads. */
async function connectManyUnread(t: Test, port: number, count: number, subscribe: boolean): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const session = await openUnread(t, port).catch(() => undefined);
    if (session === undefined) continue;
    const stream = session.request(adsHeaders);
    stream.on('error', () => undefined);
    stream.pause();
    if (subscribe) stream.write(framed({ typeUrl }));
  }
}

for (const [what, subscribe] of [
  ['subscribe and do not read', true],
  ['do not subscribe', false],
] as const) {
  t.test(`connections that ${what} give way to limiters of their address`, async (t) => {
    const server = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }), maxStreamsPerPeer: 20 });
    const connect = async () => {
      const limiter = server.connect().sotw();
      limiter.send();
      limiter.ack(await limiter.next());
      return limiter;
    };
    const before = [await connect(), await connect()];
    await awaitUntil(() => [...server.limiters.all()].every(({ accepted }) => accepted), { what: 'ACKs' });
    await connectManyUnread(t, server.port, 60, subscribe);
    const after = [await connect(), await connect(), await connect()];
    server.snapshots.set(testSnapshot({ shop: 2 }));
    for (const limiter of [...before, ...after]) t.equal((await limiter.next()).resources.length, 1);
    t.equal(await openStreams(server), 20, 'hostile connections have what limiters do not need');
  });
}

t.test('streams that do not answer give way when the whole server is full', async (t) => {
  const server = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }), maxStreams: 3 });
  const limiter = server.connect().sotw();
  limiter.send();
  limiter.ack(await limiter.next());
  await awaitUntil(() => server.onlyLimiter().accepted, { what: 'the ACK' });
  const [oldest, other] = await subscribeManyUnread(t, server.port, 2);
  await awaitUntil(() => server.limiters.size === 3, { what: 'all streams' });
  const next = server.connect().sotw();
  next.send();
  next.ack(await next.next());
  await awaitUntil(() => oldest?.closed, { what: 'the end of the oldest' });
  t.notOk(other?.closed);
  t.match((await server.metrics.refusedStreams.get()).values, [{ labels: { reason: 'stalled' }, value: 1 }]);
  server.snapshots.set(testSnapshot({ shop: 2 }));
  for (const stream of [limiter, next]) t.equal((await stream.next()).resources.length, 1);
});

t.test('limiters that answer are not disconnected for new ones', async (t) => {
  const server = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }), maxStreams: 1 });
  const limiter = server.connect().sotw();
  limiter.send();
  limiter.ack(await limiter.next());
  await awaitUntil(() => server.onlyLimiter().accepted, { what: 'the ACK' });
  t.match(await server.connect().sotw().ended, { code: status.RESOURCE_EXHAUSTED, details: /10000 streams/ });
  server.snapshots.set(testSnapshot({ shop: 2 }));
  t.ok(await limiter.next());
});

t.test('client cannot answer a response that it has not read', async (t) => {
  const server = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const guessing = server.connect().sotw();
  guessing.send();
  for (let nonce = 0; nonce < 10; nonce += 1) guessing.send({ responseNonce: String(nonce) });
  const response = await guessing.next();
  t.equal(server.onlyLimiter().accepted, undefined);
  guessing.ack(response);
  await awaitUntil(() => server.onlyLimiter().accepted, { what: 'the ACK' });
});

t.test('streams per address are limited', async (t) => {
  const server = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
    maxStreamsPerPeer: 2,
  });
  const client = server.connect();
  const streams = [client.sotw(), client.sotw()];
  for (const stream of streams) {
    stream.send();
    stream.ack(await stream.next());
  }
  const hasAnswered = () => [...server.limiters.all()].filter(({ accepted }) => accepted).length === 2;
  await awaitUntil(hasAnswered, { what: 'both ACKs' });
  t.match(await client.sotw().ended, {
    code: status.RESOURCE_EXHAUSTED,
    details: /limit of 2 streams/,
  });
  streams[0]?.cancel();
  await awaitUntil(async () => (await openStreams(server)) === 1, { what: 'one to go' });
  const next = client.sotw();
  next.send();
  t.ok(await next.next());
});

t.test('budget refills with time up to its burst', async (t) => {
  const clock = fakeClock();
  const budget = new RequestBudget({ burst: 3, perSecond: 2, bytesPerRequest: 100 }, clock.now);
  const takeAll = (): number => {
    let taken = 0;
    while (budget.take(100)) taken += 1;
    return taken;
  };
  t.equal(takeAll(), 3);
  clock.advance(499);
  t.equal(takeAll(), 0);
  clock.advance(1);
  t.equal(takeAll(), 1);
  clock.advance(3_600_000);
  t.equal(takeAll(), 3);
  clock.set(0);
  t.equal(takeAll(), 0, 'a clock that goes back gives nothing');
});

t.test('large request costs several tokens', async (t) => {
  const budget = new RequestBudget({ burst: 3, perSecond: 0, bytesPerRequest: 100 }, fakeClock().now);
  t.notOk(budget.take(301));
  t.ok(budget.take(101), 'what was too much has cost nothing');
  t.notOk(budget.take(101));
  t.ok(budget.take(0));
});
