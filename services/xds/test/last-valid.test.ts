import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import { objectPath } from '../src/kube/client.ts';
import { rateLimitConfigs } from '../src/kube/resources.ts';
import { callAdminApi } from './support/admin-api.ts';
import { connectAds } from './support/ads-client.ts';
import { connectApi, createEditor, deployFile, prepareCluster } from './support/cluster.ts';
import { configsIn } from './support/names-in.ts';
import { startApp } from './support/start-app.ts';

const server = 'system:serviceaccount:tollgate:tollgate-xds';

/** A replica with the privileges of rbac.yaml, and a limiter that acknowledges what it gets. */
async function startReplica(t: Test, kube: KubeApiserver) {
  const app = await startApp(t, {
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFor(server),
    XDS_ANY_DOMAIN_NAMESPACES: '*',
    XDS_LEASE_NAMESPACE: 'tollgate',
    XDS_STATUS_DEBOUNCE: '0s',
    XDS_DOMAIN_GRACE_PERIOD: '0s',
  });
  await awaitUntil(() => app.health.isHealthy(), { what: 'the first list' });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  const next = async () => {
    const response = await stream.next();
    stream.ack(response);
    const limits = configsIn(response).map(
      ({ name, descriptors }) => `${name} ${descriptors[0]?.rateLimit?.requestsPerUnit}`,
    );
    return { version: response.versionInfo, limits };
  };
  const ask = async (path: string) => (await callAdminApi(app.ports.admin, path)).json;
  return { next, ask, stop: () => app.lifecycle.stop('test') };
}

kubeSuite(
  t,
  'the last valid version of an object',
  async (t, kube) => {
    await prepareCluster(kube, ['shop', 'tollgate']);
    await kube.apply(deployFile('rbac.yaml'));
    const api = await connectApi(kube);
    t.teardown(() => api.close());
    const editor = createEditor(kube, api);
    const status = async () => JSON.stringify((await editor.get('shop', 'web')).status ?? {});
    const untilStatus = (pattern: RegExp) =>
      awaitUntil(async () => pattern.test(await status()), { what: String(pattern) });
    const duplicate = { key: 'user', rateLimit: { unit: 'Minute', requestsPerUnit: 1 } };
    /** Valid for the API server, and refused by the loader: two rules with the same key. */
    const breakObject = () =>
      api.send({
        method: 'PATCH',
        path: objectPath(rateLimitConfigs, { namespace: 'shop', name: 'web' }),
        contentType: 'application/merge-patch+json',
        body: { spec: { descriptors: [duplicate, duplicate] } },
      });

    await t.test('is served by every replica after a restart, and the status says so', async (t) => {
      const first = await startReplica(t, kube);
      t.strictSame((await first.next()).limits, []);
      await editor.create('shop', 'web', 5);
      t.strictSame((await first.next()).limits, ['web 5']);
      await untilStatus(/"lastValid":\{"generation":1,/);
      await editor.edit('shop', 'web', 6);
      const { version } = await first.next();
      await untilStatus(/"lastValid":\{"generation":2,/);
      await breakObject();
      await untilStatus(/generation 2 stays in force/);
      await first.stop();

      const replicas = [await startReplica(t, kube), await startReplica(t, kube)];
      for (const replica of replicas) t.strictSame(await replica.next(), { version, limits: ['web 6'] });
      await untilStatus(/"observedGeneration":3,/);
      t.match(await status(), /generation 2 stays in force/);

      const path = '/v1/objects/RateLimitConfig/shop/web';
      const ask = (subPath = '') => replicas[0]?.ask(`${path}${subPath}`);
      t.match(await ask(), {
        ...{ source: 'kubernetes', generation: 3, inForce: 2, accepted: false },
        findings: [{ severity: 'error', field: /^spec\.descriptors/ }],
        versions: [
          { generation: 3, accepted: false },
          { generation: 2, accepted: true, inForce: true },
        ],
      });
      const { manifest } = (await ask('/versions/2')) ?? {};
      t.notMatch(manifest, /uid|resourceVersion|status/);
      // The editor of the test owns the fields.
      const apply = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
      t.match(await kube.kubectl(apply, { input: String(manifest) }), { code: 0 });
      const isApplied = async () => (await ask())?.inForce === 4;
      await awaitUntil(isApplied, { what: 'the version that was applied again' });
      await Promise.all(replicas.map((replica) => replica.stop()));
    });

    await t.test('is gone with its object', async (t) => {
      const replica = await startReplica(t, kube);
      t.strictSame((await replica.next()).limits, ['web 6']);
      await editor.delete('shop', 'web');
      t.strictSame((await replica.next()).limits, []);
      await editor.create('shop', 'web', 7);
      await replica.next();
      await editor.delete('shop', 'web');
      await replica.next();
      await replica.stop();
      await editor.create('shop', 'web', 8);
      await breakObject();
      const late = await startReplica(t, kube);
      t.strictSame((await late.next()).limits, []);
      await untilStatus(/nothing of this object is in force/);
    });

    await t.test('is stored once, and not again by another leader', async (t) => {
      await editor.edit('shop', 'web', 9);
      const first = await startReplica(t, kube);
      t.strictSame((await first.next()).limits, ['web 9']);
      await untilStatus(/"lastValid":\{"generation":3,/);
      await untilStatus(/"Acknowledged"/);
      const before = await editor.get('shop', 'web');
      await first.stop();
      const second = await startReplica(t, kube);
      await second.next();
      await editor.create('shop', 'marker', 1);
      await second.next();
      await awaitUntil(
        async () => /"Acknowledged"/.test(JSON.stringify((await editor.get('shop', 'marker')).status)),
        { what: 'the status of the marker' },
      );
      t.equal((await editor.get('shop', 'web')).metadata.resourceVersion, before.metadata.resourceVersion);
    });
  },
  { users: [{ name: server }] },
);
