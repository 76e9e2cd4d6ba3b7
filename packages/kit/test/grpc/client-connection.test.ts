import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import {
  Flag,
  FrameReader,
  FrameType,
  frame,
  numberFrame,
  preface,
  settingsFrame,
} from '@tollgate/grpc-server/frames';
import { HpackDecoder } from '@tollgate/grpc-server/hpack/decoder';
import { GrpcServer } from '@tollgate/grpc-server/server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { UnaryClient } from '../../src/grpc/unary-client.ts';
import { monotonicNow } from '../../src/time.ts';
import { recordingLogger } from '../helpers/recording-logger.ts';

const path = '/test.Echo/Call';
const patient = { timeoutMs: 20_000 };
const hello = Buffer.from('hello');

/** A server that writes frames by hand. */
async function startRawServer(t: Test, onConnection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port; // it listens on TCP
}

async function startEcho(t: Test, host: string, options: { port?: number; name?: string } = {}) {
  const { port = 0, name } = options;
  const handler = (message: Uint8Array) => (name === undefined ? message : Buffer.from(name));
  const server = new GrpcServer({ methods: { unary: { [path]: handler } } });
  t.teardown(() => server.drain(AbortSignal.abort()));
  return { server, port: await server.listen({ host, port, reusePort: true }) };
}

function connect(t: Test, options: Omit<ConstructorParameters<typeof UnaryClient>[0], 'logger'>) {
  const { logger, lines } = recordingLogger();
  const client = new UnaryClient({ ...options, logger });
  t.teardown(() => client.close());
  client.start();
  return { client, lines };
}

t.test('connections that end before they answer are retried with backoff, and logged', async (t) => {
  const goaway = frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(8));
  for (const bytes of [Buffer.concat([settingsFrame([]), goaway]), Buffer.alloc(0)]) {
    const startedMs = monotonicNow();
    let connections = 0;
    const port = await startRawServer(t, (socket) => {
      connections += 1;
      socket.once('data', () => socket.end(bytes));
    });
    const { client, lines } = connect(t, { address: `localhost:${port}` });
    const enough = async () => {
      await client.call(path, hello, patient).catch(() => undefined);
      return connections >= 8;
    };
    await awaitUntil(enough, { what: 'eight connections' });
    // One of two has ended four times: three delays of 50, 100 and 200 ms, less 20 %.
    t.ok(monotonicNow() - startedMs >= 270);
    client.close();
    t.match(lines[0], {
      '@message': 'gRPC connection failed',
      err: { message: /ended the connection at once/ },
    });
    t.notOk(lines.some((line) => /works again/.test(String(line['@message']))));
  }
});

t.test('connections that worked are replaced at once and without a log line', async (t) => {
  const first = await startEcho(t, '127.0.0.1');
  const { client, lines } = connect(t, { address: `localhost:${first.port}` });
  await Promise.all([client.call(path, hello, patient), client.call(path, hello, patient)]);
  await startEcho(t, '127.0.0.1', { port: first.port, name: 'second' });
  await first.server.drain(new AbortController().signal);
  const replies = await Promise.all([client.call(path, hello, patient), client.call(path, hello, patient)]);
  t.same(replies.map(String), ['second', 'second']);
  t.same(lines, []);
});

t.test('the retry of a refused call has the time that is left', async (t) => {
  const timeouts: number[] = [];
  const port = await startRawServer(t, (socket) => {
    socket.write(settingsFrame([]));
    const [reader, decoder] = [new FrameReader(), new HpackDecoder(16_384)];
    let prefaceBytes = preface.length;
    socket.on('data', (chunk: Buffer) => {
      const frames = chunk.subarray(prefaceBytes);
      prefaceBytes -= Math.min(prefaceBytes, chunk.length);
      reader.read(frames, (type, flags, streamId, payload) => {
        if (type !== FrameType.HEADERS || (flags & Flag.END_HEADERS) === 0) return;
        const fields = new Map(decoder.decode(payload));
        timeouts.push(Number.parseInt(fields.get('grpc-timeout') ?? '', 10));
        setTimeout(() => socket.write(numberFrame(FrameType.RST_STREAM, streamId, 7)), 20); // REFUSED_STREAM
      });
    });
  });
  const { client } = connect(t, { address: `localhost:${port}` });
  await t.rejects(client.call(path, hello, patient), { status: 14, message: /refused/ });
  const [given = 0, left = 0] = timeouts;
  t.equal(given, 20_000);
  t.ok(left > 0 && left <= 19_990, `${left} ms`);
});

t.test('connections use all addresses of a name, and follow its changes', async (t) => {
  const ips = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
  const { port } = await startEcho(t, ips[0] ?? '', { name: ips[0] ?? '' });
  for (const ip of ips.slice(1)) await startEcho(t, ip, { port, name: ip });
  let names: readonly string[] | undefined = ips.slice(0, 2);
  let failures = 0;
  const { client } = connect(t, {
    ...{ address: `limiter.test:${port}`, renewalMs: 20 },
    resolveName(_name, done) {
      if (names === undefined) failures += 1;
      const addresses = (names ?? []).map((address): LookupAddress => ({ address, family: 4 }));
      done(names === undefined ? new Error('ENOTFOUND') : null, addresses);
    },
  });
  const call = async () => String(await client.call(path, hello, patient));
  const callTwice = async () => (await Promise.all([call(), call()])).sort();
  const usesBoth = async () => String(await callTwice()) === String(names);
  await awaitUntil(usesBoth, { what: 'both addresses' });
  for (let round = 0; round < 5; round += 1) t.ok(await usesBoth());
  names = ips;
  await awaitUntil(async () => (await call()) === ips[2], { what: 'a call to the new address' });
  names = undefined;
  await awaitUntil(() => failures > 2, { what: 'failed lookups' });
  t.equal((await callTwice()).length, 2, 'connections stay until others can replace them');
});
