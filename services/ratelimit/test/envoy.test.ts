import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startEcho } from '@tollgate/testkit/echo';
import { startEnvoy } from '@tollgate/testkit/envoy';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import { readDocument } from '@tollgate/yaml/fields';
import t, { type Test } from 'tap';
import { startApp } from './support/start-app.ts';

/** The YAML of docs/limits.md that starts with a comment. */
function example(comment: string): string {
  const page = readFileSync(new URL('../../../docs/limits.md', import.meta.url), 'utf8');
  const block = page.split('```yaml\n').find((text) => text.startsWith(comment));
  return block?.slice(0, block.indexOf('```')) ?? '';
}

const indent = (text: string): string => text.replaceAll(/^/gm, '  ');

const perRoute = readPerRoute(example('# Envoy, in a route.'));

function readPerRoute(text: string) {
  const parsed = readDocument(text, (value) => {
    // Parsed boundary: Envoy checks it.
    const fields = value as {
      typed_per_filter_config: Record<string, { rate_limits: object[] } | undefined>;
    };
    return fields.typed_per_filter_config['envoy.filters.http.ratelimit'];
  });
  if (!parsed.ok || parsed.value === undefined) throw new Error('docs/limits.md has no example for Envoy');
  return parsed.value;
}

const rules = {
  'demo.yaml': `
domain: demo
descriptors:
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 3 }
${indent(example('# Rules.'))}
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
  const envoy = await startEnvoy({ config: bootstrap(ports.grpc, upstreamPort ?? echo.port) });
  t.teardown(envoy.stop);
  return `http://127.0.0.1:${envoy.port}`;
}

function bootstrap(grpcPort: number, upstreamPort: number): object {
  const cluster = (name: string, port: number, http2: boolean) => ({
    name,
    type: 'STATIC',
    connect_timeout: '10s',
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [
            { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } },
          ],
        },
      ],
    },
    ...(http2
      ? {
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        }
      : {}),
  });
  const rateLimit = {
    name: 'envoy.filters.http.ratelimit',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit',
      domain: 'demo',
      // Generous: the test machine is busy, and Envoy lets requests pass when no answer came in
      // time.
      timeout: '20s',
      failure_mode_deny: true,
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
      },
    },
  };
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const route = {
    match: { prefix: '/' },
    response_headers_to_add: [
      {
        header: {
          key: 'x-store-failure',
          value: '%DYNAMIC_METADATA(envoy.filters.http.ratelimit:store_failure)%',
        },
      },
    ],
    route: { cluster: 'upstream' },
    typed_per_filter_config: {
      'envoy.filters.http.ratelimit': {
        ...perRoute,
        rate_limits: [
          { actions: [{ request_headers: { header_name: 'x-tenant', descriptor_key: 'tenant' } }] },
          ...perRoute.rate_limits,
        ],
      },
    },
  };
  return {
    static_resources: {
      listeners: [
        {
          name: 'ingress',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [
            {
              filters: [
                {
                  name: 'envoy.filters.network.http_connection_manager',
                  typed_config: {
                    '@type':
                      'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
                    stat_prefix: 'ingress',
                    route_config: { virtual_hosts: [{ name: 'app', domains: ['*'], routes: [route] }] },
                    http_filters: [rateLimit, router],
                  },
                },
              ],
            },
          ],
        },
      ],
      clusters: [cluster('ratelimit', grpcPort, true), cluster('upstream', upstreamPort, false)],
    },
  };
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
