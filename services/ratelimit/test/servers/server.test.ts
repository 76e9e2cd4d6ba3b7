import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { RateLimitResponse_Code as Code } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { HealthCheckResponse_ServingStatus as Serving } from '@tollgate/proto/grpc/health/v1/health';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { connect, descriptorsOf } from '../support/grpc-client.ts';
import { startApp } from '../support/start-app.ts';

const shouldRateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const rules = {
  'demo.yaml': `
domain: demo
descriptors:
  - key: tenant
    rate_limit: { name: per-tenant, unit: day, requests_per_unit: 2 }
`,
};

t.test('answers with the limit, what remains, the reset and headers, then refuses', async (t) => {
  const { ports } = await startApp(t, {
    rules,
    env: { LIMIT_RESPONSE_HEADERS_ENABLED: 'true', RESPONSE_DYNAMIC_METADATA: 'true' },
    nowMs: () => 1_000_000_500,
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const ask = () => client.shouldRateLimit({ domain: 'demo', descriptors: descriptorsOf({ tenant: 'a' }) });
  const first = await ask();
  t.match(first, {
    overallCode: Code.OK,
    statuses: [
      {
        code: Code.OK,
        currentLimit: { requestsPerUnit: 2, unit: 4, name: 'per-tenant' },
        limitRemaining: 1,
        durationUntilReset: { seconds: 36_800n, nanos: 0 },
      },
    ],
    dynamicMetadata: { domain: 'demo', descriptors: [{ entries: ['tenant=a'] }] },
  });
  t.same(
    first.responseHeadersToAdd.map(({ key, value }) => [key, value]),
    [
      ['RateLimit-Limit', '2'],
      ['RateLimit-Remaining', '1'],
      ['RateLimit-Reset', '36800'],
    ],
  );
  await ask();
  t.equal((await ask()).overallCode, Code.OVER_LIMIT);
});

t.test('errors have the status and text of envoyproxy/ratelimit, and the service continues', async (t) => {
  const { ports, stats } = await startApp(t, { rules });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const descriptors = descriptorsOf({ tenant: 'a' });
  await t.rejects(client.shouldRateLimit({ descriptors }), {
    code: status.UNKNOWN,
    details: 'rate limit domain must not be empty',
  });
  await t.rejects(client.shouldRateLimit({ domain: 'demo' }), {
    code: status.UNKNOWN,
    details: 'rate limit descriptor list must not be empty',
  });
  const limit = { requestsPerUnit: 1, unit: 0 };
  await t.rejects(client.shouldRateLimit({ domain: 'demo', descriptors: [{ entries: [], limit }] }), {
    code: status.INVALID_ARGUMENT,
  });
  for (const bytes of [Uint8Array.of(0xff), Uint8Array.of(0x0a, 0x7f, 1), Uint8Array.of(0x12, 2, 0x0a, 9)]) {
    await t.rejects(client.raw(shouldRateLimit, bytes), { code: status.INVALID_ARGUMENT });
  }
  await t.rejects(client.raw(shouldRateLimit, new Uint8Array(5 * 1024 * 1024)), {
    code: status.RESOURCE_EXHAUSTED,
  });
  await t.rejects(client.raw('/no.such/Method', Uint8Array.of()), { code: status.UNIMPLEMENTED });
  t.equal((await client.shouldRateLimit({ domain: 'demo', descriptors })).overallCode, Code.OK);
  t.equal(stats.counter('ratelimit_server.ShouldRateLimit.total_requests').value, 7);
});

t.test('before any rules were loaded requests fail with UNKNOWN', async (t) => {
  const { ports } = await startApp(t, { rules: { 'bad.yaml': 'domain: ""' } });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  await t.rejects(client.shouldRateLimit({ domain: 'demo', descriptors: descriptorsOf({ tenant: 'a' }) }), {
    code: status.UNKNOWN,
    details: 'no rate limit configuration loaded',
  });
});

t.test(
  'health: Check and Watch follow the service, the empty name always serves, others are unknown',
  async (t) => {
    const { ports, app, stats } = await startApp(t, {
      rules: {},
      env: { HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true', SHUTDOWN_DELAY: '50ms' },
    });
    const client = connect(t, `127.0.0.1:${ports.grpc}`);
    t.equal(await client.check(''), Serving.SERVING);
    t.equal(await client.check('ratelimit'), Serving.NOT_SERVING, 'no domain is loaded');
    await t.rejects(client.check('other'), { code: status.NOT_FOUND });
    await t.rejects(client.raw('/grpc.health.v1.Health/Check', Uint8Array.of(0xff)), {
      code: status.INVALID_ARGUMENT,
    });
    t.equal(stats.counter('ratelimit_server.Check.total_requests').value, 4);

    const seen: Serving[] = [];
    const unknown: Serving[] = [];
    const watching = client.watch('ratelimit', (one) => seen.push(one));
    void client.watch('other', (one) => unknown.push(one)).catch(() => undefined);
    await awaitUntil(() => seen.length === 1 && unknown.length === 1, { what: 'the first answers' });
    t.same([seen, unknown], [[Serving.NOT_SERVING], [Serving.SERVICE_UNKNOWN]]);
    void app.lifecycle.stop('test');
    await t.rejects(
      watching.then(() => Promise.reject(new Error('ended'))),
      { message: /ended|GOAWAY|UNAVAILABLE|CANCELLED/ },
    );
  },
);

t.test(
  'SIGTERM: health fails first, requests in flight are answered, new connections are refused',
  async (t) => {
    const { ports, app } = await startApp(t, { rules, env: { SHUTDOWN_DELAY: '3s' } });
    const client = connect(t, `127.0.0.1:${ports.grpc}`);
    const seen: Serving[] = [];
    void client.watch('ratelimit', (one) => seen.push(one)).catch(() => undefined);
    await awaitUntil(() => seen.length === 1, { what: 'SERVING' });
    const stopped = app.lifecycle.stop('SIGTERM');
    await awaitUntil(() => seen.length === 2, { what: 'NOT_SERVING' });
    t.same(seen, [Serving.SERVING, Serving.NOT_SERVING]);
    const health = await fetch(`http://127.0.0.1:${ports.http}/healthcheck`);
    t.same([health.status, await health.text()], [500, '']);
    const answered = await client.shouldRateLimit({
      domain: 'demo',
      descriptors: descriptorsOf({ tenant: 'a' }),
    });
    t.equal(answered.overallCode, Code.OK, 'still answers during the delay');
    t.match(await stopped, { reason: 'SIGTERM', failed: false, late: [] });
    await t.rejects(connect(t, `127.0.0.1:${ports.grpc}`).check(''), { code: status.UNAVAILABLE });
  },
);

t.test('requests in flight are answered before the service stops', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const { ports, app, logLines } = await startApp(t, {
    rules,
    env: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_PIPELINE_WINDOW: '200ms' },
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  await client.check('');
  const inFlight = client.shouldRateLimit({ domain: 'demo', descriptors: descriptorsOf({ tenant: 'a' }) });
  await awaitUntil(() => app.stats.counter('ratelimit_server.ShouldRateLimit.total_requests').value === 1, {
    what: 'the request to arrive',
  });
  const stopped = app.lifecycle.stop('SIGTERM');
  t.equal((await inFlight).overallCode, Code.OK);
  t.match(await stopped, { failed: false, late: [] });
  t.equal(logLines.filter(({ level }) => level === 'error').length, 0);
});

t.test('serves on a unix socket', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const path = join(folder.path, 'grpc.sock');
  await startApp(t, { rules, env: { GRPC_UDS: path } });
  t.equal(await connect(t, `unix:${path}`).check('ratelimit'), Serving.SERVING);
});

t.test('a connection gets a GOAWAY at its maximum age', async (t) => {
  const { ports } = await startApp(t, {
    rules,
    env: { GRPC_MAX_CONNECTION_AGE: '100ms', GRPC_MAX_CONNECTION_AGE_GRACE: '50ms' },
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const ended = client
    .watch('ratelimit', () => undefined)
    .then(
      () => 'ended',
      () => 'cut off',
    );
  t.match(await ended, /ended|cut off/);
  // A busy machine may let the next connection come of age before it has answered.
  await awaitUntil(async () => (await client.check('ratelimit')) === Serving.SERVING, {
    what: 'the client to connect again',
  });
});

t.test('a port in use is a start error that names it and its setting', async (t) => {
  const { ports } = await startApp(t, { rules });
  for (const [variable, port] of [
    ['GRPC_PORT', ports.grpc],
    ['PORT', ports.http],
  ] as const) {
    await t.rejects(startApp(t, { rules, env: { [variable]: String(port) } }), {
      message: new RegExp(`\\b${variable}: .*EADDRINUSE.*127.0.0.1:${port}`),
    });
  }
});

t.test('logs of the gRPC library are in the log of the service', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const written = t.capture(console, 'error');
  const env = { TRACING_ENABLED: 'true', TRACING_EXPORTER_PROTOCOL: 'grpc' };
  const { logLines } = await startApp(t, { start: false, env });
  const bound = new Promise<unknown>((resolve) => {
    new Server().bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), resolve);
  });
  t.match(await bound, { message: /No address added/ });
  const reported = logLines.filter((line) => line['@message'] === 'from the gRPC library');
  t.match(reported, [{ level: 'error', detail: /No address added/ }]);
  t.equal(written().length, 0, 'and not on standard error');
});
