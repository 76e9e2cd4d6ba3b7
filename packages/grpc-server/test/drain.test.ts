import { once } from 'node:events';
import { connect } from 'node:net';
import { Client, credentials } from '@grpc/grpc-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startEnvoy } from '@tollgate/testkit/envoy';
import t from 'tap';
import type { UnaryHandler } from '../src/call.ts';
import { FrameType } from '../src/frames.ts';
import { healthMethods, ServingStatus } from '../src/health.ts';
import { GrpcServer } from '../src/server.ts';
import { proxyBootstrap } from './support/envoy-proxy.ts';
import { RawClient } from './support/raw-client.ts';

const echo = '/test.Echo/Call';

t.test('calls in flight and calls on the wire at the GOAWAY are completed', async (t) => {
  const replies: (() => void)[] = [];
  const server = new GrpcServer({
    methods: {
      unary: { [echo]: (message) => new Promise((resolve) => replies.push(() => resolve(message))) },
    },
  });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  const raw = new RawClient(port);
  raw.open();
  raw.call(1, echo);
  await awaitUntil(() => replies.length === 1, { what: 'the first call has started' });
  const drained = server.drain(AbortSignal.timeout(20_000));
  const ping = await raw.receive(({ type }) => type === FrameType.PING);
  // Sent before the client could know.
  raw.call(3, echo);
  await awaitUntil(() => replies.length === 2, { what: 'the second call has started' });
  raw.send(Buffer.from([0, 0, 8, FrameType.PING, 1, 0, 0, 0, 0]), ping?.payload ?? Buffer.alloc(8));
  await raw.receive(({ type, payload }) => type === FrameType.GOAWAY && payload.readUInt32BE() === 3);
  for (const reply of replies) reply();
  await drained;
  await raw.end();
  const answered = raw.frames.filter(({ type }) => type === FrameType.DATA).map(({ streamId }) => streamId);
  t.strictSame(answered, [1, 3]);
});

const pass = (bytes: Buffer) => bytes;

/** Keeps many calls in flight until `stop` is called; resolves with their results. */
async function loadUntilStopped(client: Client, stopped: () => boolean): Promise<string[]> {
  const call = () =>
    new Promise<string>((resolve) => {
      const options = { deadline: Date.now() + 30_000 };
      client.makeUnaryRequest(echo, pass, pass, Buffer.from('x'), options, (error, reply) =>
        resolve(reply?.toString() ?? error?.message ?? ''),
      );
    });
  const results: string[] = [];
  const worker = async () => {
    while (!stopped()) results.push(await call());
  };
  await Promise.all(Array.from({ length: 100 }, worker));
  return results;
}

/** A server whose replies take some turns of the event loop. */
function startSlowEcho(): { server: GrpcServer; listen: (port: number) => Promise<number> } {
  const handler: UnaryHandler = (message) => new Promise((resolve) => setTimeout(resolve, 5, message));
  const server = new GrpcServer({ methods: { unary: { [echo]: handler } } });
  return { server, listen: (port) => server.listen({ host: '127.0.0.1', port }) };
}

for (const through of ['grpc-js', 'Envoy']) {
  t.test(`a restart under load loses no call of ${through}`, async (t) => {
    const first = startSlowEcho();
    const port = await first.listen(0);
    const envoy = through === 'Envoy' ? await startEnvoy({ config: proxyBootstrap(port) }) : undefined;
    t.teardown(() => envoy?.stop());
    const client = new Client(`127.0.0.1:${envoy?.port ?? port}`, credentials.createInsecure());
    t.teardown(() => client.close());
    let stopped = false;
    const load = loadUntilStopped(client, () => stopped);
    await awaitUntil(() => first.server.callCount >= 50, { what: 'calls in flight', everyMs: 1 });
    // The listener closes at once, so that the next server can take the port.
    const drained = first.server.drain(AbortSignal.timeout(20_000));
    const second = startSlowEcho();
    await awaitUntil(() => second.listen(port).then(() => true), { what: 'the port', everyMs: 1 });
    t.teardown(() => second.server.drain(AbortSignal.abort()));
    await drained;
    await awaitUntil(() => second.server.callCount >= 50, { what: 'calls to the next server', everyMs: 1 });
    stopped = true;
    const results = await load;
    t.same(new Set(results), new Set(['x']));
  });
}

t.test('idle, silent and half-open connections do not delay a drain', async (t) => {
  const server = new GrpcServer({ methods: { unary: {} } });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  const silent = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(silent, 'connect');
  const idle = new RawClient(port);
  idle.open();
  await idle.receive(({ type }) => type === FrameType.SETTINGS);
  const deaf = new RawClient(port);
  deaf.socket.allowHalfOpen = true;
  deaf.open();
  await deaf.receive(({ type }) => type === FrameType.SETTINGS);
  deaf.socket.pause();
  const gaveUp = AbortSignal.timeout(20_000);
  await server.drain(gaveUp);
  t.notOk(gaveUp.aborted);
  for (const socket of [silent, idle.socket, deaf.socket]) socket.destroy();
});

t.test('remaining calls are cut off when the signal aborts', async (t) => {
  const server = new GrpcServer({ methods: { unary: { [echo]: () => new Promise(() => undefined) } } });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  const raw = new RawClient(port);
  raw.open();
  raw.call(1, echo);
  await awaitUntil(() => server.callCount === 1, { what: 'the call has started' });
  await server.drain(AbortSignal.timeout(50));
  await raw.end();
  t.equal(server.callCount, 0);
});

t.test('health: Check responds, Watch follows and ends with the server', async (t) => {
  let serving = true;
  const listeners = new Set<() => void>();
  const server = new GrpcServer({
    methods: healthMethods({
      status: (service) => {
        if (service !== '' && service !== 'shop') return ServingStatus.SERVICE_UNKNOWN;
        return serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
      },
      onChange(changed) {
        listeners.add(changed);
        return () => listeners.delete(changed);
      },
    }),
  });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const bytes = (b: Buffer) => b;
  const request = (service: string) => Buffer.from([0x0a, service.length, ...Buffer.from(service)]);
  const check = (message: Buffer) =>
    new Promise((resolve) =>
      client.makeUnaryRequest('/grpc.health.v1.Health/Check', bytes, bytes, message, (error, reply) =>
        resolve(error?.code ?? reply?.[1]),
      ),
    );
  t.equal(await check(Buffer.alloc(0)), ServingStatus.SERVING);
  t.equal(await check(request('shop')), ServingStatus.SERVING);
  t.equal(await check(request('other')), 5, 'NOT_FOUND');
  t.equal(await check(Buffer.from('???')), 3, 'INVALID_ARGUMENT');
  const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', bytes, bytes, request('shop'));
  const seen: unknown[] = [];
  watch.on('error', () => undefined);
  watch.on('data', (message: Buffer) => seen.push(message[1]));
  await awaitUntil(() => seen.length === 1, { what: 'the first state' });
  serving = false;
  for (const changed of listeners) changed();
  await awaitUntil(() => seen.length === 2, { what: 'the second state' });
  t.strictSame(seen, [ServingStatus.SERVING, ServingStatus.NOT_SERVING]);
  await server.drain(AbortSignal.timeout(20_000));
  await awaitUntil(() => listeners.size === 0, { what: 'the watch has ended' });
});
