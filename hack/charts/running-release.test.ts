import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import t, { type Test } from 'tap';
import { startEdge } from '../e2e/support/edge.ts';
import { domain, identityRateLimits } from '../e2e/support/envoy-config.ts';
import { programmed, statusWhen } from '../e2e/support/limits.ts';
import { getStatuses } from '../e2e/support/requests.ts';
import { services } from '../images/build-images.ts';
import { namespaceNode } from './kubelet/node.ts';
import type { StartedPod } from './kubelet/pod.ts';
import { assembleImage, type ServiceImage } from './kubelet/service-image.ts';
import { createNamespace, freePortArguments, installRelease, podSuite } from './support/releases.ts';
import { someAddress, startDevPostgresql, startDevValkey } from './support/stores.ts';

// An API server, two data stores and three services are started, on a machine that may have other
// work.
t.setTimeout(240_000);

const namespace = 'shop';

podSuite(t, 'a release for evaluation, installed and run from its images', async (t, kube) => {
  await createNamespace(kube, namespace);
  const images = assembleImages(t);
  const release = await installRelease(t, kube, {
    chart: 'tollgate',
    namespace,
    args: ['--values=charts/tollgate/ci/dev-values.yaml', ...(await freePortArguments('tollgate'))],
  });
  await kube.apply(userLimit);
  const node = await namespaceNode(t, kube, {
    namespace,
    findImage: (image) => images.get(image.replace(/^.*\/tollgate\/(\w+):.*$/, '$1')),
    hosts: await startDataStores(t, kube),
  });
  const [xds, ratelimit, auth] = await Promise.all([
    node.start('tg-xds'),
    node.start('tg-ratelimit'),
    node.start('tg-auth'),
  ]);

  await t.test('every probe of every Pod is answered', async (t) => {
    for (const pod of [xds, ratelimit, auth]) await t.resolves(pod.askProbes());
  });

  await t.test('`helm test` succeeds', async (t) => {
    const tests = await release.tests();
    t.strictSame(tests.map(({ metadata }) => metadata.name).sort(), [
      'tg-auth-test',
      'tg-ratelimit-test',
      'tg-xds-test',
    ]);
    for (const test of tests) t.match(await node.run(test), /200/, test.metadata.name);
  });

  await t.test('Envoy rejects requests without a token, and limits each user', async (t) => {
    const edge = await startEdge(t, {
      limiters: { ports: [ratelimit.port('grpc')] },
      listeners: [{ name: 'ingress', failureModeDeny: true }],
      extAuthz: { ports: [auth.port('grpc')] },
      rateLimits: identityRateLimits,
    });
    const url = edge.url('ingress');
    t.strictSame(await getStatuses(url, undefined, 1), [401]);
    t.strictSame(await getStatuses(url, await signUp(auth, 'ada@example.com'), 3), [200, 200, 429]);
    t.strictSame(await getStatuses(url, await signUp(auth, 'ben@example.com'), 1), [200], 'counted apart');
  });

  await t.test(
    'the xDS server reports with the rights of its ServiceAccount, which are enough',
    async (t) => {
      const status = await statusWhen(kube, 'users', programmed, namespace);
      t.match(status, { rules: 1, limiters: { connected: 1, acknowledged: 1 } });
      t.notMatch(xds.logs(), /not allowed|forbidden/i);
      t.match(await getField(kube, 'lease/tg-xds', '{.spec.holderIdentity}'), /^tg-xds-/);
    },
  );

  await t.test('metrics are where Prometheus looks for them', async (t) => {
    for (const [pod, port] of [
      [xds, 'admin'],
      [ratelimit, 'metrics'],
      [auth, 'metrics'],
    ] as const) {
      const answer = await fetch(`http://127.0.0.1:${pod.port(port)}/metrics`);
      t.match(await answer.text(), /^# HELP/m);
    }
  });

  await t.test('Pods shut down gracefully', async (t) => {
    for (const pod of [ratelimit, auth, xds]) {
      await pod.stop();
      t.notOk(pod.isRunning());
      t.notMatch(pod.logs(), /"level":"?(fatal|60)/);
    }
    t.equal(await getField(kube, 'lease/tg-xds', '{.spec.holderIdentity}'), '', 'the Lease is given back');
  });
});

/** Two requests a year for each user. */
const userLimit = JSON.stringify({
  apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
  kind: 'RateLimitConfig',
  metadata: { name: 'users', namespace },
  spec: { domain, descriptors: [{ key: 'user_id', rateLimit: { unit: 'Year', requestsPerUnit: 2 } }] },
});

function assembleImages(t: Test): ReadonlyMap<string, ServiceImage> {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  return new Map(services.map((name) => [name, assembleImage(name, join(folder.path, name))]));
}

/**
 * Starts what stands for the Pods of PostgreSQL and Valkey, with the passwords of the release;
 * answers their addresses.
 */
async function startDataStores(t: Test, kube: KubeApiserver): Promise<Record<string, string>> {
  const address = someAddress();
  await startDevValkey(t, { address, password: await readPassword(kube, 'tg-dev-valkey') });
  await startDevPostgresql(t, { address, password: await readPassword(kube, 'tg-dev-postgresql') });
  return { 'tg-dev-valkey': address, 'tg-dev-postgresql': address };
}

/** What a JSONPath finds in an object of the namespace: `lease/tg-xds`. */
async function getField(kube: KubeApiserver, object: string, jsonPath: string): Promise<string> {
  const { stdout } = await kube.kubectl(['get', object, '-n', namespace, '-o', `jsonpath=${jsonPath}`]);
  return stdout;
}

async function readPassword(kube: KubeApiserver, secret: string): Promise<string> {
  return Buffer.from(await getField(kube, `secret/${secret}`, '{.data.password}'), 'base64').toString();
}

/** A user who has signed up, and is signed in: the access token. */
async function signUp(auth: StartedPod, email: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${auth.port('http')}/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: 'correct horse battery' }),
  });
  // Parsed boundary: of the service's own JSON one field is looked at.
  const body = (await answer.json()) as { readonly access_token?: string };
  if (body.access_token === undefined)
    throw new Error(`signing up was answered ${answer.status}: ${JSON.stringify(body)}`);
  return body.access_token;
}
