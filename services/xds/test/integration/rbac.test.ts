import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import type { ApiClient } from '../../src/kube/client.ts';
import { LeaseElector } from '../../src/kube/lease.ts';
import { HeldConfigMap } from '../../src/sources/held-config-map.ts';
import { ReplicaReports } from '../../src/status/replica-reports.ts';
import { rateLimitConfigStatuses } from '../../src/status/status-manifest.ts';
import { KubernetesStatusWriter } from '../../src/status/writer.ts';
import { connectApi, createEditor, deployFile, prepareCluster } from '../support/cluster.ts';
import { recordingContext } from '../support/recording-logger.ts';
import { startSource } from '../support/source-under-test.ts';

const server = 'system:serviceaccount:tollgate:tollgate-xds';
const group = 'ratelimit.tollgate.dev';
const users = [server, 'viewer', 'editor'].map((name) => ({ name }));

/** A permission, such as `patch ratelimitconfigs/status shop`. */
interface Right {
  verb: string;
  group?: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

const lease = { group: 'coordination.k8s.io', resource: 'leases' };
const configMap = { resource: 'configmaps' };
const rules = { group, resource: 'ratelimitconfigs' };
const status = { ...rules, subresource: 'status' };

/** Asks the API server as the user of the client. */
async function may(api: ApiClient, right: Right): Promise<boolean> {
  const answer = (await api.send({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: right },
    },
    // A review always has a status.
  })) as { status: { allowed: boolean } };
  return answer.status.allowed;
}

/** The permissions of a user, one per line. */
async function granted(api: ApiClient, rights: readonly Right[]): Promise<string[]> {
  const allowed: string[] = [];
  for (const right of rights) {
    if (await may(api, right)) allowed.push(Object.values(right).join(' '));
  }
  return allowed;
}

/** Permissions that it must never have. */
const never: readonly Right[] = [
  ...['create', 'update', 'patch', 'delete', 'deletecollection'].map((verb) => ({
    verb,
    ...rules,
    namespace: 'shop',
  })),
  ...['get', 'update'].map((verb) => ({ verb, ...status, namespace: 'shop' })),
  ...['get', 'update'].map((verb) => ({ verb, ...lease, namespace: 'tollgate', name: 'other' })),
  ...['list', 'watch', 'patch', 'delete'].map((verb) => ({ verb, ...lease, namespace: 'tollgate' })),
  ...['create', 'get', 'update'].map((verb) => ({ verb, ...lease, namespace: 'shop', name: 'tollgate-xds' })),
  ...['get', 'list', 'watch', 'patch', 'update', 'delete'].flatMap((verb) => [
    { verb, ...configMap, namespace: 'tollgate' },
    { verb, ...configMap, namespace: 'tollgate', name: 'other' },
    { verb, ...configMap, namespace: 'shop', name: 'tollgate-xds-limiters' },
  ]),
  ...['update', 'delete'].map((verb) => ({
    verb,
    ...configMap,
    namespace: 'tollgate',
    name: 'tollgate-xds-limiters',
  })),
  { verb: 'update', ...configMap, namespace: 'tollgate', name: 'tollgate-xds-held' },
  { verb: 'create', ...configMap, namespace: 'shop' },
  ...['secrets', 'configmaps', 'pods', 'serviceaccounts'].flatMap((resource) =>
    ['tollgate', 'shop', 'kube-system'].map((namespace) => ({ verb: 'get', resource, namespace })),
  ),
  { verb: 'create', resource: 'serviceaccounts', subresource: 'token', namespace: 'tollgate' },
  { verb: 'get', resource: 'namespaces' },
  { verb: 'impersonate', resource: 'users' },
];

/**
 * Runs source, election, reports and status writer with the permissions of the service, until a
 * status has been written.
 */
async function serve(t: Test, kube: KubeApiserver, namespaces: readonly string[]): Promise<void> {
  const api = await connectApi(kube, server);
  const following = await startSource(api, { namespaces });
  const { context, lines } = recordingContext();
  const { logger, metrics } = context;
  const cluster = { api, logger, namespace: 'tollgate', identity: 'test' };
  const leadership = new LeaseElector({ ...cluster, metrics, name: 'tollgate-xds' });
  const writer = new KubernetesStatusWriter(context, {
    kind: rateLimitConfigStatuses,
    api,
    objects: following.source.objects,
    leadership,
    debounceMs: 5,
  });
  const reports = new ReplicaReports({
    ...cluster,
    leadership,
    name: 'tollgate-xds-limiters',
    summarize: () => ({ groups: [{ count: namespaces.length + 1 }] }),
    debounceMs: 5,
  });
  const holds = new HeldConfigMap({ ...cluster, leadership, name: 'tollgate-xds-held' });
  const held: number[] = [];
  await holds.start(({ objects }) => held.push(objects.length));
  t.teardown(async () => {
    await holds.close();
    await writer.close();
    await leadership.close();
    await reports.close();
    await following.source.close();
    api.close();
  });
  leadership.start();
  writer.start();
  reports.start();
  await awaitUntil(() => following.source.objects.get('shop/web'), { what: 'the object' });
  const { uid = '' } = following.source.objects.get('shop/web') ?? {};
  const condition = { status: 'True', reason: 'Accepted', message: '' } as const;
  writer.put({
    id: 'shop/web',
    uid,
    observedGeneration: 1,
    rules: 1,
    version: namespaces.join(),
    accepted: condition,
    programmed: condition,
  });
  const back = () =>
    JSON.stringify(following.source.objects.get('shop/web')?.manifest).includes(
      `"version":"${namespaces.join()}"`,
    );
  await awaitUntil(back, { what: 'the status' });
  await awaitUntil(() => reports.others, { what: 'the reports of others' });
  const path = '/api/v1/namespaces/tollgate/configmaps/tollgate-xds-limiters';
  await awaitUntil(
    async () =>
      JSON.stringify(await api.send({ method: 'GET', path })).includes(
        `\\"count\\":${namespaces.length + 1}`,
      ),
    { what: 'the report' },
  );
  holds.put([{ id: 'shop/gone', uid: 'u', generation: 3, createdMs: 5, spec: { domain: 'gone' } }]);
  await awaitUntil(() => held.at(-1) === 1, { what: 'the held deletion' });
  holds.put([]);
  await awaitUntil(() => held.at(-1) === 0, { what: 'its removal' });
  await reports.close();
  await writer.close();
  await leadership.close();
  t.strictSame(
    lines.filter(({ level }) => level !== 'info'),
    [],
    'nothing was refused',
  );
}

kubeSuite(
  t,
  'services/xds/deploy',
  async (t, kube) => {
    await prepareCluster(kube, ['shop', 'bank', 'tollgate']);
    const admin = await connectApi(kube);
    const api = await connectApi(kube, server);
    t.teardown(() => [admin, api].map((client) => client.close()));
    await createEditor(kube, admin).create('shop', 'web');

    await t.test(
      'rbac.yaml allows the service to watch, elect and write statuses everywhere, and nothing else',
      async (t) => {
        t.strictSame(await granted(api, [{ verb: 'list', ...rules }, ...never]), [], 'nothing before');
        await kube.apply(deployFile('rbac.yaml'));
        await awaitUntil(() => may(api, { verb: 'create', ...lease, namespace: 'tollgate' }), {
          what: 'RBAC',
        });
        await serve(t, kube, []);
        t.strictSame(await granted(api, never), []);
      },
    );

    await t.test('rbac.yaml extends the roles view and edit with rate limits', async (t) => {
      for (const role of ['view', 'edit']) {
        const binding = [role, '-n', 'shop', `--clusterrole=tollgate-ratelimitconfigs-${role}`];
        await kube.kubectl([
          'create',
          'rolebinding',
          ...binding,
          `--user=${role}${role === 'view' ? 'er' : 'or'}`,
        ]);
      }
      const [viewer, editor] = [await connectApi(kube, 'viewer'), await connectApi(kube, 'editor')];
      t.teardown(() => [viewer, editor].map((client) => client.close()));
      const inShop = (verb: string, what: Right | typeof rules | typeof status) => ({
        ...what,
        verb,
        namespace: 'shop',
      });
      await awaitUntil(() => may(editor, inShop('create', rules)), { what: 'RBAC' });
      t.ok(await may(viewer, inShop('watch', rules)));
      t.notOk(await may(viewer, inShop('create', rules)));
      t.notOk(await may(editor, inShop('patch', status)));
      t.notOk(await may(viewer, { ...inShop('get', rules), namespace: 'bank' }));
    });

    await t.test(
      'rbac-namespaced.yaml allows it to watch and write statuses in that namespace only',
      async (t) => {
        await kube.kubectl(['delete', 'clusterrolebinding,clusterrole', 'tollgate-xds']);
        await kube.kubectl(['delete', 'rolebinding,role', '-n', 'tollgate', 'tollgate-xds-lease']);
        await awaitUntil(async () => !(await may(api, { verb: 'create', ...lease, namespace: 'tollgate' })), {
          what: 'RBAC',
        });
        await kube.apply(deployFile('rbac-namespaced.yaml'));
        await awaitUntil(() => may(api, { verb: 'create', ...lease, namespace: 'tollgate' }), {
          what: 'RBAC',
        });
        await serve(t, kube, ['shop']);
        const elsewhere = [
          { verb: 'list', ...rules },
          { verb: 'list', ...rules, namespace: 'bank' },
          { verb: 'patch', ...status, namespace: 'bank' },
        ];
        t.strictSame(await granted(api, [...elsewhere, ...never]), []);
      },
    );
  },
  { users },
);
