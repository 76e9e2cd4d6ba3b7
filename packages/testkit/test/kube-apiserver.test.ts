import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';

const configMap = (name: string, data: object) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.test }
spec:
  group: example.test
  scope: Namespaced
  names: { kind: Widget, plural: widgets }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, maxProperties: 1 } } } }
`;

const jane = 'system:serviceaccount:default:jane';

const configMaps = '/api/v1/namespaces/default/configmaps';

const watchFrom = (resourceVersion: string) =>
  `${configMaps}?watch=1&timeoutSeconds=30&resourceVersion=${resourceVersion}`;

const gone = /"type":"ERROR".*"code":410/;

/** Asks as the administrator without kubectl's own interpretation. */
async function getRaw(kube: KubeApiserver, path: string): Promise<string> {
  const { stdout, stderr } = await kube.kubectl(['get', '--raw', path]);
  return stdout + stderr;
}

async function resourceVersion(kube: KubeApiserver): Promise<string> {
  return JSON.parse(await getRaw(kube, configMaps)).metadata.resourceVersion;
}

kubeSuite(
  t,
  'a Kubernetes API server',
  async (t, kube) => {
    const raw = (path: string) => getRaw(kube, path);

    await t.test('keeps what kubectl applies', async (t) => {
      await kube.apply(configMap('limits', { colour: 'green' }));

      const got = await kube.kubectl(['get', 'configmap', 'limits', '-o', 'jsonpath={.data.colour}']);
      t.same(got, { code: 0, stdout: 'green', stderr: '' });
    });

    await t.test('refuses what breaks the schema of its definition, and says so', async (t) => {
      await kube.apply(widgets);

      await kube.apply(
        '{ apiVersion: example.test/v1, kind: Widget, metadata: { name: a }, spec: { x: 1 } }',
      );
      await t.rejects(
        kube.apply(
          '{ apiVersion: example.test/v1, kind: Widget, metadata: { name: b }, spec: { x: 1, y: 2 } }',
        ),
        { message: /kubectl apply .* failed: .*must have at most 1 item/s },
      );
    });

    await t.test('refuses requests that RBAC does not grant', async (t) => {
      const list = () => kube.kubectl(['get', 'configmaps'], { as: jane });
      t.match(await list(), { code: 1, stderr: `User "${jane}" cannot list resource "configmaps"` });

      await kube.kubectl(['create', 'role', 'reader', '--verb=list', '--resource=configmaps']);
      await kube.kubectl(['create', 'rolebinding', 'jane', '--role=reader', '--serviceaccount=default:jane']);
      // The authorizer learns of it through a watch.
      await awaitUntil(async () => (await list()).code === 0, { what: 'the right to list' });
      t.match(await kube.kubectl(['get', 'secrets'], { as: jane }), { code: 1, stderr: 'Forbidden' });
    });

    await t.test('knows only the configured users', async (t) => {
      t.throws(() => kube.tokenFor('joe'), { message: /no user joe/ });
      t.not(kube.tokenFor(jane), kube.tokenFor('admin'));
    });

    await t.test('restarts at the same address with its objects and without old events', async (t) => {
      const before = await resourceVersion(kube);
      await kube.apply(configMap('limits', { colour: 'yellow' }));

      await kube.killApiserver();
      t.match(await kube.kubectl(['get', 'configmap', 'limits']), { code: 1, stderr: 'refused' });
      await kube.startApiserver();

      t.match(await raw('/api/v1/namespaces/default/configmaps/limits'), /yellow/);
      t.match(await raw(watchFrom(before)), gone);
    });

    await t.test('can be stopped gracefully and restarted once', async (t) => {
      await kube.stopApiserver();
      t.match(await raw('/readyz'), 'refused');

      await kube.startApiserver();
      t.match(await raw('/readyz'), 'ok');
      await t.rejects(kube.startApiserver(), { message: /running already/ });
    });
  },
  { users: [{ name: jane, groups: ['system:serviceaccounts'] }] },
);

kubeSuite(
  t,
  'a Kubernetes API server without a watch cache',
  async (t, kube) => {
    await t.test('answers 410 to lists and watches from before a compaction', async (t) => {
      const before = await resourceVersion(kube);
      await kube.apply(configMap('one', {}));
      await kube.apply(configMap('two', {}));
      const page = JSON.parse(await getRaw(kube, `${configMaps}?limit=1`));
      const nextPage = `${configMaps}?limit=1&continue=${page.metadata.continue}`;
      t.match(await getRaw(kube, nextPage), '"two"', 'before the compaction');
      // A watch that continues at the latest state loses nothing.
      await kube.apply(configMap('three', {}));

      await kube.compact();
      t.match(await getRaw(kube, nextPage), 'continue parameter is too old');
      t.match(await getRaw(kube, watchFrom(before)), gone);
    });
  },
  { args: ['--watch-cache=false'] },
);

/** macOS has other ways, not worth a second one here. */
const noProc = existsSync('/proc/self/cmdline') ? false : 'reads /proc';

kubeSuite(t, 'a Kubernetes API server that is stopped', async (t, kube) => {
  await t.test('leaves no process and no file', { skip: noProc }, async (t) => {
    const folder = dirname(kube.kubeconfigFile);
    t.equal(processesOf(folder).length > 0, true);

    await kube.stop();
    t.same(processesOf(folder), []);
    t.equal(existsSync(folder), false);
    t.equal(existsSync(kube.caFile), false);
    await t.resolves(kube.stop(), 'again');
  });

  await t.test('ends when the process that started it is killed', { skip: noProc }, async (t) => {
    const parent = spawn(process.execPath, ['--input-type=module-typescript', '-e', orphanMaker], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(parent.stdout.setEncoding('utf8'), 'data')) as [string];
    const folders: string[] = JSON.parse(line);
    t.teardown(() => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });
    const [folder = ''] = folders;
    t.equal(processesOf(folder).length > 0, true);

    parent.kill('SIGKILL');
    await awaitUntil(() => processesOf(folder).length === 0, { what: 'both to end' });
  });
});

/** Starts an API server, passes on where its files are, and stays until it is killed. */
const orphanMaker = `
  import { dirname } from 'node:path';
  import { startKubeApiserver } from '@tollgate/testkit/kube-apiserver';
  const kube = await startKubeApiserver();
  process.stdout.write(JSON.stringify([dirname(kube.kubeconfigFile), dirname(kube.caFile)]));
`;

/** Command lines of the running programs that name that folder. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        // It ended meanwhile.
        return '';
      }
    })
    .filter((commandLine) => commandLine.includes(folder));
}
