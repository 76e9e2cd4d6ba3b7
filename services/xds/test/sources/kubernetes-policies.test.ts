import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import { type AccessConfig, AccessConfigSchema } from '@tollgate/proto/tollgate/policy/v1/access_config';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import { accessConfigType } from '../../src/policies/access-config.ts';
import { connectAds } from '../support/ads-client.ts';
import { policyCrdFile, prepareCluster } from '../support/cluster.ts';
import { perUser } from '../support/policies.ts';
import { startApp } from '../support/start-app.ts';

const gatewayApi = 'gateway.networking.k8s.io';

const policy = (name: string, spec: object) => ({
  apiVersion: 'policy.tollgate.dev/v1alpha1',
  kind: 'AccessPolicy',
  metadata: { name, namespace: 'shop' },
  spec,
});

const ofGatewayApi = (kind: string, name: string, spec: object) => ({
  apiVersion: `${gatewayApi}/v1`,
  kind,
  metadata: { name, namespace: 'shop' },
  spec,
});

/** A CRD without a schema. */
const definition = (
  kind: string,
  plural: string,
  { group = gatewayApi, scope = 'Namespaced', version = 'v1' } = {},
) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: `${plural}.${group}`,
    annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api/pull/1' },
  },
  spec: {
    ...{ group, scope },
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        ...{ name: version, served: true, storage: true, subresources: { status: {} } },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        },
      },
    ],
  },
});

const apply = (kube: KubeApiserver, ...manifests: readonly object[]) =>
  kube.apply(manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));

const established = (kube: KubeApiserver) =>
  kube.kubectl(['wait', '--for=condition=Established', 'crd', '--all']);

/** An xDS server of the cluster, and what an auth server that accepts everything has. */
async function startServer(t: Test, kube: KubeApiserver) {
  const app = await startApp(t, {
    ...{ XDS_SOURCE: 'kubernetes', KUBECONFIG: kube.kubeconfigFor('admin'), XDS_DELETION_DELAY: '0s' },
    ...{ XDS_LEASE_NAMESPACE: 'shop', XDS_STATUS_DEBOUNCE: '10ms' },
  });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send({ typeUrl: accessConfigType, node: { id: 'auth' } });
  let current: readonly AccessConfig[] | undefined;
  let answered = 0;
  const acknowledge = () => {
    for (const { resources, versionInfo, nonce: responseNonce } of stream.responses.slice(answered)) {
      answered += 1;
      current = resources.map(({ value }) => fromBinary(AccessConfigSchema, value));
      stream.send({ typeUrl: accessConfigType, versionInfo, responseNonce });
    }
    return summarize(current);
  };
  return {
    /** Waits for these policies and rules of routes in the namespace shop. */
    has: (expected: Readonly<Record<string, unknown>>) =>
      awaitUntil(() => isDeepStrictEqual(acknowledge(), expected), {
        what: `${JSON.stringify(expected)}, not ${JSON.stringify(summarize(current))}`,
      }),
    /** Waits for these numbers of policies that gateways do not enforce, by reason. */
    unenforced: (expected: Readonly<Record<string, number>>) =>
      awaitUntil(async () => isDeepStrictEqual(await readUnenforced(app.ports.admin), expected), {
        what: `unenforced policies: ${JSON.stringify(expected)}`,
      }),
    lines: app.lines,
    stop: () => app.lifecycle.stop('test'),
  };
}

async function readUnenforced(port: number): Promise<Readonly<Record<string, number>>> {
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const series = metrics.matchAll(/^tollgate_xds_unenforced_policies\{reason="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...series].map(([, reason = '', count]) => [reason, Number(count)]));
}

/** Hosts by policy, and policy and hosts by rule. */
function summarize(configs: readonly AccessConfig[] | undefined) {
  return (
    configs &&
    Object.fromEntries(
      configs.flatMap(({ policies, routes }) => [
        ...policies.map(({ name, spec, deniedHosts }): [string, unknown] => [
          name,
          spec === '' ? deniedHosts.map((host) => `${host} denied`) : 'valid',
        ]),
        ...routes.map(({ kind, name, rules }): [string, unknown] => [
          `${kind} ${name}`,
          rules.map(({ policy, hosts, gateways }) => [policy, ...hosts, ...gateways].join(' ')),
        ]),
      ]),
    )
  );
}

kubeSuite(t, 'AccessPolicies of a cluster', async (t, kube) => {
  await prepareCluster(kube, ['shop']);
  const allowHosts = (hosts: string) =>
    kube.kubectl([
      ...['annotate', 'namespace', 'shop', '--overwrite'],
      `policy.tollgate.dev/allowed-hosts=${hosts}`,
    ]);
  await allowHosts('api.test web.test');
  const server = await startServer(t, kube);

  await t.test('are served once their CRD exists', async () => {
    const message = 'access policies held back, auth servers keep theirs or deny';
    await awaitUntil(() => server.lines.some((line) => line['@message'] === message), { what: 'the CRD' });
    await kube.apply(readFileSync(policyCrdFile, 'utf8'));
    await established(kube);
    await server.has({});
    await apply(kube, policy('api', { hosts: ['api.test'], limits: [perUser] }));
    await server.has({ api: 'valid' });
  });

  await t.test('have only hosts that the annotation of their namespace allows', async () => {
    await apply(kube, policy('taken', { hosts: ['bank.test'] }));
    await apply(kube, policy('web', { hosts: ['web.test'] }));
    await server.has({ api: 'valid', web: 'valid' });
    await allowHosts('* https://bank.test');
    await server.has({ api: 'valid', taken: 'valid', web: 'valid' });
    const ignored = server.lines.filter(({ '@message': text }) => /^ignored entries/.test(String(text)));
    t.match(ignored, [{ namespace: 'shop', invalid: ['https://bank.test'], count: 1 }]);
    await kube.kubectl(['delete', 'ap', '-n', 'shop', 'taken', 'web']);
    await server.has({ api: 'valid' });
  });

  await t.test('are for routes once the CRDs of Gateway API exist', async () => {
    await apply(
      kube,
      policy('orders', {
        targetRefs: [{ group: gatewayApi, kind: 'HTTPRoute', name: 'orders' }],
        limits: [perUser],
      }),
    );
    await server.has({ api: 'valid', orders: 'valid' });
    await apply(kube, definition('Gateway', 'gateways'), definition('HTTPRoute', 'httproutes'));
    await established(kube);
    await apply(
      kube,
      ofGatewayApi('Gateway', 'main', { listeners: [{ name: 'http', protocol: 'HTTP', port: 80 }] }),
      ofGatewayApi('HTTPRoute', 'orders', {
        parentRefs: [{ name: 'main' }],
        hostnames: ['shop.test'],
        rules: [{}],
      }),
    );
    await server.has({
      api: 'valid',
      orders: 'valid',
      'HTTPRoute orders': ['shop/orders shop.test shop/main:80'],
    });
  });

  await t.test('keep their routes while the version of routes is not served', async () => {
    const serve = (served: boolean) =>
      kube.kubectl([
        ...['patch', 'crd', `httproutes.${gatewayApi}`, '--type=json'],
        `--patch=[{"op":"replace","path":"/spec/versions/0/served","value":${served}}]`,
      ]);
    await serve(false);
    const isMissing = ({ reason }: Record<string, unknown>) =>
      /no longer has httproutes/.test(String(reason));
    await awaitUntil(() => server.lines.some(isMissing), { what: 'the outage' });
    await apply(kube, policy('other', { hosts: ['web.test'] }));
    const routes = { 'HTTPRoute orders': ['shop/orders shop.test shop/main:80'] };
    await server.has({ api: 'valid', orders: 'valid', other: 'valid', ...routes });
    await serve(true);
    const isBack = (line: Record<string, unknown>) =>
      line['@message'] === 'following objects again' && line.resource === 'httproutes';
    await awaitUntil(() => server.lines.some(isBack), { what: 'the version' });
    await kube.kubectl(['delete', 'ap', '-n', 'shop', 'other']);
    await server.has({ api: 'valid', orders: 'valid', ...routes });
  });

  await t.test('say which others replace them, and whose overrides hold in addition', async () => {
    const targetRefs = [{ group: gatewayApi, kind: 'Gateway', name: 'main' }];
    await apply(kube, policy('base', { targetRefs, overrides: { access: { type: 'Authenticated' } } }));
    await server.has({
      ...{ api: 'valid', base: 'valid', orders: 'valid' },
      'Gateway main': ['shop/base * shop/main:80'],
      'HTTPRoute orders': ['shop/orders shop.test shop/main:80'],
    });
    const untilMessage = (name: string, type: string, pattern: RegExp) =>
      awaitUntil(
        async () => {
          const jsonPath = `{.status.ancestors[0].conditions[?(@.type=="${type}")].message}`;
          const { stdout } = await kube.kubectl(['get', 'ap', '-n', 'shop', name, `-o=jsonpath=${jsonPath}`]);
          return pattern.test(stdout);
        },
        { what: `${type} of ${name}` },
      );
    await untilMessage('orders', 'Overridden', /^overrides of AccessPolicy shop\/base hold/);
    await untilMessage('base', 'Programmed', /replace .* AccessPolicy shop\/orders; its overrides hold/);
    await kube.kubectl(['delete', 'ap', '-n', 'shop', 'base']);
    await untilMessage('orders', 'Overridden', /^$/);
  });

  await t.test('are known to be unenforced once the CRDs of Envoy Gateway exist', async () => {
    const envoyGateway = 'gateway.envoyproxy.io';
    await apply(
      kube,
      definition('GatewayClass', 'gatewayclasses', { scope: 'Cluster' }),
      definition('SecurityPolicy', 'securitypolicies', { group: envoyGateway, version: 'v1alpha1' }),
    );
    await established(kube);
    await apply(kube, {
      ...ofGatewayApi('GatewayClass', 'eg', { controllerName: `${envoyGateway}/gatewayclass-controller` }),
      metadata: { name: 'eg' },
    });
    const secure = (name: string, kind: string, spec: object) => ({
      ...policy(name, { targetRefs: [{ group: gatewayApi, kind, name }], ...spec }),
      ...{ apiVersion: `${envoyGateway}/v1alpha1`, kind: 'SecurityPolicy' },
    });
    await server.unenforced({ Bypassed: 0, NotAttached: 0 });
    const listeners = [{ name: 'http', protocol: 'HTTP', port: 80 }];
    await apply(kube, ofGatewayApi('Gateway', 'main', { gatewayClassName: 'eg', listeners }));
    await server.unenforced({ Bypassed: 0, NotAttached: 1 });
    const backendRefs = [{ name: 'tollgate-auth-headless', namespace: 'tollgate' }];
    await apply(kube, secure('main', 'Gateway', { extAuth: { grpc: { backendRefs } } }));
    await server.unenforced({ Bypassed: 0, NotAttached: 0 });
    await apply(kube, secure('orders', 'HTTPRoute', { cors: {} }));
    await server.unenforced({ Bypassed: 1, NotAttached: 0 });
    await apply(kube, secure('orders', 'HTTPRoute', { cors: {}, mergeType: 'StrategicMerge' }));
    await server.unenforced({ Bypassed: 0, NotAttached: 0 });
  });

  await t.test('stay in force with their last valid version, also after a restart', async (t) => {
    await apply(kube, policy('broken', { hosts: ['broken.test'], access: { role: ['admin'] } }));
    await apply(kube, policy('api', { hosts: ['api.test'], access: { role: ['admin'] } }));
    const expected = {
      api: 'valid',
      broken: ['broken.test denied'],
      orders: 'valid',
      'HTTPRoute orders': ['shop/orders shop.test shop/main:80'],
    };
    await server.has(expected);
    const conditions = (name: string) =>
      kube.kubectl([
        ...['get', 'ap', '-n', 'shop', name],
        '-o=jsonpath={.status.lastValid.generation} {range .status.conditions[*]}{.type}={.status}/{.reason} {end}',
      ]);
    const stalled = 'Accepted=False/Invalid Ready=False/Invalid Stalled=True/Invalid ';
    await awaitUntil(async () => (await conditions('api')).stdout === `1 ${stalled}`, { what: 'the status' });
    await awaitUntil(async () => (await conditions('broken')).stdout === ` ${stalled}`, {
      what: 'the other',
    });
    const { stdout } = await kube.kubectl(['get', 'ap', '-n', 'shop', 'api', 'orders']);
    const rows = stdout.split('\n').map((row) => row.replaceAll(/ +/g, ' '));
    t.equal(rows[0], 'NAME TARGET ACCESS LIMITS READY AGE');
    t.match(rows[1], /^api api\.test Authenticated per-user False \S+$/);
    t.match(rows[2], /^orders HTTPRoute\/orders Authenticated per-user /);
    await server.stop();
    await (await startServer(t, kube)).has(expected);
  });
});
