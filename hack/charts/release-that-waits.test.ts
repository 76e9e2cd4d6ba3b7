import { readFile } from 'node:fs/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeControllersAreMissing, startKubeControllers } from '@tollgate/testkit/kube-controllers';
import t, { type Test } from 'tap';
import { manifest } from '../e2e/support/limits.ts';
import { startKubelet } from './kubelet/kubelet.ts';
import { kubectl } from './kubelet/node.ts';
import { runHelm } from './support/helm.ts';
import { createNamespace, findCheckoutImage, freePortArguments, podSuite } from './support/releases.ts';
import { someAddress, startDevPostgresql, startDevValkey } from './support/stores.ts';

// A cluster, data stores and all services, three times, on a machine that may have other work.
t.setTimeout(300_000);

const namespace = 'shop';

/** Pods start and end some time after helm. */
const until = (what: string, isSo: () => boolean | Promise<boolean>) =>
  awaitUntil(isSo, { what, timeoutMs: 90_000 });

podSuite(
  t,
  'helm waits for Pods, and they become ready',
  async (t, kube) => {
    await kube.apply(await readFile('crds/ratelimitconfigs.yaml', 'utf8'));
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 2 } }));
    const controllers = await startKubeControllers(kube);
    t.teardown(controllers.stop);
    await createNamespace(kube, namespace);
    const address = someAddress();
    const kubelet = await startKubelet(t, kube, {
      namespace,
      findImage: findCheckoutImage,
      hosts: { 'tg-dev-postgresql': address, 'tg-dev-valkey': address },
      standIns: {
        postgres: ({ POSTGRES_PASSWORD: password = '' }) => startDevPostgresql(t, { address, password }),
        'valkey/valkey': ({ REDISCLI_AUTH: password = '' }) => startDevValkey(t, { address, password }),
      },
      volumes: 2,
    });
    const home = makeTextFolder(t).path;
    const helm = async (...args: string[]) => {
      const { code, stdout, stderr } = await runHelm([...args, `--namespace=${namespace}`], {
        home,
        kubeconfigFile: kube.kubeconfigFile,
      });
      return { code, said: `${stdout}${stderr}\n${kubelet.problems.join('\n')}` };
    };
    const release = [
      'tg',
      'charts/tollgate',
      '--values=charts/tollgate/ci/dev-values.yaml',
      // Pods share an address here.
      ...['auth', 'ratelimit', 'xds'].map((service) => `--set=${service}.replicas=1`),
      // The definition is there already, applied by kubectl.
      '--take-ownership',
    ];
    const wait = ['--wait', '--timeout=100s'];
    const claims = () =>
      kubectl(kube, ['get', 'persistentvolumeclaims', '--output=name', `--namespace=${namespace}`]);
    const authority = () =>
      kubectl(kube, [
        'get',
        'secret',
        'tg-xds-ca',
        `--namespace=${namespace}`,
        '-o=jsonpath={.data.ca\\.crt}',
      ]);
    const running = () => [...kubelet.pods.keys()].toSorted((a, b) => a.localeCompare(b));
    const first = await freePortArguments('tollgate');

    await t.test('after an installation', async (t) => {
      const { code, said } = await helm('install', ...release, ...first, ...wait);
      t.equal(code, 0, said);
      t.strictSame(
        running().map((name) => name.replace(/-\w+-\w+$/, '')),
        ['tg-auth', 'tg-ratelimit', 'tg-xds'],
      );
      t.match(await claims(), /data-tg-dev-postgresql-0\n.*data-tg-dev-valkey-0/);
    });

    await theRightsOfPeople(t, kube);

    await t.test('`helm test` runs its Pods', async (t) => {
      const { code, said } = await helm('test', 'tg', '--timeout=100s');
      t.equal(code, 0, said);
      t.match(said, /Phase:\s+Succeeded/);
    });

    await t.test('after an upgrade, which replaces them', async (t) => {
      const before = running();
      const firstAuthority = await authority();
      t.not(firstAuthority, '');
      const { code, said } = await helm(
        'upgrade',
        ...release,
        ...(await freePortArguments('tollgate')),
        ...wait,
      );
      t.equal(code, 0, said);
      await until(
        'the old Pods to go',
        () => running().length === 3 && !running().some((name) => before.includes(name)),
      );
      t.equal(await authority(), firstAuthority, 'certificates are not lost');
    });

    await t.test('after a failing upgrade the previous Pods keep running', async (t) => {
      const before = running();
      const wrong = ['--set=ratelimit.extraEnv[0].name=SHUTDOWN_DELAY,ratelimit.extraEnv[0].value=soon'];
      const args = [...release, ...(await freePortArguments('tollgate')), ...wrong, '--wait', '--timeout=5s'];
      const { code } = await helm('upgrade', ...args);
      t.not(code, 0);
      await until('the reason to be known', () =>
        kubelet.problems.some((problem) => problem.includes('SHUTDOWN_DELAY')),
      );
      const limiter = before.find((name) => name.startsWith('tg-ratelimit-')) ?? '';
      t.ok(running().includes(limiter));
      await t.resolves(kubelet.pods.get(limiter)?.askProbes() ?? Promise.reject(new Error('it is gone')));
    });

    await t.test('after a rollback', async (t) => {
      const { code, said } = await helm('rollback', 'tg', '1', ...wait);
      t.equal(code, 0, said);
      await until('three Pods', () => running().length === 3);
      for (const pod of kubelet.pods.values()) await t.resolves(pod.askProbes());
    });

    await t.test('after an uninstallation nothing runs', async (t) => {
      const { code, said } = await helm('uninstall', 'tg', ...wait);
      t.equal(code, 0, said);
      await until('all Pods to end', () => running().length === 0);
      await until('the data of the data stores to go with it', async () => (await claims()) === '');
    });
  },
  { skip: kubeControllersAreMissing() },
);

/**
 * What the roles do that every cluster has for the people of a namespace, when the chart adds to
 * them.
 */
async function theRightsOfPeople(t: Test, kube: KubeApiserver): Promise<void> {
  await t.test('view and edit rights in a namespace include its limits', async (t) => {
    for (const role of ['view', 'edit'])
      await kube.kubectl([
        ...['create', 'rolebinding', role, `--clusterrole=${role}`, `--user=${role}`],
        `--namespace=${namespace}`,
      ]);
    const as = async (user: string, args: readonly string[], where = namespace, input?: string) => {
      const words = [...args, `--as=${user}`, `--namespace=${where}`];
      const { code, stdout, stderr } = await kube.kubectl(words, input === undefined ? {} : { input });
      return code === 0 ? stdout : stderr;
    };
    const list = ['get', 'ratelimitconfigs', '--output=name'];
    const allowed = async (user: string) => !(await as(user, list)).includes('cannot list');
    const mayCreate = async () => (await as('edit', ['auth', 'can-i', 'create', 'rlc'])).startsWith('yes');
    await until('the role view to have what the chart adds', () => allowed('view'));
    await until('the role edit to have it', async () => (await allowed('edit')) && (await mayCreate()));

    const limit = manifest({ name: 'blog', namespace, domain: 'blog', limits: { user: 2 } });
    t.match(await as('view', ['create', '-f', '-'], namespace, limit), /cannot create .*ratelimitconfigs/);
    t.match(await as('edit', ['create', '-f', '-'], namespace, limit), /blog created/);
    t.match(await as('view', list), /ratelimitconfig.*\/blog/);
    const [patch, status] = [['patch', 'rlc', 'blog', '--type=merge', '-p'], '--subresource=status'];
    const annotate = '{"metadata":{"annotations":{"a":"b"}}}';
    t.match(await as('edit', [...patch, annotate]), /blog patched/);
    t.match(await as('edit', [...patch, '{"status":{"rules":1}}', status]), /cannot patch/, 'not the report');
    t.match(await as('edit', list, 'default'), /cannot list/, 'not of other namespaces');
    t.match(await as('edit', ['delete', 'rlc', 'blog']), /deleted/);
  });
}
