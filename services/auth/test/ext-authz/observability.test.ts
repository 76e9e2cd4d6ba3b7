import { createLogger } from '@tollgate/kit/logger';
import { startTracing } from '@tollgate/kit/telemetry';
import { defaultRules } from '@tollgate/policies/routes-file/route-rules';
import { Registry } from 'prom-client';
import t from 'tap';
import { forbidden, noToken, unavailable } from '../../src/ext-authz/denials.ts';
import { observeChecks } from '../../src/ext-authz/observability.ts';
import type { AuthzDecision } from '../../src/ext-authz/result.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz } from '../helpers/authz-client.ts';
import { callerIdentity } from '../helpers/caller.ts';
import { startCollector } from '../helpers/collector.ts';

const request = {
  ...{ method: 'GET', path: '/a?token=secret', host: '', headers: {}, sourceAddress: '192.0.2.1' },
  ...{ authorization: [], forwardedFor: [], headerNames: [] },
};
const allowed: AuthzDecision = { allowed: true, identity: undefined, headers: { set: {}, remove: [] } };

const options = {
  registry: undefined,
  tracing: await startTracing({ serviceName: 'auth', enabled: false, protocol: 'http', samplingRate: 1 }),
  rules: { current: defaultRules },
  policies: undefined,
};

function log(level: 'info' | 'debug') {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { lines, logger: createLogger({ level, format: 'json', destination }) };
}

t.test('decisions are counted by outcome and kind of caller, denials by error code', async (t) => {
  const registry = new Registry();
  const callers = (['user', 'api_key', 'client'] as const).map((kind) => ({
    ...allowed,
    identity: callerIdentity({ kind }),
  }));
  const answers = [
    allowed,
    ...callers,
    noToken(),
    Promise.resolve(noToken()),
    forbidden('route_denied'),
    unavailable(),
  ];
  const { logger } = log('info');
  const authorizer = observeChecks(
    { authorize: () => answers.shift() ?? allowed },
    { ...options, logger, registry },
  );
  for (let i = 0; i < 8; i += 1) await authorizer.authorize(request);
  const text = await registry.metrics();
  for (const kind of ['none', 'user', 'api_key', 'client'])
    t.match(text, `auth_ext_authz_checks_total{outcome="allowed",kind="${kind}"} 1`);
  t.match(text, 'auth_ext_authz_checks_total{outcome="denied"} 3');
  t.match(text, 'auth_ext_authz_checks_total{outcome="unavailable"} 1');
  t.match(text, 'auth_ext_authz_denials_total{error_code="no_authorization"} 2');
  t.match(text, 'auth_ext_authz_check_duration_seconds_count 8');
});

t.test('each check is logged at debug, without the query', async (t) => {
  const { lines, logger } = log('debug');
  const authorizer = observeChecks({ authorize: noToken }, { ...options, logger });
  t.notOk(authorizer.authorize(request) instanceof Promise, 'a synchronous decision stays synchronous');
  t.match(lines, [{ method: 'GET', path: '/a', allowed: false, code: 'no_authorization' }]);
  t.notMatch(JSON.stringify(lines), /secret/);
});

t.test('without metrics, tracing and debug log decisions are not wrapped', async (t) => {
  const { lines, logger } = log('info');
  const authorizer = { authorize: () => allowed };
  t.equal(observeChecks(authorizer, { ...options, logger }), authorizer);
  t.same(lines, []);
});

t.test('the server exports metrics and spans of checks', async (t) => {
  const collected = await startCollector(t);
  const server = await startAuthServer(t, {
    TRACING_ENABLED: 'true',
    METRICS_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  });
  const { accessToken } = await signUp(server);
  const headers = { authorization: `Bearer ${accessToken}` };
  const client = connectAuthz(t, server.extAuthz.grpc);
  await client.check({ method: 'GET', path: '/', headers });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await fetch(`http://127.0.0.1:${server.extAuthz.http}/`, { headers: { ...headers, traceparent } });
  await server.stop();

  const spans = collected
    .flatMap(({ body }) => body.resourceSpans ?? [])
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  t.ok(spans.some(({ name }) => name === 'envoy.service.auth.v3.Authorization/Check'));
  t.match(
    spans.find(({ name }) => name === 'ext_authz'),
    { traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: 'b7ad6b7169203331' },
  );
  const [metrics] = collected.flatMap(({ body }) => body.resourceMetrics ?? []);
  const exported = metrics?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
  t.match(
    exported.find(({ name }) => name === 'auth_ext_authz_check_duration_seconds'),
    { histogram: { dataPoints: [{ count: 2 }] } },
  );
});
