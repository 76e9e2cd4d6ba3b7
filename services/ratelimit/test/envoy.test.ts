import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startEcho } from '@tollgate/testkit/echo';
import { startEnvoy } from '@tollgate/testkit/envoy';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { envoyConfig, getExample, getRouteExample } from './support/envoy-config.ts';
import { startApp } from './support/start-app.ts';

const indent = (text: string): string => text.replaceAll(/^/gm, '  ');

const perRoute = getRouteExample('# Envoy, in a route.');

const rules = {
  'demo.yaml': `
domain: demo
descriptors:
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 3 }
${indent(getExample('# Rules.'))}
`,
};

/** Noon: no midnight comes in between. */
const nowMs = () => Date.UTC(2026, 0, 2, 12);

/** The service behind a real Envoy in front of a real upstream; resolves to Envoy's address. */
async function platform(t: Test, env: Record<string, string>, upstreamPort?: number): Promise<string> {
  const { ports } = await startApp(t, {
    rules,
    env: { LIMIT_RESPONSE_HEADERS_ENABLED: 'true', ...env },
    nowMs,
  });
  const echo = await startEcho();
  t.teardown(echo.stop);
  const config = envoyConfig({
    grpcPort: ports.grpc,
    upstreamPort: upstreamPort ?? echo.port,
    perRoute: {
      ...perRoute,
      rate_limits: [
        { actions: [{ request_headers: { header_name: 'x-tenant', descriptor_key: 'tenant' } }] },
        ...perRoute.rate_limits,
      ],
    },
  });
  const envoy = await startEnvoy({ config });
  t.teardown(envoy.stop);
  return `http://127.0.0.1:${envoy.port}`;
}

async function statuses(url: string, tenant: string, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i += 1) {
    const response = await fetch(url, { headers: { 'x-tenant': tenant } });
    await response.text();
    seen.push(response.status);
  }
  return seen;
}

t.test('Envoy returns 200, then 429, with the rate limit headers', async (t) => {
  const url = await platform(t, {});
  t.same(await statuses(url, 'a', 5), [200, 200, 200, 429, 429]);
  t.same(await statuses(url, 'b', 2), [200, 200], 'another tenant is counted apart');
  const refused = await fetch(url, { headers: { 'x-tenant': 'a' } });
  t.equal(refused.headers.get('ratelimit-limit'), '3');
  t.equal(refused.headers.get('ratelimit-remaining'), '0');
  t.match(refused.headers.get('ratelimit-reset'), /^\d+$/);
  t.equal((await fetch(url)).status, 200, 'without the header nothing is limited');
});

t.test('counters in Redis have the keys of envoyproxy/ratelimit, and Envoy sees its failures', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const url = await platform(t, {
    BACKEND_TYPE: 'redis',
    KVSTORE_SOCKET_TYPE: 'tcp',
    KVSTORE_URL: redis.address,
    LIMIT_ON_STORE_FAILURE: 'local',
  });
  t.same(await statuses(url, 'a', 5), [200, 200, 200, 429, 429]);
  const keys = await redisCommand(redis, 'KEYS', '*');
  t.match(keys, [/^demo_tenant_a_\d+$/]);
  const key = String(keys);
  t.equal(Number(key.split('_').at(-1)) % 86_400, 0, 'named by the start of the day');
  t.equal(await redisCommand(redis, 'GET', key), '5');
  const ttl = Number(await redisCommand(redis, 'TTL', key));
  t.ok(ttl > 86_300 && ttl <= 86_700, `lives for a day and up to 300 s of jitter: ${ttl}`);

  await redis.kill();
  const estimated = await fetch(url, { headers: { 'x-tenant': 'a' } });
  t.equal(estimated.status, 200);
  t.equal(estimated.headers.get('x-store-failure'), 'local');
});

/** An upstream that answers requests for `/slow` once it is opened, others at once. */
async function startSlowUpstream(t: Test) {
  const waiting: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (request.url === '/slow') waiting.push(response);
    else response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close().closeAllConnections());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port');
  return { port: address.port, waiting };
}

t.test('a concurrency limit refuses until Envoy releases the slot of a request that ended', async (t) => {
  const upstream = await startSlowUpstream(t);
  const url = await platform(t, { RESPONSE_DYNAMIC_METADATA: 'true' }, upstream.port);
  const ask = async (user: string, path = '/fast', signal?: AbortSignal) =>
    (await fetch(url + path, { headers: { 'x-user-id': user }, ...(signal && { signal }) })).status;
  const leaving = new AbortController();
  const first = ask('a', '/slow');
  const second = ask('a', '/slow', leaving.signal);
  await awaitUntil(() => upstream.waiting.length === 2, { what: 'both requests' });
  t.same([await ask('a'), await ask('a')], [429, 429], 'a refused request releases nothing');
  t.equal(await ask('b'), 200, 'another user has slots');
  leaving.abort();
  await t.rejects(second);
  await awaitUntil(async () => (await ask('a')) === 200, { what: 'the slot of a client that left' });
  for (const response of upstream.waiting) response.end();
  t.equal(await first, 200);
});
