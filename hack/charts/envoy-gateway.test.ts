import tls from 'node:tls';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { credentials, ServerCredentials } from '@grpc/grpc-js';
import { RateLimitResponse_Code as Code } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { RateLimitUnit } from '@tollgate/proto/envoy/type/v3/ratelimit_unit';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import type { DescriptorSpec } from '@tollgate/rules/rule-document';
import { toMessage } from '@tollgate/rules/rule-message';
import { type AdsServer, startAdsServer, type TestResponse } from '@tollgate/testkit/ads-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificate, type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { startRedis } from '@tollgate/testkit/redis';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { connect, type GrpcTestClient } from '../../services/ratelimit/test/support/grpc-client.ts';
import { containersAreImpossible } from './kubelet/container.ts';
import { runPod, type StartedPod, startPod } from './kubelet/pod.ts';
import { podSurroundings } from './kubelet/pod-spec.ts';
import { checkoutImage } from './kubelet/service-image.ts';
import { deploymentVariables, nodeId, type Ports } from './support/envoy-gateway.ts';

const skip = containersAreImpossible();

// As the ADS server of Envoy Gateway.
tls.DEFAULT_MIN_VERSION = 'TLSv1.3';

const toData = (texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));

/** The metrics of Envoy Gateway's mapping file: deeper keys are dropped. */
const metricMapping = {
  defaults: { timer_type: 'histogram' },
  mappings: [
    ...['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'].flatMap((stat) => {
      const name = `ratelimit_service_rate_limit_${stat}`;
      const labels = { domain: '$1', key1: '$2' };
      const deep = String.raw`ratelimit\.service\.rate_limit\.([^.]*)\.([^.]*)\.([^.]*)(\..*)?\.${stat}`;
      return [
        { match: `ratelimit.service.rate_limit.*.*.${stat}`, name, labels },
        { match: deep, match_type: 'regex', name, labels: { ...labels, key2: '$3' } },
      ];
    }),
    {
      match: 'ratelimit.service.call.should_rate_limit.*',
      name: 'ratelimit_service_should_rate_limit_error',
      match_metric_type: 'counter',
      labels: { err_type: '$1' },
    },
    {
      match: 'ratelimit_server.*.total_requests',
      name: 'ratelimit_service_total_requests',
      labels: { grpc_method: '$1' },
    },
    {
      match: 'ratelimit_server.*.response_time',
      name: 'ratelimit_service_response_time_seconds',
      labels: { grpc_method: '$1' },
      scale: 0.001,
    },
  ],
};

/** The Pod of that Deployment: `/bin/ratelimit` as user 65534, without a writable directory. */
function startLimiter(
  t: Test,
  { ca }: Certificates,
  { cert, key }: Certificate,
  ports: Ports,
): Promise<StartedPod> {
  const objects = [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'envoy-rate-limit' },
      data: toData({ 'ca.crt': ca.cert, 'tls.crt': cert, 'tls.key': key }),
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'statsd-exporter-config' },
      data: { 'conf.yaml': JSON.stringify(metricMapping) },
    },
  ];
  const probe = { httpGet: { path: '/healthcheck', port: ports.http }, timeoutSeconds: 1 };
  const container = {
    name: 'envoy-ratelimit',
    image: 'tollgate/ratelimit',
    command: ['/bin/ratelimit'],
    env: Object.entries(deploymentVariables(ports)).map(([name, value]) => ({ name, value })),
    ports: [
      { name: 'grpc', containerPort: ports.grpc },
      { name: 'metrics', containerPort: ports.metrics },
    ],
    volumeMounts: [
      { name: 'certs', mountPath: '/certs', readOnly: true },
      { name: 'statsd-exporter-config', mountPath: '/etc/statsd-exporter', readOnly: true },
    ],
    startupProbe: probe,
    readinessProbe: probe,
    livenessProbe: probe,
  };
  return startPod(t, {
    spec: {
      containers: [container],
      volumes: [
        { name: 'certs', secret: { secretName: 'envoy-rate-limit' } },
        { name: 'statsd-exporter-config', configMap: { name: 'statsd-exporter-config', optional: true } },
      ],
      automountServiceAccountToken: false,
      securityContext: { runAsUser: 65534 },
    },
    node: {
      findImage: () => checkoutImage('ratelimit'),
      hosts: { 'envoy-gateway': '127.0.0.1' },
      environment: {},
    },
    surroundings: podSurroundings(objects, {
      name: 'envoy-ratelimit-1',
      namespace: 'envoy-gateway-system',
      token: '',
    }),
  });
}

/** One rule as Envoy Gateway translates it: a route, then a chain with the limit at its end. */
interface Rule {
  readonly domain?: string;
  readonly route: string;
  /** Keys with their values; the key only where a counter is kept for each value. */
  readonly chain: readonly (readonly [key: string, value?: string])[];
  readonly limit: { readonly unit: string; readonly requestsPerUnit: number };
  readonly shadow?: boolean;
}

const listener = 'shop/gateway/http';

const toRoute = (name: string, host = '*') => `httproute/shop/${name}/rule/0/match/0/${host}`;

function toSpec({ route, chain, limit, shadow = false }: Rule): DescriptorSpec {
  const shadowMode = shadow;
  const leaf = chain.reduceRight<DescriptorSpec | undefined>((below, [key, value]) => {
    const inner = below === undefined ? { rateLimit: limit } : { descriptors: [below] };
    return { key, value, shadowMode, ...inner };
  }, undefined);
  return { key: route, value: route, shadowMode, descriptors: leaf === undefined ? [] : [leaf] };
}

/** All rules of a domain are one resource, named after it. */
function toResponse(versionInfo: string, rules: readonly Rule[]): TestResponse {
  const domains = Map.groupBy(rules, ({ domain = listener }) => domain);
  const typeUrl = `type.googleapis.com/${RateLimitConfigSchema.typeName}`;
  const resources = [...domains].map(([domain, own]) => {
    // Rules of one route are below one descriptor.
    const routes = Map.groupBy(own.map(toSpec), ({ key }) => key);
    const descriptors = [...routes.values()].flatMap(([first, ...others]) =>
      first === undefined
        ? []
        : { ...first, descriptors: [first, ...others].flatMap(({ descriptors: below = [] }) => below) },
    );
    return anyPack(RateLimitConfigSchema, toMessage({ source: '', domain, descriptors }));
  });
  return { versionInfo, typeUrl, resources };
}

/** A window that does not end during the test. */
const year = (requestsPerUnit: number) => ({ unit: 'year', requestsPerUnit });

const deep = Array.from({ length: 24 }, (_, i): [string, string] => [
  `rule-0-match-${i}`,
  `rule-0-match-${i}`,
]);

const rules: readonly Rule[] = [
  { route: toRoute('any-host'), chain: [['rule-0-match--1', 'rule-0-match--1']], limit: year(2) },
  {
    route: toRoute('any-host', 'api_example_com'),
    chain: [['rule-0-match--1', 'rule-0-match--1']],
    limit: year(3),
  },
  {
    route: toRoute('headers'),
    chain: [['rule-0-match-0', 'rule-0-match-0'], ['rule-0-match-1']],
    limit: { unit: 'week', requestsPerUnit: 1 },
  },
  {
    route: toRoute('paths'),
    chain: [
      ['rule-0-method', 'rule-0-method'],
      ['rule-0-path', 'rule-0-path'],
    ],
    limit: year(0),
  },
  {
    route: toRoute('addresses'),
    chain: [['masked_remote_address', '0.0.0.0/0'], ['remote_address']],
    limit: { unit: 'year', requestsPerUnit: 1 },
  },
  {
    route: toRoute('inverted'),
    chain: [['masked_remote_address', 'invert:10.0.0.0/8']],
    limit: { unit: 'month', requestsPerUnit: 1 },
  },
  { route: toRoute('deep'), chain: deep, limit: { unit: 'day', requestsPerUnit: 1 } },
  {
    route: toRoute('shadow'),
    chain: [
      ['rule-0-match-0', 'rule-0-match-0'],
      ['rule-0-match-1', 'rule-0-match-1'],
    ],
    limit: year(1),
    shadow: true,
  },
  {
    route: toRoute('cost'),
    chain: [['rule-0-match--1', 'rule-0-match--1']],
    limit: year(10),
  },
  {
    route: toRoute('metadata'),
    chain: [['rule-0-match--1', 'rule-0-match--1']],
    limit: year(5),
  },
  {
    domain: 'shop/limits',
    route: 'shop/limits/rule/0',
    chain: [['rule-0-match-0', 'rule-0-match-0']],
    limit: year(1),
  },
];

/** The descriptor that Envoy sends for a rule; `distinct` is the value of a key without one. */
function toDescriptor({ route, chain }: Rule, distinct = '') {
  const entries = chain.map(([key, value = distinct]) => ({ key, value }));
  return { entries: [{ key: route, value: route }, ...entries] };
}

function findRule(route: string): Rule {
  const rule = rules.find((one) => one.route === route);
  if (rule === undefined) throw new Error(`no rule of ${route}`);
  return rule;
}

async function enforceEveryForm(t: Test, client: GrpcTestClient): Promise<void> {
  const call = async (route: string, more: object = {}, distinct = ''): Promise<Code> => {
    const rule = findRule(route);
    const descriptors = [{ ...toDescriptor(rule, distinct), ...more }];
    const { overallCode } = await client.shouldRateLimit({ domain: rule.domain ?? listener, descriptors });
    return overallCode;
  };
  const calls = async (route: string, count: number, more: object = {}): Promise<string> => {
    let codes = '';
    for (let i = 0; i < count; i += 1) codes += (await call(route, more)) === Code.OK ? '+' : '-';
    return codes;
  };
  t.equal(await calls(toRoute('any-host'), 3), '++-', 'a value that ends with a literal *');
  t.equal(await calls(toRoute('any-host', 'api_example_com'), 4), '+++-', 'exact values before wildcards');
  t.equal(await call(toRoute('headers'), {}, 'alice'), Code.OK);
  t.equal(await call(toRoute('headers'), {}, 'alice'), Code.OVER_LIMIT);
  t.equal(await call(toRoute('headers'), {}, 'a*'), Code.OK, 'a counter for each value, * included');
  t.equal(await calls(toRoute('paths'), 1), '-', 'a limit of 0');
  t.equal(await call(toRoute('addresses'), {}, '192.0.2.1'), Code.OK);
  t.equal(await call(toRoute('addresses'), {}, '192.0.2.1'), Code.OVER_LIMIT);
  t.equal(await call(toRoute('addresses'), {}, '192.0.2.2'), Code.OK);
  t.equal(await calls(toRoute('inverted'), 2), '+-');
  t.equal(await calls(toRoute('deep'), 2), '+-', 'any depth');
  t.equal(await calls(toRoute('shadow'), 3), '+++', 'shadow mode');
  t.equal(await calls('shop/limits/rule/0', 2), '+-', 'a shared rule');

  const cost = { hitsAddend: 4n };
  t.equal(await calls(toRoute('cost'), 2, cost), '++');
  t.equal(await calls(toRoute('cost'), 2, { hitsAddend: 0n }), '++', 'a cost of 0 only checks');
  t.equal(await calls(toRoute('cost'), 1, cost), '-');
  const limit = { limit: { requestsPerUnit: 2, unit: RateLimitUnit.YEAR } };
  t.equal(await calls(toRoute('metadata'), 3, limit), '++-', 'the limit of metadata');
  const { statuses } = await client.shouldRateLimit({
    domain: listener,
    descriptors: [toDescriptor(findRule(toRoute('metadata')))],
  });
  t.match(statuses, [{ currentLimit: { requestsPerUnit: 5 }, limitRemaining: 1 }]);
  t.ok(statuses[0]?.durationUntilReset, 'for X-RateLimit-Reset');
}

t.test('the image is the rate limit service of Envoy Gateway, with its environment', { skip }, async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const namespaced = [
    '',
    '.envoy-gateway-system',
    '.envoy-gateway-system.svc',
    '.envoy-gateway-system.svc.cluster.local',
  ];
  const server = certificates.issue({
    name: 'envoy-gateway',
    subjectAltNames: namespaced.map((suffix) => `DNS:envoy-gateway${suffix}`),
  });
  const limiter = certificates.issue({
    name: 'envoy-rate-limit',
    commonName: '*',
    subjectAltNames: ['DNS:*.envoy-gateway-system'],
  });
  const envoy = certificates.issue({
    name: 'envoy',
    commonName: '*',
    subjectAltNames: ['DNS:*.envoy-gateway-system'],
  });
  const pair = { private_key: Buffer.from(server.key), cert_chain: Buffer.from(server.cert) };
  const ca = Buffer.from(certificates.ca.cert);
  const startGateway = (port: number): Promise<AdsServer> =>
    startAdsServer(t, { port, nodeId, credentials: ServerCredentials.createSsl(ca, [pair], true) });

  const redis = await startRedis();
  t.teardown(redis.stop);
  const [metrics, http, grpc, debug] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const first = await startGateway(0);
  const ports: Ports = { ads: first.port, redis: redis.port, metrics, http, grpc, debug };
  const pod = await startLimiter(t, certificates, limiter, ports);
  await pod.askProbes();

  // Envoy does not verify the name.
  const trust = { checkServerIdentity: () => undefined };
  const channel = credentials.createSsl(ca, Buffer.from(envoy.key), Buffer.from(envoy.cert), trust);
  const client = connect(t, `127.0.0.1:${grpc}`, channel);
  const anonymous = connect(t, `127.0.0.1:${grpc}`, credentials.createSsl(ca, null, null, trust));
  const [rule] = rules;
  const request = { domain: listener, descriptors: rule === undefined ? [] : [toDescriptor(rule)] };

  await t.test('it is healthy before Envoy Gateway has a first snapshot', async (t) => {
    await awaitUntil(() => first.requests.length > 0, { what: 'a subscription' });
    t.match(first.requests[0], { node: { id: nodeId }, versionInfo: '' });
    await t.rejects(client.shouldRateLimit(request), { message: /no rate limit configuration loaded/ });
    await t.rejects(anonymous.shouldRateLimit(request), 'clients need a certificate of the authority');
  });

  await t.test('every form of a rule is enforced', async (t) => {
    first.send(toResponse('1', rules));
    t.notOk((await first.answerTo('1')).errorDetail);
    await enforceEveryForm(t, client);
  });

  await t.test('metrics have the names and labels of the mapping of Envoy Gateway', async (t) => {
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    const route = toRoute('shadow');
    const labels = `domain="shop/gateway/http",key1="${route}_${route}",key2="rule-0-match-0_rule-0-match-0"`;
    for (const [name, value] of [
      ['total_hits', 3],
      ['over_limit', 2],
      ['shadow_mode', 2],
      ['within_limit', 1],
      ['near_limit', 1],
    ])
      t.match(text, `ratelimit_service_rate_limit_${name}{${labels}} ${value}\n`);
    for (const line of [
      'ratelimit_service_should_rate_limit_error{err_type="service_error"} 1\n',
      'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} ',
      'ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="0.005"} ',
      'ratelimit_service_config_load_success 1\n',
    ])
      t.match(text, line);
  });

  await t.test('after a restart of Envoy Gateway its rules are followed again', async (t) => {
    first.stop();
    await awaitUntil(() => /management server unreachable/.test(pod.logs()), {
      what: 'the loss of the server',
    });
    t.equal((await client.shouldRateLimit(request)).overallCode, Code.OVER_LIMIT, 'limits stay');
    const second = await startGateway(ports.ads);
    // Its versions start at 1 again.
    second.send(toResponse('1', [{ ...findRule(toRoute('any-host')), limit: year(1_000) }]));
    t.notOk((await second.answerTo('1')).errorDetail);
    await awaitUntil(async () => (await client.shouldRateLimit(request)).overallCode === Code.OK, {
      what: 'the new limit',
    });
  });

  t.notMatch(pod.logs(), 'metrics mapping');
  t.notMatch(pod.logs(), /level=error|possibly misspelled/);
});

t.test('the other programs of envoyproxy/ratelimit are in the image, too', { skip }, async (t) => {
  const print = (program: string) =>
    runPod({
      spec: {
        containers: [{ name: 'a', image: 'tollgate/ratelimit', command: [program], args: ['-help'] }],
        automountServiceAccountToken: false,
        securityContext: { runAsUser: 65534 },
      },
      node: { findImage: () => checkoutImage('ratelimit'), hosts: {}, environment: {} },
      surroundings: podSurroundings([], { name: 'a', namespace: 'b', token: '' }),
    });
  t.match(await print('/bin/config_check'), /^tollgate-ratelimit-check/);
  t.match(await print('/bin/client'), /^tollgate-ratelimit-client/);
});
