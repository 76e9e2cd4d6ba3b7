import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { startCollector } from '../helpers/collector.ts';
import { rawRequest } from '../helpers/raw-request.ts';

const routes = `
routes:
  - path: /open/**
    access: public
    limit: [[plan, user_id], [remote_address]]
  - path: /secret/**
    access: deny
  - path: /staff/**
    roles: [staff]
  - path: /health
    access: public
    limit: []
  - path: /other/**
    limit: [[role]] # no rule of the limiter
limit:
  - [plan, user_id]
limit_domain: shop
`;

const rules = `
domain: shop
descriptors:
  - key: plan
    value: free
    descriptors:
      - key: user_id
        rate_limit: { unit: year, requests_per_unit: 2 }
  - key: plan
    value: pro
    descriptors:
      - key: user_id
        rate_limit: { unit: year, requests_per_unit: 100 }
  - key: remote_address
    rate_limit: { unit: year, requests_per_unit: 3 }
`;

async function startLimiter(t: Test, settings: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  mkdirSync(join(folder.path, 'config'));
  writeFileSync(join(folder.path, 'config/shop.yaml'), rules);
  const limiter = await startRateLimitService({
    ...{ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' },
    ...settings,
  });
  t.teardown(limiter.stop);
  return limiter;
}

async function startLimitingServer(
  t: Test,
  address: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<AuthServer> {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const file = join(folder.path, 'routes.yaml');
  writeFileSync(file, routes);
  return startAuthServer(t, {
    EXT_AUTHZ_ROUTES_FILE: file,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: address,
    // Test machines are busy.
    EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    SECURITY_TRUSTED_PROXIES: 'loopback',
    ...settings,
  });
}

const bearer = (token: string): string[] => ['authorization', `Bearer ${token}`];

/** A user of the plan pro. */
async function signUpPro(server: AuthServer): Promise<string> {
  const credentials = { email: 'pro@example.com', password: 'correct horse' };
  const { userId } = await signUp(server, credentials);
  const body = { app_metadata: { plan: 'pro' } };
  await server.call('PUT', `/admin/users/${userId}`, { token: adminToken(), body });
  const { body: session } = await server.call('POST', '/token?grant_type=password', { body: credentials });
  return String(session.access_token);
}

for (const variant of ['grpc', 'http'] as const)
  t.test(`Envoy with ${variant} and no filter but ext_authz`, async (t) => {
    const limiter = await startLimiter(t);
    const server = await startLimitingServer(t, limiter.address);
    const client = [
      { exact: 'ratelimit-limit' },
      { exact: 'ratelimit-remaining' },
      { exact: 'ratelimit-reset' },
    ];
    const envoy = await startAuthzEnvoy(t, {
      variant,
      port: server.extAuthz[variant],
      // The client of the tests is a proxy in front of Envoy.
      manager: { use_remote_address: true, skip_xff_append: true },
      ...(variant === 'http' && {
        allowedHeaders: [{ exact: 'x-forwarded-for' }],
        authorizationResponse: { allowed_client_headers_on_success: { patterns: client } },
      }),
    });
    const send = async (path: string, headers: readonly string[] = []) => {
      const before = envoy.upstream.requests.length;
      const response = await rawRequest(envoy.url, path, { headers });
      const [seen] = envoy.upstream.requests.slice(before);
      return { ...response, seen };
    };
    const free = await signUp(server);

    await t.test('a user of the free plan is limited, with headers and a JSON body', async (t) => {
      const first = await send('/cart', bearer(free.accessToken));
      t.equal(first.status, 200);
      t.match(first.headers, {
        'ratelimit-limit': '2',
        'ratelimit-remaining': '1',
        'ratelimit-reset': /^\d+$/,
      });
      t.equal(first.seen?.headers['ratelimit-limit'], undefined, 'they are for the client');
      const spoofed = ['x-auth-plan', 'pro', 'x-auth-user-id', 'root', 'x-forwarded-for', '1.1.1.1'];
      t.equal((await send('/staff', bearer(free.accessToken))).status, 403, 'denied requests do not count');
      t.equal((await send('/cart', [...spoofed, ...bearer(free.accessToken)])).status, 200);
      const third = await send('/cart', [...spoofed, ...bearer(free.accessToken)]);
      t.equal(third.status, 429);
      t.equal(third.seen, undefined);
      t.match(third.headers, {
        ...{ 'content-type': 'application/json', 'ratelimit-limit': '2', 'ratelimit-remaining': '0' },
        'retry-after': /^[1-9]\d*$/,
      });
      t.same(JSON.parse(third.text), {
        ...{ code: 429, error_code: 'over_request_rate_limit', msg: 'Request rate limit reached' },
      });
      t.equal((await send('/health')).status, 200);
    });

    await t.test('a user of another plan has its limit', async (t) => {
      const pro = await signUpPro(server);
      const { status, headers } = await send('/cart', bearer(pro));
      t.equal(status, 200);
      t.match(headers, { 'ratelimit-limit': '100', 'ratelimit-remaining': '99' });
    });

    await t.test('callers without a user are limited by address, behind trusted proxies', async (t) => {
      const statuses: number[] = [];
      for (const address of ['192.0.2.1', '192.0.2.1', '1.1.1.1, 192.0.2.1', '2.2.2.2, 192.0.2.1'])
        statuses.push((await send('/open/page', ['x-forwarded-for', address])).status);
      t.same(statuses, [200, 200, 200, 429]);
      t.equal((await send('/open/page', ['x-forwarded-for', '192.0.2.2'])).status, 200);
    });

    await t.test(
      'a stopped limiter is the failure policy at once, and it counts again once it is up',
      async (t) => {
        await limiter.stop();
        const { status, headers } = await send('/cart', bearer(free.accessToken));
        t.equal(status, 200);
        t.equal(headers['ratelimit-limit'], undefined);
        await limiter.restart();
        const isBack = async () =>
          'ratelimit-limit' in (await send('/cart', bearer(free.accessToken))).headers;
        await awaitUntil(isBack, { what: 'the connection' });
        t.match(
          server.logs(),
          /rate limit check failed.*"on_failure":"allow"|"on_failure":"allow".*rate limit check failed/,
        );
      },
    );
  });

t.test('a paused limiter is refused with 503 by the policy deny, within the deadline', async (t) => {
  const limiter = await startLimiter(t);
  const server = await startLimitingServer(t, limiter.address, {
    EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  });
  const { accessToken } = await signUp(server);
  const client = connectAuthz(t, server.extAuthz.grpc);
  const check = async (timeoutMs: number) =>
    summary(
      await client.check(
        { method: 'GET', path: '/cart', headers: { authorization: `Bearer ${accessToken}` } },
        { timeoutMs },
      ),
    );
  t.match(await check(20_000), {
    code: 0,
    metadata: { rate_limit: 'ok' },
    response: { 'ratelimit-limit': '2' },
  });
  process.kill(limiter.pid, 'SIGSTOP');
  t.teardown(() => limiter.isRunning() && process.kill(limiter.pid, 'SIGCONT'));
  t.match(await check(6_000), {
    ...{ code: 14, httpStatus: 503, metadata: { rate_limit: 'error', plan: 'free' } },
    body: { code: 503, error_code: 'rate_limit_unavailable' },
  });
  process.kill(limiter.pid, 'SIGCONT');
  await awaitUntil(async () => (await check(20_000)).metadata?.rate_limit !== 'error', {
    what: 'another call',
  });
});

t.test(
  'the limits of the limiter are in its standard headers, spans and metrics show both decisions',
  async (t) => {
    const collected = await startCollector(t);
    const limiter = await startLimiter(t, {
      ...{ LIMIT_RESPONSE_HEADERS_ENABLED: 'true', LIMIT_STANDARD_HEADERS_ENABLED: 'true' },
    });
    const server = await startLimitingServer(t, limiter.address, {
      ...{ TRACING_ENABLED: 'true', METRICS_ENABLED: 'true', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
    });
    const { accessToken } = await signUp(server);
    const client = connectAuthz(t, server.extAuthz.grpc);
    const check = async (path: string) =>
      summary(
        await client.check({ method: 'GET', path, headers: { authorization: `Bearer ${accessToken}` } }),
      );
    t.match(await check('/cart'), { response: { ratelimit: /r=1/, 'ratelimit-policy': /q=2/ } });
    await check('/cart');
    t.match(await check('/cart'), { httpStatus: 429, headers: { ratelimit: /r=0/, 'retry-after': /^\d+$/ } });
    t.same((await check('/other')).metadata?.rate_limit, 'ok', 'without a rule there is no limit');
    t.match(server.logs(), /"rate_limit":"over_limit"/);
    await server.stop();
    const spans = collected
      .flatMap(({ body }) => body.resourceSpans ?? [])
      .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    const call = spans.find(({ name }) => name.endsWith('/ShouldRateLimit'));
    t.ok(spans.some(({ spanId, name }) => spanId === call?.parentSpanId && name.endsWith('/Check')));
    t.match(JSON.stringify(spans), /"tollgate.authz.rate_limit","value":\{"stringValue":"over_limit"/);
    const metrics = JSON.stringify(collected.flatMap(({ body }) => body.resourceMetrics ?? []));
    t.match(metrics, /auth_ext_authz_rate_limit_duration_seconds/);
    t.match(metrics, /auth_ext_authz_rate_limit_checks_total/);
  },
);

t.test('limits work with a limiter that requires client certificates', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server: own, client: pair } = certificates;
  const limiter = await startLimiter(t, {
    ...{ GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: own.certFile, GRPC_SERVER_TLS_KEY: own.keyFile },
    GRPC_CLIENT_TLS_CACERT: ca.certFile,
  });
  const server = await startLimitingServer(t, limiter.address, {
    ...{ EXT_AUTHZ_RATE_LIMIT_TLS: 'true', EXT_AUTHZ_RATE_LIMIT_TLS_CA: ca.certFile },
    ...{ EXT_AUTHZ_RATE_LIMIT_TLS_CERT: pair.certFile, EXT_AUTHZ_RATE_LIMIT_TLS_KEY: pair.keyFile },
    SECURITY_TRUSTED_PROXIES: '',
  });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const headers = { 'x-forwarded-for': '192.0.2.1' };
  const address = { address: { case: 'socketAddress', value: { address: '10.0.0.9' } } } as const;
  const http = { method: 'GET', path: '/open/page', headers };
  const check = () => client.check(http, { source: { address } });
  t.match(summary(await check()), { response: { 'ratelimit-limit': '3' }, metadata: { rate_limit: 'ok' } });
  t.match(server.logs(), /"proxy":"10.0.0.9","setting":"SVC_SECURITY_TRUSTED_PROXIES".*load balancer/);
  t.notMatch(server.logs(), 'client address unknown');
  for (let i = 0; i < 2; i += 1) await client.check({ method: 'GET', path: '/open/page', headers: {} });
  t.equal(server.logs().split('client address unknown').length, 2, 'one warning');
  const broken = { EXT_AUTHZ_RATE_LIMIT_TLS: 'true', EXT_AUTHZ_RATE_LIMIT_TLS_CA: pair.keyFile };
  await t.rejects(startLimitingServer(t, limiter.address, broken), /client/);
});

t.test(
  'limits without a rate limit service stop the start, and a service without limits is logged',
  async (t) => {
    const unused = { EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '100ms' };
    await t.rejects(startLimitingServer(t, '', unused), /limit requires a rate limit service/);
    const server = await startAuthServer(t, { EXT_AUTHZ_RATE_LIMIT_ADDRESS: 'localhost:1' });
    t.match(server.logs(), /SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS has no effect: no route has a limit/);
  },
);
