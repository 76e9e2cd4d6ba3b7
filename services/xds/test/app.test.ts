import { formatSettingProblems } from '@tollgate/kit/settings';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/text-folder';
import t, { type Test } from 'tap';
import { type App, buildApp } from '../src/app.ts';
import { readSettings } from '../src/settings/settings.ts';
import { connectAds } from './support/ads-client.ts';
import { json, page, refusal, type SeenRequest, startScriptedServer, watch } from './support/kube-server.ts';
import { namesIn } from './support/names-in.ts';
import { recordingLogger } from './support/recording-logger.ts';
import { documents, manifestText } from './support/yaml-manifests.ts';

/** Starts the whole service on free ports; it is stopped when the test ends. */
async function startApp(t: Test, env: Readonly<Record<string, string>>): Promise<App> {
  const read = readSettings({
    XDS_GRPC_HOST: '127.0.0.1',
    XDS_GRPC_PORT: '0',
    XDS_ADMIN_HOST: '127.0.0.1',
    XDS_ADMIN_PORT: '0',
    DRAIN_TIMEOUT: '1s',
    ...env,
  });
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  const app = await buildApp(read.settings, { logger: recordingLogger().logger, nowMs: Date.now });
  t.teardown(() => app.lifecycle.stop('end of the test'));
  await app.lifecycle.start();
  return app;
}

/** A folder with one object in each of two namespaces. */
function twoNamespaces(t: Test): string {
  const folder = makeTextFolder(t);
  folder.write('all.yaml', documents(manifestText('one', 1, 'shop'), manifestText('two', 1, 'web')));
  return folder.path;
}

t.test('XDS_NAMESPACES: objects of other namespaces are not served', async (t) => {
  const app = await startApp(t, { XDS_FOLDER: twoNamespaces(t), XDS_NAMESPACES: 'web' });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  t.strictSame(namesIn(await stream.next()), ['two']);
});

t.test('XDS_GRPC_MAX_CONNECTION_AGE: streams end some time after it', async (t) => {
  const app = await startApp(t, {
    XDS_FOLDER: twoNamespaces(t),
    XDS_GRPC_MAX_CONNECTION_AGE: '200ms',
    XDS_GRPC_MAX_CONNECTION_AGE_GRACE: '100ms',
  });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  stream.ack(await stream.next());
  t.not((await stream.ended).code, 0);
});

t.test('SHUTDOWN_DELAY: streams go on for that long, while probes say that it ends', async (t) => {
  const app = await startApp(t, { XDS_FOLDER: twoNamespaces(t), SHUTDOWN_DELAY: '500ms' });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  stream.ack(await stream.next());
  const ready = async () => (await fetch(`http://127.0.0.1:${app.ports.admin}/readyz`)).status;
  t.equal(await ready(), 200);
  const order: string[] = [];
  const ended = stream.ended.then(() => order.push('stream'));
  const stopped = app.lifecycle.stop('test');
  t.equal(await ready(), 503);
  order.push('probe');
  await ended;
  await stopped;
  t.strictSame(order, ['probe', 'stream']);
});

/** A cluster without objects, where nobody has the Lease, and the service that follows it. */
async function followCluster(t: Test, env: Readonly<Record<string, string>> = {}) {
  const server = await startScriptedServer((response, request) => {
    const { path, query, method, body } = request;
    if (path.includes('/leases')) {
      const answer = method === 'GET' ? refusal(404, 'NotFound') : json(JSON.parse(body), 201);
      return answer(response, request);
    }
    return (query.has('watch') ? watch() : page([], '1'))(response, request);
  });
  t.teardown(() => server.stop());
  const folder = makeTextFolder(t);
  folder.write('kubeconfig', kubeconfigOf(server.url));
  const app = await startApp(t, {
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: `${folder.path}/kubeconfig`,
    ...env,
  });
  const until = (fits: (request: SeenRequest) => boolean, what: string): Promise<SeenRequest> =>
    awaitUntil(
      () => {
        const found = server.requests.find(fits);
        if (found === undefined) throw new Error(server.requests.map(({ path }) => path).join('\n'));
        return found;
      },
      { what },
    );
  await awaitUntil(() => app.health.isHealthy(), { what: 'the first list' });
  return { requests: server.requests, until };
}

/** Of a server that speaks plain HTTP. */
function kubeconfigOf(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace: 'of-context' } }],
    clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'test', user: { token: 'open' } }],
  });
}

const isLease = ({ path }: SeenRequest): boolean => path.includes('/leases');
const isList = ({ path, query }: SeenRequest): boolean =>
  path.endsWith('/ratelimitconfigs') && !query.has('watch');

t.test('XDS_NAMESPACES: of a cluster, only these are listed', async (t) => {
  const { requests } = await followCluster(t, { XDS_NAMESPACES: 'shop,web' });
  const api = '/apis/ratelimit.tollgate.dev/v1alpha1/namespaces';
  t.same(
    new Set(requests.filter(isList).map(({ path }) => path)),
    new Set([`${api}/shop/ratelimitconfigs`, `${api}/web/ratelimitconfigs`]),
  );
});

t.test('XDS_RESYNC_INTERVAL: everything is listed anew', async (t) => {
  const { requests } = await followCluster(t, { XDS_RESYNC_INTERVAL: '100ms' });
  await awaitUntil(() => requests.filter(isList).length >= 3, { what: 'the lists' });
});

t.test('XDS_STATUS_ENABLED=false: nobody stands for the election', async (t) => {
  const { requests, until } = await followCluster(t, { XDS_STATUS_ENABLED: 'false' });
  await until(({ query }) => query.has('watch'), 'the watch');
  t.strictSame(requests.filter(isLease), []);
});

const leases = [
  { env: {}, path: '/namespaces/of-context/leases/tollgate-xds', what: 'the context of the kubeconfig' },
  {
    env: { POD_NAMESPACE: 'of-pod', XDS_LEASE_NAME: 'mine' },
    path: '/namespaces/of-pod/leases/mine',
    what: 'the namespace of the pod',
  },
  {
    env: { POD_NAMESPACE: 'of-pod', XDS_LEASE_NAMESPACE: 'named' },
    path: '/namespaces/named/leases/tollgate-xds',
    what: 'the namespace that is named',
  },
];
for (const { env, path, what } of leases) {
  t.test(`XDS_LEASE_NAME and its namespace: that of ${what}`, async (t) => {
    const { until } = await followCluster(t, { POD_NAME: 'xds-7', XDS_LEASE_DURATION: '20s', ...env });
    t.equal((await until(isLease, 'the Lease')).path, `/apis/coordination.k8s.io/v1${path}`);
    const made = await until((request) => isLease(request) && request.method === 'POST', 'a new Lease');
    t.match(JSON.parse(made.body).spec, { holderIdentity: /^xds-7_/, leaseDurationSeconds: 20 });
  });
}
