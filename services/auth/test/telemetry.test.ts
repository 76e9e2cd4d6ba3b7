import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { fastify } from 'fastify';
import { Registry } from 'prom-client';
import t from 'tap';
import { connect, disconnect, query } from '../src/db/connection.ts';
import { measureDatabase } from '../src/db/observability.ts';
import { addRequestMetrics, addTracing } from '../src/http/observability.ts';
import { startTelemetry } from '../src/telemetry.ts';
import { signUp, startAuthServer } from './helpers/auth-server.ts';
import { connectAuthz } from './helpers/authz-client.ts';
import { attributesOf, startCollector } from './helpers/collector.ts';
import { testDatabase } from './helpers/test-database.ts';

const off = {
  tracingEnabled: false,
  otlpProtocol: 'http/json',
  otelServiceName: 'auth',
  metricsEnabled: false,
  metricsExporter: 'opentelemetry',
  otelExporterPullHost: '127.0.0.1',
  otelExporterPullPort: 0,
  debug: false,
} as const;

const logger = createLogger({ level: 'fatal', format: 'json' });
const deps = { logger, nowMs: Date.now };
const signal = new AbortController().signal;

t.test('a request is a span with route and parameters, in the trace of the caller', async (t) => {
  const collected = await startCollector(t);
  process.env.OTEL_RESOURCE_ATTRIBUTES = 'deployment.environment.name=test';
  t.teardown(() => delete process.env.OTEL_RESOURCE_ATTRIBUTES);
  const { tracing } = await startTelemetry({ ...off, tracingEnabled: true }, deps);
  const api = fastify();
  addTracing(api as never, tracing);
  api.get('/admin/users/:user_id', (_request, reply) => reply.code(500).send({}));
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const url = await api.listen({ host: '127.0.0.1', port: 0 });
  await fetch(`${url}/admin/users/42?token=secret`, { headers: { traceparent } });
  await fetch(`${url}/nowhere`);
  await api.close();
  await tracing.shutdown();

  const [{ resource, scopeSpans } = { resource: undefined, scopeSpans: [] }] = collected.flatMap(
    ({ body }) => body.resourceSpans ?? [],
  );
  t.match(attributesOf(resource?.attributes), {
    'service.name': 'auth',
    'auth.version': /^v\d/,
    'deployment.environment.name': 'test',
  });
  const [span, lost] = scopeSpans.flatMap(({ spans }) => spans);
  t.match(span, {
    name: 'GET /admin/users/{user_id}',
    traceId: '0af7651916cd43dd8448eb211c80319c',
    parentSpanId: 'b7ad6b7169203331',
    status: { code: 2 },
  });
  t.match(attributesOf(span?.attributes), {
    'http.route': '/admin/users/{user_id}',
    'http.route.params.user_id': '42',
    'http.response.status_code': 500,
    'url.path': '/admin/users/42',
  });
  t.equal(lost?.name, 'GET');
  t.notMatch(JSON.stringify(collected), /secret/);
});

t.test('the server exports spans and metrics, including the last ones on stop', async (t) => {
  const collected = await startCollector(t);
  const server = await startAuthServer(t, {
    TRACING_ENABLED: 'true',
    METRICS_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_SERVICE_NAME: 'shop-auth',
  });
  await server.call('GET', '/settings');
  await server.stop();

  const [spans] = collected.flatMap(({ body }) => body.resourceSpans ?? []);
  t.match(attributesOf(spans?.resource.attributes), { 'service.name': 'shop-auth' });
  t.match(spans?.scopeSpans[0]?.spans, [{ name: 'GET /settings' }]);
  const [metrics] = collected.flatMap(({ body }) => body.resourceMetrics ?? []);
  t.match(attributesOf(metrics?.resource.attributes), { 'service.name': 'shop-auth', 'auth.version': /^v/ });
  const exported = metrics?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
  const duration = exported.find(({ name }) => name === 'http_server_request_duration_seconds');
  t.match(duration, { histogram: { dataPoints: [{ count: 0 }, { count: 1 }] } });
  t.ok(exported.some(({ name }) => name.startsWith('nodejs_eventloop_lag')));
});

t.test('statements are child spans without values, and errors have their code', async (t) => {
  const collected = await startCollector(t);
  const server = await startAuthServer(t, {
    TRACING_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  });
  const body = { email: 'traced@example.com', password: 'correct horse' };
  await server.call('POST', '/signup', { body });
  await server.call('POST', '/token?grant_type=password', { body: { ...body, password: 'wrong' } });
  await server.stop();

  const spans = collected
    .flatMap((request) => request.body.resourceSpans ?? [])
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  const request = spans.find(({ name }) => name === 'POST /signup');
  const statements = spans.filter(
    ({ traceId, name }) => traceId === request?.traceId && name !== request?.name,
  );
  t.ok(statements.length > 0);
  const insert = statements.find(({ name }) => /^(?:INSERT|WITH) /.test(name));
  const attributes = attributesOf(insert?.attributes);
  t.match(attributes, {
    'db.system.name': 'postgresql',
    'db.namespace': String,
    'db.operation.name': /^(?:INSERT|WITH)$/,
    'db.query.text': /\$1/,
  });
  t.notOk('tollgate.auth.error_code' in attributesOf(request?.attributes));
  const refused = spans.find(({ name }) => name === 'POST /token');
  t.match(attributesOf(refused?.attributes), {
    'http.response.status_code': 400,
    'tollgate.auth.error_code': 'invalid_credentials',
  });
  const known = new Set(spans.map(({ spanId }) => spanId));
  t.ok(statements.every(({ parentSpanId = '' }) => known.has(parentSpanId)));
  t.notMatch(JSON.stringify(collected), /traced@example|correct horse|\$argon2/);
  // The clean-up and the start run statements, too: outside of requests they are not traced.
  t.equal(
    spans.filter(({ parentSpanId }) => !parentSpanId).every(({ name }) => name.startsWith('POST')),
    true,
  );
});

t.test('the span of an ext_authz check has rule and outcome', async (t) => {
  const collected = await startCollector(t);
  const folder = makeTextFolder(t);
  folder.write(
    'rules.yaml',
    'routes:\n  - path: /docs/**\n    access: public\n  - path: /admin/**\n    methods: [GET]\n    access: deny\n',
  );
  const server = await startAuthServer(t, {
    TRACING_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/rules.yaml`,
  });
  const { accessToken } = await signUp(server);
  const check = (path: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${server.extAuthz.http}${path}`, { headers });
  await check('/docs/a?secret=1');
  await check('/admin/users');
  await check('/orders');
  const headers = { authorization: `Bearer ${accessToken}` };
  await check('/orders', headers);
  await check('/orders', headers);
  await connectAuthz(t, server.extAuthz.grpc).check({ method: 'GET', path: '/admin/x' });
  await server.stop();

  const spans = collected
    .flatMap((request) => request.body.resourceSpans ?? [])
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  const checks = spans
    .filter(({ name }) => name === 'ext_authz' || name.endsWith('Authorization/Check'))
    .map(({ attributes }) =>
      Object.fromEntries(
        Object.entries(attributesOf(attributes)).map(([key, value]) => [
          key.replace('tollgate.authz.', ''),
          value,
        ]),
      ),
    );
  const refused = {
    route_rule: 'GET,HEAD /admin/**',
    outcome: 'denied',
    error_code: 'route_denied',
    status_code: 403,
  };
  t.same(checks, [
    { route_rule: '/docs/**', outcome: 'allowed' },
    refused,
    { route_rule: '(default)', outcome: 'denied', error_code: 'no_authorization', status_code: 401 },
    { route_rule: '(default)', cache_hit: false, outcome: 'allowed' },
    { route_rule: '(default)', cache_hit: true, outcome: 'allowed' },
    refused,
  ]);
  t.ok(
    spans.some(
      ({ name, attributes }) => name.startsWith('SELECT') && attributesOf(attributes)['db.query.text'],
    ),
    'the question to the database is a span, too',
  );
  t.notMatch(JSON.stringify(collected), new RegExp(`secret=|${accessToken}`));
});

t.test('the default export protocol is protobuf', async (t) => {
  const collected = await startCollector(t);
  const server = await startAuthServer(t, { TRACING_ENABLED: 'true', METRICS_ENABLED: 'true' });
  await server.call('GET', '/health');
  await server.stop();
  t.same(
    new Set(collected.map(({ path, contentType }) => `${path} ${contentType}`)),
    new Set(['/v1/traces application/x-protobuf', '/v1/metrics application/x-protobuf']),
  );
});

t.test('nothing is exported by default', async (t) => {
  const collected = await startCollector(t);
  const server = await startAuthServer(t);
  await server.call('GET', '/health');
  await server.stop();
  t.same(collected, []);
});

t.test('metrics are served at / and /metrics', async (t) => {
  for (const exporter of ['pull', 'prometheus']) {
    const server = await startAuthServer(t, {
      METRICS_ENABLED: 'true',
      METRICS_EXPORTER: exporter,
      OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
      OTEL_EXPORTER_PULL_PORT: '0',
    });
    await server.call('GET', '/health');
    await server.call('GET', '/nowhere');
    const url = /"url":"(http:\/\/127\.0\.0\.1:\d+\/)"/.exec(server.logs())?.[1] ?? '';
    const path = exporter === 'pull' ? '' : 'metrics';
    const pull = async () => (await fetch(`${url}${path}`)).text();
    const text = await awaitUntil(
      async () => {
        const pulled = await pull();
        return pulled.includes('route="none"') && pulled;
      },
      { what: 'both requests to be counted' },
    );
    t.match(
      text,
      /http_server_request_duration_seconds_count\{method="GET",route="\/health",status="200"\} 1/,
    );
    t.match(text, /http_server_request_duration_seconds_count\{method="GET",route="none",status="404"\} 1/);
    t.match(text, /nodejs_heap_size_used_bytes \d+/);
    t.match(text, /auth_http_responses_total\{result="success"\} 1\n/);
    t.match(text, /auth_http_responses_total\{result="client_error"\} 1\n/);
    t.match(text, /auth_http_responses_total\{result="server_error"\} 0\n/);
  }
});

t.test('a client that disconnects is counted and no longer active', async (t) => {
  const { registry, components } = await startTelemetry(
    { ...off, metricsEnabled: true, metricsExporter: 'pull' },
    deps,
  );
  t.teardown(() => Promise.all(components.map((component) => component.stop?.({ signal }))));
  const api = fastify();
  addRequestMetrics(api as never, registry);
  const never = Promise.withResolvers<never>();
  api.get('/slow', () => never.promise);
  t.teardown(() => api.close());
  const url = await api.listen({ host: '127.0.0.1', port: 0 });
  const leave = new AbortController();
  const left = t.rejects(fetch(`${url}/slow`, { signal: leave.signal }));
  const active = async (value: number) =>
    (await registry?.metrics())?.includes(`http_server_active_requests ${value}\n`) ?? false;
  await awaitUntil(() => active(1), { what: 'the request to arrive' });
  leave.abort();
  await left;
  await awaitUntil(() => active(0), { what: 'the request to end' });
  t.match(await registry?.metrics(), /route="\/slow",status="499"\} 1/);
});

t.test('DEBUG=true logs messages of the SDK', async (t) => {
  await startCollector(t);
  const server = await startAuthServer(t, { DEBUG: 'true', TRACING_ENABLED: 'true' });
  await server.call('GET', '/health');
  await server.stop();
  t.match(server.logs(), /"component":"telemetry SDK"/);
});

t.test('statements that wait for a connection count as in flight', async (t) => {
  const registry = new Registry();
  const { url } = await testDatabase(t);
  const pool = connect({ databaseUrl: url, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => disconnect(pool));
  const sql = measureDatabase(pool, registry);
  const inFlight = async () =>
    (await registry.getSingleMetric('auth_database_statements_in_flight')?.get())?.values[0]?.value;
  t.match(await registry.metrics(), 'auth_database_pool_connections 1\n');
  const release = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const transaction = sql.begin(async (connection) => {
    await connection`select 1`;
    begun.resolve();
    await release.promise;
  });
  await begun.promise;
  const statement = query(sql, 'select 1 as one', []);
  t.equal(await inFlight(), 2);
  release.resolve();
  await transaction;
  t.strictSame([...(await statement)], [{ one: 1 }]);
  await t.rejects(query(sql, 'select 1 / 0', []), /division by zero/);
  t.equal(await inFlight(), 0);
});
