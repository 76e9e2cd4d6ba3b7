import { connect as connectTcp } from 'node:net';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, status } from '@grpc/grpc-js';
import { Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Serving,
} from '@tollgate/proto/grpc/health/v1/health';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import type { Test } from 'tap';
import t from 'tap';
import { BearerTokens } from '../../src/ads/bearer-tokens.ts';
import { RefusalLog } from '../../src/ads/server.ts';
import { startAdsServer } from '../support/start-ads-server.ts';
import { largeSnapshot, testSnapshot } from '../support/test-snapshot.ts';

/** Checks the health of a service. */
function check(t: Test, port: number, service: string): Promise<Serving> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const request = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => fromBinary(HealthCheckResponseSchema, bytes),
      request,
      (error, response) =>
        response === undefined ? reject(error ?? new Error('no reply')) : resolve(response.status),
    );
  });
}

t.test('stopping server sends its limiters elsewhere', async (t) => {
  const { server, connect, limiters, logLines } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
  });
  const client = connect();
  const streams = [client.sotw(), client.delta()];
  for (const stream of streams) {
    stream.send({ node: { id: 'limiter-1' } });
    await stream.next();
  }
  const silent = client.sotw();
  await server.stop(AbortSignal.timeout(20_000));
  for (const stream of [...streams, silent]) t.match(await stream.ended, { code: status.UNAVAILABLE });
  t.equal(limiters.size, 0);
  t.match(await connect().sotw().ended, { code: status.UNAVAILABLE });
  t.equal(logLines.filter((line) => line['@message'] === 'limiter disconnected').length, 2);
  t.match(
    logLines.find((line) => line['@message'] === 'limiter disconnected'),
    { node: 'limiter-1', reason: 'the server is stopping', peer: /^127\.0\.0\.1:/ },
  );
});

t.test('connections left at the end of the grace period are cut', async (t) => {
  const { server, port } = await startAdsServer(t, { snapshot: testSnapshot({ shop: 1 }) });
  const socket = connectTcp(port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  // Starts HTTP/2 and a request that it does not finish.
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0));
  let closed = false;
  socket.on('close', () => {
    closed = true;
  });
  socket.resume();
  await server.stop(AbortSignal.abort());
  await awaitUntil(() => closed, { what: 'the connection to be cut' });
});

t.test('rule 14: a lost client is detected', async (t) => {
  const { port } = await startAdsServer(t, { keepaliveTimeMs: 30, keepaliveTimeoutMs: 30 });
  const socket = connectTcp(port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  let closed = false;
  socket.on('close', () => {
    closed = true;
  });
  socket.resume();
  // Settings, but no answers to pings.
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0));
  await awaitUntil(() => closed, { what: 'the connection to be closed' });
});

t.test('rule 14: a connection ends at its maximum age', async (t) => {
  const { connect, logLines } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
    maxConnectionAgeMs: 100,
    maxConnectionAgeGraceMs: 100,
  });
  const client = connect();
  // Only streams with a response: on a busy machine a connection may reach its age before.
  const peers = new Set<unknown>();
  const livesAndEnds = async (): Promise<void> => {
    const stream = client.sotw();
    stream.send();
    t.not((await stream.ended).code, status.OK);
    const connected = logLines.filter((line) => line['@message'] === 'limiter connected').at(-1);
    if (stream.responses.length > 0) peers.add(connected?.peer);
  };
  await awaitUntil(() => livesAndEnds().then(() => peers.size === 2), { what: 'another connection' });
});

t.test('rule 14: a response of 64 MiB is sent', async (t) => {
  const bytes = 64 * 1024 * 1024;
  const { connect, onlyLimiter } = await startAdsServer(t, { snapshot: largeSnapshot(bytes) });
  const stream = connect().sotw();
  stream.send();
  const response = await stream.next();
  t.equal(response.resources[0]?.value.length, bytes);
  stream.ack(response);
  await awaitUntil(() => onlyLimiter().accepted, { what: 'the ACK' });
});

t.test('health is that of the service xds', async (t) => {
  const health = new Health();
  const source = health.component('source', { healthy: false });
  const { port } = await startAdsServer(t, { health, tokens: new BearerTokens([]) });
  t.equal(await check(t, port, ''), Serving.SERVING);
  t.equal(await check(t, port, 'xds'), Serving.NOT_SERVING, 'and asking needs no token');
  source.set(true);
  t.equal(await check(t, port, 'xds'), Serving.SERVING);
});

t.test('address in use fails the start', async (t) => {
  const { port } = await startAdsServer(t);
  await t.rejects(startAdsServer(t, { address: `127.0.0.1:${port}` }), {
    message: /EADDRINUSE/,
  });
});

t.test('refusals are logged once per second with the number withheld', async (t) => {
  const clock = fakeClock();
  const lines: unknown[] = [];
  const logger = createLogger({
    level: 'trace',
    format: 'json',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const refusals = new RefusalLog({ logger, nowMs: clock.now });
  const refusal = { peer: '10.0.0.1:5000', node: 'limiter-1', reason: 'no token' };
  for (let count = 0; count < 100; count += 1) refusals.log(refusal);
  clock.advance(1_000);
  refusals.log(refusal);
  clock.set(0);
  refusals.log(refusal);
  t.match(lines, [
    { ...refusal, level: 'warning', '@message': 'stream refused', withheld: 0 },
    { ...refusal, withheld: 99 },
    { ...refusal, withheld: 0 },
  ]);
  t.equal(lines.length, 3);
});
