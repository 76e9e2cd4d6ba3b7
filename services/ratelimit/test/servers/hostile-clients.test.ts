import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
} from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { gzipSync } from 'node:zlib';
import { create, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { everyPeer } from '@tollgate/kit/grpc/peer';
import { UnaryServer } from '@tollgate/kit/grpc/unary-server';
import { Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import { RateLimitRequestSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { descriptorsOf } from '../support/grpc-client.ts';
import { startApp } from '../support/start-app.ts';

const rules = {
  'demo.yaml': `
domain: demo
descriptors:
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 1000000 }
`,
};
const headers = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
};
const request = toBinary(
  RateLimitRequestSchema,
  create(RateLimitRequestSchema, { domain: 'demo', descriptors: descriptorsOf({ tenant: 'a' }) }),
);

/** A message as gRPC frames it. */
function framed(message: Uint8Array, compressed = false): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(compressed ? 1 : 0, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** A bare HTTP/2 connection, closed when the test ends. */
async function open(
  t: Test,
  port: number,
  options: Parameters<typeof connectHttp2>[1] = {},
): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${port}`, options);
  session.on('error', () => undefined);
  t.teardown(() => session.destroy());
  await once(session, 'remoteSettings');
  return session;
}

function begin(session: ClientHttp2Session, more: Readonly<Record<string, string>> = {}): ClientHttp2Stream {
  const stream = session.request({ ...headers, ...more });
  stream.on('error', () => undefined);
  stream.resume();
  return stream;
}

/** Sends one framed message and answers the gRPC status; undefined when the call was cut off. */
async function ask(
  session: ClientHttp2Session,
  message = framed(request),
  more: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const stream = begin(session, more);
  let grpcStatus: number | undefined;
  const note = (received: Readonly<Record<string, unknown>>): void => {
    grpcStatus = received['grpc-status'] === undefined ? grpcStatus : Number(received['grpc-status']);
  };
  stream.on('response', note);
  stream.on('trailers', note);
  stream.end(message);
  // Not `once`, which rejects when the connection fails.
  await new Promise((resolve) => stream.on('close', resolve));
  return grpcStatus;
}

t.test('thousands of calls at once on one connection are all answered, a thousand at a time', async (t) => {
  const { ports, stats } = await startApp(t, { rules });
  const session = await open(t, ports.grpc);
  t.equal(session.remoteSettings.maxConcurrentStreams, 1_000);
  const statuses = await Promise.all(Array.from({ length: 5_000 }, () => ask(session)));
  t.ok(statuses.every((one) => one === status.OK));
  t.equal(stats.counter('ratelimit_server.ShouldRateLimit.total_requests').value, 5_000);
});

t.test('clients that stall or disconnect do not affect others', async (t) => {
  const { ports, logLines } = await startApp(t, { rules });
  const silent = await open(t, ports.grpc);
  const unfinished = await open(t, ports.grpc);
  const unread = await open(t, ports.grpc, { settings: { initialWindowSize: 0 } });
  const cancelled = await open(t, ports.grpc);
  for (let i = 0; i < 900; i += 1) {
    begin(silent);
    begin(unfinished).write(framed(request).subarray(0, 10));
    begin(unread).end(framed(request));
  }
  for (let i = 0; i < 100; i += 1) {
    const stream = begin(cancelled);
    stream.end(framed(request));
    stream.close(constants.NGHTTP2_CANCEL);
  }
  t.equal(await ask(await open(t, ports.grpc)), status.OK);
  silent.destroy();
  unfinished.destroy();
  t.equal(await ask(cancelled), status.OK);
  t.same(
    logLines.filter(({ level }) => level !== 'info' && level !== 'debug'),
    [],
  );
});

t.test('a Watch that its client ends, cancels or loses is forgotten', async (t) => {
  const { health, port, listeners } = await startHealthOnly(t);
  const path = { ':path': '/grpc.health.v1.Health/Watch' };
  const watch = (session: ClientHttp2Session): ClientHttp2Stream => {
    const stream = begin(session, path);
    stream.end(framed(Buffer.from('\x0a\x09ratelimit')));
    return stream;
  };
  const kept = await open(t, port);
  const lost = await open(t, port);
  const streams = [watch(kept), watch(kept), watch(lost), watch(lost)];
  await awaitUntil(() => listeners() === 4, { what: 'four watches' });
  health.component('config', { healthy: false });
  streams[0]?.close(constants.NGHTTP2_CANCEL);
  lost.destroy();
  await awaitUntil(() => listeners() === 1, { what: 'the end of three' });
  t.equal(listeners(), 1);
});

t.test('requests other than gRPC are rejected', async (t) => {
  const { ports } = await startApp(t, { rules });
  const junk = [
    'GET / HTTP/1.1\r\n\r\n',
    '\0'.repeat(1_000),
    `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'x'.repeat(100)}`,
  ];
  for (const text of junk) {
    const socket = connectTcp(ports.grpc, '127.0.0.1');
    socket.on('error', () => undefined);
    let closed = false;
    socket.on('close', () => {
      closed = true;
    });
    socket.resume();
    socket.write(text);
    await awaitUntil(() => closed, { what: `the end of ${JSON.stringify(text.slice(0, 10))}` });
  }
  t.equal(await ask(await open(t, ports.grpc)), status.OK);
});

t.test('headers of half a megabyte end only their connection or call', async (t) => {
  const { ports } = await startApp(t, { rules });
  const other = await open(t, ports.grpc);
  const session = await open(t, ports.grpc, { maxSendHeaderBlockLength: 10_000_000 });
  t.not(await ask(session, framed(request), { 'x-large': 'x'.repeat(500_000) }), status.OK);
  t.equal(await ask(other), status.OK);
});

t.test('a compressed message is bounded by what it unpacks to', async (t) => {
  const { ports } = await startApp(t, { rules });
  const session = await open(t, ports.grpc);
  const gzip = { 'grpc-encoding': 'gzip' };
  t.equal(await ask(session, framed(gzipSync(request), true), gzip), status.OK);
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  t.equal(await ask(session, framed(bomb, true), gzip), status.RESOURCE_EXHAUSTED);
  t.equal(await ask(session, framed(Buffer.from('no gzip'), true), gzip), status.INTERNAL);
  t.equal(await ask(session), status.OK);
});

t.test('too many descriptors are rejected early', async (t) => {
  const { ports, stats } = await startApp(t, { rules });
  const session = await open(t, ports.grpc);
  const withDescriptors = (length: number) =>
    create(RateLimitRequestSchema, {
      domain: 'demo',
      descriptors: Array.from({ length }, (_, i) => descriptorsOf({ tenant: String(i) })[0] ?? {}),
    });
  const send = (length: number) =>
    ask(session, framed(toBinary(RateLimitRequestSchema, withDescriptors(length))));
  t.equal(await send(1_000), status.OK);
  t.equal(await send(1_001), status.INVALID_ARGUMENT);
  t.equal(stats.gauge('ratelimit.memory.counters').value, 1_000);
});

t.test('a stop does not wait for clients that hold connections open', async (t) => {
  const { app, ports } = await startApp(t, { rules, env: { DRAIN_TIMEOUT: '1h' } });
  const hold = async (port: number): Promise<void> => {
    const socket = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
  };
  await Promise.all([hold(ports.grpc), hold(ports.http), hold(ports.debug)]);
  const session = await open(t, ports.grpc);
  t.equal(await ask(session), status.OK);
  await fetch(`http://127.0.0.1:${ports.http}/healthcheck`);
  await fetch(`http://127.0.0.1:${ports.debug}/stats`);
  t.match(await app.lifecycle.stop('SIGTERM'), { late: [] });
});

t.test('at GRPC_MAX_CONNECTIONS a new connection closes one without calls', async (t) => {
  const { ports } = await startApp(t, { rules, env: { GRPC_MAX_CONNECTIONS: '2' } });
  const used = await open(t, ports.grpc);
  t.equal(await ask(used), status.OK);
  const unused = await open(t, ports.grpc);
  const closed = once(unused, 'close');
  t.equal(await ask(await open(t, ports.grpc)), status.OK);
  await closed;
  t.equal(await ask(used), status.OK);
});

/** The server alone, with a health whose listeners are counted. */
async function startHealthOnly(t: Test) {
  let listening = 0;
  class CountingHealth extends Health {
    override onChange(listener: (healthy: boolean) => void): () => void {
      listening += 1;
      const unsubscribe = super.onChange(listener);
      return () => {
        listening -= 1;
        unsubscribe();
      };
    }
  }
  const health = new CountingHealth();
  const server = new UnaryServer({
    handlers: {},
    health,
    serviceName: 'ratelimit',
    begin: () => () => undefined,
    guard: everyPeer,
    logger: createLogger({ level: 'fatal', format: 'json' }),
    address: '127.0.0.1:0',
    addressSetting: 'GRPC_PORT',
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
  });
  t.teardown(() => server.stop(new AbortController().signal));
  return { health, port: await server.start(), listeners: () => listening };
}
