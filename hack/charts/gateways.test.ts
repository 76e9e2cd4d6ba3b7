import { readFile } from 'node:fs/promises';
import { compilePolicy } from '@tollgate/policies/compile/compile';
import { readPolicy } from '@tollgate/policies/read/read-policy';
import { parseRouteRules } from '@tollgate/policies/routes-file/parse';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { load, loadAll } from 'js-yaml';
import t from 'tap';
import { definitionsAreMissing, gatewayDefinitions } from './support/gateway-crds.ts';
import { clusterArguments, helmIsMissing, renderChart, runHelm } from './support/helm.ts';
import { type ManifestObject, parseManifests, servicePorts } from './support/manifests.ts';

const skip = helmIsMissing() || definitionsAreMissing();

const policies = '--values=charts/tollgate/ci/policies-values.yaml';
const both =
  '--set-json=gateways=[{"kind":"EnvoyGateway","namespace":"shop","name":"shop"},' +
  '{"kind":"Istio","namespace":"mesh","name":"public","provider":"identity"}]';

/** Kinds of the objects that the chart adds for gateways. */
const kinds = new Set(['SecurityPolicy', 'ReferenceGrant', 'AuthorizationPolicy']);

const isOfGateways = ({ kind }: ManifestObject) => kinds.has(kind);

const find = (objects: readonly ManifestObject[], wanted: string) => {
  const object = objects.find(({ kind }) => kind === wanted);
  if (object === undefined) throw new Error(`no ${wanted} was rendered`);
  return object;
};

const renderAuth = async (...args: string[]) =>
  parseManifests(await renderChart('auth', ['--values=charts/auth/ci/full-values.yaml', ...args]));

t.test('the SecurityPolicy of a gateway is that of the example', { skip }, async (t) => {
  const args = ['template', 'tollgate', 'charts/tollgate', '--namespace=tollgate', ...clusterArguments];
  const { stdout } = await runHelm([...args, policies]);
  const objects = parseManifests(stdout);
  // Parsed boundary: our own file.
  const example = load(await readFile('examples/envoy-gateway/identity.yaml', 'utf8')) as ManifestObject;
  t.strictSame(find(objects, 'SecurityPolicy').spec, example.spec);
  t.match(find(objects, 'ReferenceGrant').spec, {
    from: [{ kind: 'SecurityPolicy', namespace: 'shop' }],
    to: [{ kind: 'Service', name: 'tollgate-auth-headless' }],
  });
  const services = servicePorts(objects).map(({ host, port }) => `${host.split('.')[0]}:${port}`);
  const settings = JSON.stringify(objects.filter(({ kind }) => kind === 'Deployment'));
  // By which the xDS server finds whether a Gateway asks the auth server.
  t.match(settings, '"value":"tollgate/tollgate-auth-headless,tollgate/tollgate-auth"');
  for (const address of ['tollgate-xds-headless:18000', 'tollgate-ratelimit-headless:8081']) {
    t.ok(services.includes(address), address);
    t.match(settings, `"value":"${address}"`);
  }
});

t.test('its namespace may call the auth server', { skip }, async (t) => {
  const policy = find(await renderAuth(both), 'NetworkPolicy');
  t.match(JSON.stringify(policy), '"istio-ingress","shop","mesh"');
});

t.test('values that protect nothing end the installation', { skip }, async (t) => {
  for (const [message, ...args] of [
    [/gateways: shop\/shop is listed twice/, both.replace('"mesh","name":"public"', '"shop","name":"shop"')],
    [/gateways: shop\/shop has a provider/, both.replace('"name":"shop"', '"name":"shop","provider":"p"')],
    [/SVC_EXT_AUTHZ_ENABLED is false/, both, '--set=settings.SVC_EXT_AUTHZ_ENABLED=false'],
    [/kind/, both.replace('Istio', 'Kong')],
  ] as const) {
    const { code, stderr } = await runHelm([
      ...['template', 'tg', 'charts/auth', '--values=charts/auth/ci/full-values.yaml'],
      ...[...clusterArguments, ...args],
    ]);
    t.not(code, 0, String(message));
    t.match(stderr, message);
  }
});

const comparison = await readFile('docs/access-policies-compared.md', 'utf8');
const yamlOf = (page: string) => [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text);
/** The YAML of each way, in the order of the columns of the table. */
const ways = yamlOf(comparison);
const fromEnvoyGateway = yamlOf(await readFile('docs/coming-from-envoy-gateway.md', 'utf8'));
const fromKuadrant = yamlOf(await readFile('docs/coming-from-kuadrant.md', 'utf8'));

t.test('the comparison counts objects and lines', async (t) => {
  const count = (row: string) =>
    [...(new RegExp(`^\\| ${row} +(.*)$`, 'm').exec(comparison)?.[1] ?? '').matchAll(/\d+/g)].map(Number);
  t.strictSame(
    count('Objects'),
    ways.map((text) => loadAll(text).length),
  );
  const lines = (text: string) =>
    text
      .trim()
      .split('\n')
      .filter((line) => line !== '---').length;
  t.strictSame(count('Lines'), ways.map(lines));
});

t.test('its AccessPolicy compiles, with the warning that the page explains', async (t) => {
  const read = readPolicy(load(ways[0] ?? ''), 'comparison');
  const compiled = read.ok && compilePolicy(read.resource);
  t.match(compiled, { ok: true, warnings: [{ reason: 'LimitsDoNotCoverAll' }] });
});

t.test('what replaces the objects of others compiles without a warning', async (t) => {
  const pages = [...fromEnvoyGateway, ...fromKuadrant];
  const policies = pages.filter((text) => text.includes('kind: AccessPolicy'));
  t.equal(policies.length, 3);
  for (const text of policies) {
    const read = readPolicy(load(text), 'page');
    t.match(read.ok && compilePolicy(read.resource), { ok: true, warnings: [] });
  }
  const issuers = pages.filter((text) => text.startsWith('issuers:'));
  t.equal(issuers.length, 2);
  for (const text of issuers)
    t.match(parseRouteRules(text), {
      ok: true,
      rules: { issuers: [{ definition: { issuer: 'https://idp.example.com/realms/shop' } }] },
    });
});

t.test('policies whose limits would not be counted end the installation', { skip }, async (t) => {
  const render = (...args: string[]) =>
    runHelm([...['template', 'tg', 'charts/tollgate', ...clusterArguments, policies], ...args]);
  for (const [message, ...args] of [
    [/ratelimit\.rules\.source=xds/, '--set=ratelimit.rules.source=files', '--set=ratelimit.rules.files.a=b'],
    [/SVC_EXT_AUTHZ_RATE_LIMIT_TLS=true/, '--set=ratelimit.tls.existingSecret=tls'],
    [/SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS/, '--set=ratelimit.enabled=false'],
    [/auth\.policies\.xds\.address/, '--set=xds.enabled=false'],
    [
      /auth\.policies\.xds\.tls\.existingSecret=tg-xds-client/,
      ...['--set=auth.certManager.enabled=true', '--set=auth.certManager.issuerRef.name=ca'],
    ],
  ] as const) {
    const { code, stderr } = await render(...args);
    t.not(code, 0, String(message));
    t.match(stderr, message);
  }
  t.equal((await render()).code, 0);
});

t.test('the chart auth alone does not guess where the limiter is', { skip }, async (t) => {
  const alone = [
    'template',
    'a',
    'charts/auth',
    ...clusterArguments,
    '--values=charts/auth/ci/full-values.yaml',
  ];
  const policies = [...alone, '--set=policies.enabled=true'];
  const { code, stderr } = await runHelm(policies);
  t.not(code, 0);
  t.match(stderr, /settings\.SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS/);
  t.match(stderr, /policies\.xds\.address/);
  const limiter = '--set=settings.SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS=limiter:8081';
  t.equal((await runHelm([...policies, limiter, '--set=policies.xds.address=xds:18000'])).code, 0);
});

kubeSuite(t, 'an API server with the definitions of the gateways', async (t, kube) => {
  const compared = ['BackendTrafficPolicy', 'RequestAuthentication', 'EnvoyFilter'];
  await kube.apply(gatewayDefinitions(new Set([...kinds, ...compared])));
  await t.test('accepts the objects of the chart, strictly', async (t) => {
    const items = (await renderAuth(both)).filter(isOfGateways);
    t.strictSame(new Set(items.map(({ kind }) => kind)), kinds);
    for (const { metadata } of items) await kube.apply(namespace(metadata.namespace));
    const { code, stderr } = await dryRun(kube, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    t.equal(code, 0, stderr);
  });
  await t.test('accepts what the pages show of Envoy Gateway and Istio', async (t) => {
    const [, , envoyGateway = '', istio = ''] = ways;
    for (const text of [envoyGateway, istio, fromEnvoyGateway[0] ?? '']) {
      const { code, stderr } = await dryRun(kube, text);
      t.equal(code, 0, stderr);
    }
  });
});

const namespace = (name: string | undefined) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

const dryRun = (kube: KubeApiserver, input: string) =>
  kube.kubectl(['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'], { input });
