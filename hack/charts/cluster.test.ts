import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import { chartCases, helmIsMissing, renderChart } from './support/helm.ts';
import { getPodTemplates, type ManifestObject, parseManifests } from './support/manifests.ts';

/** Kinds without definitions in this API server. */
const thirdParty = new Set([
  ...['AuthorizationPolicy', 'Certificate', 'HTTPRoute', 'PrometheusRule', 'ReferenceGrant'],
  ...['SecurityPolicy', 'ServiceMonitor'],
]);

helmIsMissing();
kubeSuite(t, 'an API server accepts rendered charts', async (t, kube) => {
  await kube.apply(await readFile('crds/ratelimitconfigs.yaml', 'utf8'));

  const rendered = await renderCases();

  await t.test('every object of every values file, strictly', async (t) => {
    for (const { valuesFile, objects } of rendered) {
      const known = objects.filter(({ kind }) => !thirdParty.has(kind));
      t.not(known.length, 0);
      const { code, stderr } = await kube.kubectl(
        ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict', '-f', '-'],
        { input: toList(known) },
      );
      t.equal(code, 0, `${valuesFile}: ${stderr}`);
    }
  });

  await t.test('every Pod, in a namespace that enforces the profile "restricted"', async (t) => {
    await kube.apply(restrictedNamespace);
    // All in one call: each reads the definitions of the API server first.
    const pods = rendered.flatMap(({ valuesFile, objects }) => {
      const origin = valuesFile.replace(/^charts\/|-values\.yaml$/g, '').replaceAll('/', '-');
      return getPodTemplates(objects).map(({ name, spec }) => toPod(`${origin}-${name}`, spec));
    });
    t.ok(pods.length > rendered.length);
    const { code, stderr } = await dryRun(kube, { apiVersion: 'v1', kind: 'List', items: pods });
    t.equal(code, 0, stderr);
  });

  await t.test('which rejects a Pod that violates it', async (t) => {
    const objects = parseManifests(await renderChart('xds', ['--set=podSecurityContext.runAsUser=0']));
    const template = getPodTemplates(objects)[0];
    const { code, stderr } = await dryRun(kube, toPod('root', template?.spec));
    t.equal(code, 1);
    t.match(stderr, 'violates PodSecurity "restricted');
  });

  await theRightsOfTheManagementServer(t, kube);
});

async function renderCases() {
  const rendered: { readonly valuesFile: string; readonly objects: readonly ManifestObject[] }[] = [];
  for (const { chart, valuesFile } of await chartCases())
    rendered.push({
      valuesFile,
      objects: parseManifests(await renderChart(chart, [`--values=${valuesFile}`])),
    });
  return rendered;
}

const xdsAccount = 'system:serviceaccount:default:tg-xds';

/** The xDS server has exactly the rights that it needs. */
async function theRightsOfTheManagementServer(t: Test, kube: KubeApiserver): Promise<void> {
  const may = (verb: string, resource: string, namespace: string) =>
    mayDo(kube, xdsAccount, [verb, resource, `--namespace=${namespace}`]);
  const rightsIn = async (namespace: string) => ({
    follow: await may('watch', 'ratelimitconfigs.ratelimit.tollgate.dev', namespace),
    report: await mayDo(kube, xdsAccount, [...patchStatus, `--namespace=${namespace}`]),
    edit: await may('update', 'ratelimitconfigs.ratelimit.tollgate.dev', namespace),
    secrets: await may('get', 'secrets', namespace),
    configMaps: await may('get', 'configmaps', namespace),
  });
  /** The API server applies new roles with a delay. */
  const soon = async <T>(ask: () => Promise<T>, expected: T): Promise<T | undefined> => {
    let answer: T | undefined;
    const isSo = async () => {
      answer = await ask();
      return isDeepStrictEqual(answer, expected);
    };
    await awaitUntil(isSo, { what: 'the rights' }).catch(() => undefined);
    return answer;
  };
  const follower = { follow: true, report: true, edit: false, secrets: false, configMaps: false };
  const unrelated = { ...follower, follow: false, report: false };

  await t.test('without namespaces, the xDS server watches all and writes nothing', async (t) => {
    await applyRights(kube, []);
    t.strictSame(await soon(() => rightsIn('default'), follower), follower);
    t.strictSame(await rightsIn('kube-public'), follower);
    t.ok(await may('update', 'leases.coordination.k8s.io/tg-xds', 'default'), 'renews its Lease');
    t.notOk(await may('update', 'leases.coordination.k8s.io/other', 'default'), 'leaves others alone');
    t.notOk(await may('update', 'leases.coordination.k8s.io/tg-xds', 'kube-public'), 'in its namespace only');
    t.ok(await may('patch', 'configmaps/tg-xds-limiters', 'default'), 'tells the others of its limiters');
    t.notOk(await may('patch', 'configmaps/other', 'default'));
    t.ok(await may('patch', 'secrets/tg-xds-ca', 'default'), 'keeps its certificates');
    t.notOk(await may('create', 'secrets', 'default'));
    t.notOk(await may('get', 'secrets/other', 'default'));
    await kube.kubectl(['delete', 'clusterroles,clusterrolebindings', '-l', 'app.kubernetes.io/instance=tg']);
  });

  await t.test('with namespaces, it has rights in these only', async (t) => {
    await applyRights(kube, ['--set=xds.watchNamespaces={kube-public}']);
    t.strictSame(await soon(() => rightsIn('default'), unrelated), unrelated);
    t.strictSame(await soon(() => rightsIn('kube-public'), follower), follower);
  });

  await t.test('the other services have no rights at all', async (t) => {
    for (const account of ['tg-auth', 'tg-console', 'tg-ratelimit']) {
      const user = `system:serviceaccount:default:${account}`;
      t.notOk(await mayDo(kube, user, ['list', 'ratelimitconfigs.ratelimit.tollgate.dev']), account);
      t.notOk(await mayDo(kube, user, ['get', 'secrets']), account);
    }
  });

  await t.test('edit rights in a namespace include limits, not statuses', async (t) => {
    const { stdout } = await kube.kubectl([
      ...['create', '--dry-run=client', '-o', 'yaml', 'rolebinding', 'ann'],
      ...['--clusterrole=tollgate-ratelimitconfigs-edit', '--user=ann', '--namespace=default'],
    ]);
    await kube.apply(stdout);
    await kube.apply(await renderChart('crds', []));
    const mayCreate = () => mayDo(kube, 'ann', ['create', 'ratelimitconfigs.ratelimit.tollgate.dev']);
    t.ok(await soon(mayCreate, true));
    t.notOk(await mayDo(kube, 'ann', patchStatus));
  });
}

const patchStatus = ['patch', 'ratelimitconfigs.ratelimit.tollgate.dev', '--subresource=status'];

/** The result of `kubectl auth can-i` for a user. */
async function mayDo(kube: KubeApiserver, user: string, what: readonly string[]): Promise<boolean> {
  const { stdout } = await kube.kubectl(['auth', 'can-i', ...what, `--as=${user}`]);
  return stdout.trim() === 'yes';
}

/** Applies the service accounts and roles of all services and what binds them. */
async function applyRights(kube: KubeApiserver, args: readonly string[]): Promise<void> {
  const small = '--values=charts/tollgate/ci/small-values.yaml';
  const objects = parseManifests(await renderChart('tollgate', [small, '--set=crds.enabled=false', ...args]));
  await kube.apply(toList(objects.filter(({ kind }) => /Role(Binding)?$|^ServiceAccount$/.test(kind))));
}

const restrictedNamespace = `
apiVersion: v1
kind: Namespace
metadata:
  name: restricted
  labels:
    pod-security.kubernetes.io/enforce: restricted
`;

const toPod = (name: string, spec: unknown) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'restricted' },
  spec,
});

/** JSON is YAML. */
const toList = (items: readonly unknown[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

const dryRun = (kube: KubeApiserver, object: unknown) =>
  kube.kubectl(['create', '--dry-run=server', '--validate=strict', '-f', '-'], {
    input: JSON.stringify(object),
  });
