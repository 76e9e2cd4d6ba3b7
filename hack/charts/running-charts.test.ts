import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import t, { type Test } from 'tap';
import { runCounters } from '../../services/ratelimit/src/cli/counters.ts';
import { listValuesFiles } from '../generate/charts/charts.ts';
import { kubectl } from './kubelet/node.ts';
import type { StartedPod } from './kubelet/pod.ts';
import type { Operator } from './support/operator.ts';
import {
  createNamespace,
  type PreparedCluster,
  podSuite,
  prepareCluster,
  runValuesFile,
} from './support/releases.ts';
import { withCounterStores } from './support/stores.ts';

podSuite(t, 'the Pods of every values file, installed and run', async (t, kube) => {
  const cluster = await prepareCluster(t, kube);
  await t.test('of the charts of one service', (t) => runServiceCharts(t, cluster));
  await t.test('of the chart tollgate', (t) => runReleases(t, cluster));
});

async function runServiceCharts(t: Test, cluster: PreparedCluster): Promise<void> {
  const { kube } = cluster;
  const toNamespace = (valuesFile: string) => valuesFile.replace(/^charts\/(\w+)\/ci\/(\w+)-.*$/, '$1-$2');
  /** Ports of ADS by namespace. */
  const ports = new Map<string, number>();

  const limiters = (await listValuesFiles('ratelimit')).map(toNamespace);
  for (const namespace of limiters) await createNamespace(kube, namespace);
  // Each has a certificate of the xDS server that makes its own.
  const args = [`--set=tls.limiterNamespaces={${limiters.join(',')}}`];

  for (const valuesFile of await listValuesFiles('xds')) {
    const namespace = toNamespace(valuesFile);
    // The charts of rate limit services call it, so it runs on.
    const [pod] = await runValuesFile(t, cluster, { chart: 'xds', valuesFile, namespace, args });
    await t.test(valuesFile, async (t) => {
      await t.resolves(pod?.askProbes() ?? Promise.reject(new Error('no Pod')));
      if (!valuesFile.includes('full')) await applyThroughWebhook(t, kube, namespace);
    });
    ports.set(namespace, pod?.port('grpc') ?? 0);
  }

  for (const valuesFile of await listValuesFiles('ratelimit')) {
    await t.test(valuesFile, async (t) => {
      // One that makes certificates, and one that wants those of cert-manager.
      const server = valuesFile.includes('mtls') ? 'xds-full' : 'xds-default';
      const pods = await runValuesFile(t, cluster, {
        chart: 'ratelimit',
        valuesFile,
        namespace: toNamespace(valuesFile),
        args: [`--set=rules.xds.address=tg-xds-headless.${server}:${ports.get(server)}`],
      });
      t.equal(pods.length, 1);
      for (const pod of pods) await t.resolves(pod.askProbes());
      if (valuesFile.includes('counters')) await callCounterApi(t, cluster.operator, pods[0]);
    });
  }

  for (const chart of ['auth', 'console']) {
    for (const valuesFile of await listValuesFiles(chart)) {
      await t.test(valuesFile, async (t) => {
        const namespace = toNamespace(valuesFile);
        const pods = await runValuesFile(t, cluster, { chart, valuesFile, namespace });
        t.equal(pods.length, 1);
        for (const pod of pods) await t.resolves(pod.askProbes());
      });
    }
  }
}

/** There is no network of Services here: the name of the Service leads to this machine. */
async function applyThroughWebhook(t: Test, kube: KubeApiserver, namespace: string): Promise<void> {
  const spec = {
    type: 'ExternalName',
    externalName: 'localhost',
    clusterIP: null,
    clusterIPs: null,
    ipFamilies: null,
    ipFamilyPolicy: null,
    internalTrafficPolicy: null,
  };
  const patch = ['--type=merge', '-p', JSON.stringify({ spec })];
  await kubectl(kube, ['patch', 'service', 'tg-xds', `--namespace=${namespace}`, ...patch]);
  const limit = { key: 'user', rateLimit: { unit: 'Minute', requestsPerUnit: 1 } };
  const object = {
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { name: 'twice', namespace },
    spec: { domain: namespace, descriptors: [limit, limit] },
  };
  const apply = async () =>
    (await kube.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(object) })).stderr;
  await awaitUntil(async () => (await apply()).includes('denied the request'), { what: 'the webhook' });
  t.match(await apply(), /spec\.descriptors\[1\]\.key: duplicate descriptor composite key/);
}

/** Inside the Pod the command needs no flags; another one has a certificate and the token. */
async function callCounterApi(t: Test, { certificates }: Operator, pod: StartedPod | undefined) {
  const command = ['services/ratelimit/src/main.ts', 'counters', 'overrides', '-json'];
  t.match(JSON.parse((await pod?.exec(command)) ?? ''), { overrides: [] });
  const { ca, client } = certificates;
  const flags = [
    ...['-address', `https://127.0.0.1:${pod?.port('https-admin')}`, '-server-name', 'localhost'],
    ...['-ca-file', ca.certFile, '-cert-file', client.certFile, '-key-file', client.keyFile],
  ];
  const env = { ADMIN_TOKEN: 'of-the-counter-api' };
  t.match(await runCounters(['top', ...flags], env), { exitCode: 0 });
  t.match(await runCounters(['top', ...flags], {}), { exitCode: 1, errors: /^caller_not_authenticated/ });
}

/**
 * A values file with what it says of a cluster that this one is not, or with more of what it may
 * say.
 */
interface Values {
  readonly what: string;
  readonly file: string;
  readonly args?: readonly string[];
}

/** Cases with all parts. That for trying out has a test of its own. */
const cases: readonly (Values & { readonly deployments: number })[] = [
  { what: 'small', file: 'small', deployments: 3 },
  {
    what: 'own-certificates',
    file: 'small',
    deployments: 3,
    args: [
      ...['auth', 'ratelimit', 'xds'].map((service) => `--set=${service}.tls.existingSecret=server-tls`),
      // Name in the certificate.
      '--set=ratelimit.settings.CONFIG_GRPC_XDS_SERVER_TLS_SAN=localhost',
      '--set=ratelimit.rules.xds.tls.existingSecret=client-tls',
      '--set=xds.settings.XDS_GRPC_CLIENT_SAN=client.test',
    ],
  },
  // With TLS, as its settings say.
  { what: 'ha', file: 'ha', deployments: 4, args: ['--set=ratelimit.existingSecret=redis-tls-url'] },
  {
    what: 'mtls',
    file: 'mtls',
    deployments: 3,
    // The auth server is ready once the xDS server has accepted its certificate.
    args: [
      '--set=xds.settings.XDS_GRPC_CLIENT_SAN=tg-ratelimit.mtls\\,tg-auth.mtls',
      '--set=auth.settings.SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS=tg-ratelimit-headless:8081',
    ],
  },
];

/** Where limits are counted. These limiters take them from the xDS server of `limits-only`. */
const storeCases = ['sentinel', 'redis-cluster', 'memcached'] as const;

async function runReleases(t: Test, cluster: PreparedCluster): Promise<void> {
  const { kube } = cluster;
  const install = (t: Test, { what, file, args = [] }: Values, operator = cluster.operator) =>
    runValuesFile(
      t,
      { kube, operator },
      {
        chart: 'tollgate',
        valuesFile: `charts/tollgate/ci/${file}-values.yaml`,
        namespace: what,
        // It is there already, and of no release.
        args: ['--set=crds.enabled=false', ...args],
      },
    );

  for (const { deployments, ...values } of cases) {
    await t.test(values.what, async (t) => {
      const pods = await install(t, values);
      t.equal(pods.length, deployments);
      for (const pod of pods) await t.resolves(pod.askProbes());
    });
  }

  for (const namespace of storeCases) await createNamespace(kube, namespace);
  const limiterNamespaces = `--set=xds.tls.limiterNamespaces={${storeCases.join(',')}}`;
  const [operator, withMemory] = await Promise.all([
    withCounterStores(t, cluster.operator),
    // They keep running: the limiters below use this xDS server.
    install(t, { what: 'limits-only', file: 'limits-only', args: [limiterNamespaces] }),
  ]);
  await t.test('limits-only', async (t) => {
    t.equal(withMemory.length, 2);
    for (const pod of withMemory) await t.resolves(pod.askProbes());
  });
  const address = await findManagementServer(kube, 'limits-only');
  const args = ['--set=xds.enabled=false', `--set=ratelimit.rules.xds.address=${address}`];
  for (const file of storeCases) {
    await t.test(file, async (t) => {
      const [pod, ...others] = await install(t, { what: file, file, args }, operator);
      t.strictSame(others, []);
      if (pod === undefined) throw new Error('no Pod');
      await t.resolves(pod.askProbes());
      t.equal(await decide(pod), 200);
      await awaitUntil(async () => (await decide(pod)) === 429, { what: 'the limit' });
    });
  }
}

/** Finds the headless Service of a release, `host:port`. */
async function findManagementServer(kube: KubeApiserver, namespace: string): Promise<string> {
  const name = 'tg-xds-headless';
  const port = '-o=jsonpath={.spec.ports[?(@.name=="grpc")].port}';
  return `${name}.${namespace}:${await kubectl(kube, ['get', 'service', name, `--namespace=${namespace}`, port])}`;
}

/** The status of a request: 200, or 429 above the limit. */
async function decide(pod: StartedPod): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${pod.port('http')}/json`, {
    method: 'POST',
    body: JSON.stringify({ domain: 'default', descriptors: [{ entries: [{ key: 'user', value: 'ada' }] }] }),
  });
  await answer.arrayBuffer();
  return answer.status;
}
