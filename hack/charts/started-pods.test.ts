import { readFile } from 'node:fs/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { freePort } from '@tollgate/testkit/free-port';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { startPostgres } from '@tollgate/testkit/postgres';
import { startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { manifest } from '../e2e/support/manifest.ts';
import { programmed, statusWhen } from '../e2e/support/status-when.ts';
import { clusterFiles } from './support/cluster-files.ts';
import { helmIsMissing } from './support/helm.ts';
import { type ManifestObject, podTemplatesOf } from './support/manifest-object.ts';
import { objectsOf, renderChart } from './support/rendered-chart.ts';
import { type StartedPod, startPod } from './support/start-pod.ts';

// An API server, two databases and three services are started, twice, on a machine that may have other work.
t.setTimeout(240_000);

/** Whom the Pods of the management server are to the API server. */
const account = 'system:serviceaccount:default:tg-xds';
const users = [{ name: account, groups: ['system:serviceaccounts', 'system:serviceaccounts:default'] }];

helmIsMissing();
kubeSuite(t, 'the Pods of a release, started as processes', theRelease, { users });

async function theRelease(t: Test, kube: KubeApiserver): Promise<void> {
  await kube.apply(await readFile('crds/ratelimitconfigs.yaml', 'utf8'));
  await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 2 } }));
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const postgres = await startPostgres();
  t.teardown(() => postgres.stop());
  const { url: databaseUrl } = await postgres.createDatabase();
  const secrets = {
    'tg-auth': { DATABASE_URL: databaseUrl, SVC_JWT_SECRET: 'thirty-two-characters-of-a-secret' },
    'tg-ratelimit': { KVSTORE_URL: `127.0.0.1:${redis.port}` },
  };

  await t.test('answer their probes, and serve limits and users', async (t) => {
    // There is no mail server here.
    const args = ['--set=auth.settings.SVC_MAILER_AUTOCONFIRM=true'];
    const pods = await startRelease(t, kube, { secrets, args });
    for (const pod of Object.values(pods)) await t.resolves(pod.askProbes());
    await limitIsEnforced(pods.ratelimit);
    const reported = await statusWhen(kube, 'shop', programmed);
    t.match(reported, { rules: 1, limiters: { connected: 1, acknowledged: 1 } });
    t.notMatch(pods.xds.logs(), /not allowed|forbidden/i);
    const { status } = await signUp(pods.auth);
    t.equal(status, 200);
    for (const [pod, port, path] of [
      [pods.xds, 'admin', '/metrics'],
      [pods.ratelimit, 'metrics', '/metrics'],
      [pods.auth, 'metrics', '/'],
    ] as const) {
      const answer = await fetch(`${pod.urlOf(port)}${path}`);
      t.match(await answer.text(), /^# HELP/m);
    }
  });

  await t.test('do so with mutual TLS between them, and rules of routes', async (t) => {
    const certificates = makeCertificates();
    t.teardown(certificates.remove);
    const pair = ({ cert, key }: { cert: string; key: string }) => ({
      'tls.crt': cert,
      'tls.key': key,
      'ca.crt': certificates.ca.cert,
    });
    const pods = await startRelease(t, kube, {
      secrets: { ...secrets, server: pair(certificates.server), client: pair(certificates.client) },
      args: [
        ...['auth', 'ratelimit', 'xds'].map((chart) => `--set=${chart}.tls.existingSecret=server`),
        '--set=ratelimit.rules.xds.tls.existingSecret=client',
        '--set=xds.settings.XDS_GRPC_CLIENT_SAN=client.test',
        '--set=auth.routes.rules.default=public',
      ],
    });
    for (const pod of Object.values(pods)) await t.resolves(pod.askProbes());
    await limitIsEnforced(pods.ratelimit);
  });
}

interface ReleaseOptions {
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly args: readonly string[];
}

type Release = Readonly<Record<'xds' | 'ratelimit' | 'auth', StartedPod>>;

/** Starts the Pods of the umbrella chart; only ports and addresses are not those that a cluster would have. */
async function startRelease(
  t: Test,
  kube: KubeApiserver,
  { secrets, args }: ReleaseOptions,
): Promise<Release> {
  const xdsPort = await freePort();
  const objects = objectsOf(
    await renderChart('tollgate', [
      '--values=charts/tollgate/ci/small-values.yaml',
      // It is in the Secret here.
      '--set=ratelimit.settings.KVSTORE_URL=null',
      `--set=xds.ports.grpc=${xdsPort}`,
      `--set=ratelimit.rules.xds.address=localhost:${xdsPort}`,
      ...(await freePorts('xds', ['admin'])),
      ...(await freePorts('ratelimit', ['http', 'grpc', 'debug', 'metrics'])),
      ...(await freePorts('auth', ['http', 'grpc', 'http-authz', 'metrics'])),
      // With the token of its ServiceAccount, which in a cluster is a file.
      '--set=xds.settings.XDS_SOURCE=kubernetes',
      `--set=xds.settings.KUBECONFIG=${kube.kubeconfigFor(account)}`,
      ...args,
    ]),
  );
  await applyRights(kube, objects);
  const files = clusterFiles(objects, secrets);
  const start = (name: string) => {
    const template = podTemplatesOf(objects).find(({ of }) => of === `Deployment tg-${name}`);
    if (template === undefined) throw new Error(`the release has no Deployment tg-${name}`);
    return startPod(t, template, files);
  };
  return { xds: await start('xds'), ratelimit: await start('ratelimit'), auth: await start('auth') };
}

/** What the release lets the management server do, and nothing else is allowed to it. */
async function applyRights(kube: KubeApiserver, objects: readonly ManifestObject[]): Promise<void> {
  const items = objects.filter(({ kind }) => /^(Cluster)?Role(Binding)?$/.test(kind));
  await kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

/** Arguments of helm that put free ports in the place of those of a chart. */
function freePorts(chart: string, names: readonly string[]): Promise<string[]> {
  return Promise.all(names.map(async (name) => `--set=${chart}.ports.${name}=${await freePort()}`));
}

/** The limit of the RateLimitConfig, and of the file, that the tests make: two for each user. */
async function limitIsEnforced(ratelimit: StartedPod): Promise<void> {
  await awaitUntil(
    async () => {
      const answer = await fetch(`${ratelimit.urlOf('http')}/json`, {
        method: 'POST',
        body: JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ada' }] }] }),
      });
      return answer.status === 429;
    },
    { what: 'the limit to be enforced', timeoutMs: 20_000 },
  );
}

function signUp(auth: StartedPod): Promise<Response> {
  return fetch(`${auth.urlOf('http')}/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse' }),
  });
}
