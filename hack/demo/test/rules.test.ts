import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { clusterRules, editText, folderRules, readManifests } from '../rules.ts';
import { morePerHour } from '../scenario.ts';

const crdFile = resolve(import.meta.dirname, '../../../crds/ratelimitconfigs.yaml');
const freePlan = ['-o', 'jsonpath={.spec.descriptors[0].descriptors[0].rateLimit.requestsPerUnit}'];

/** Output of kubectl, or of its failure. */
async function kubectl(kube: KubeApiserver, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await kube.kubectl(args);
  return code === 0 ? stdout : stderr;
}

kubeSuite(t, 'Rules in a cluster', async (t, kube) => {
  await t.test('are written, edited and removed, with their namespace and definition', async (t) => {
    const rules = await clusterRules({ KUBECONFIG: kube.kubeconfigFile });
    const namespace = String(rules.xdsEnvironment.XDS_NAMESPACES);
    t.match(
      rules.notice,
      /^KUBECONFIG is set, so .* https:\/\/127\.0\.0\.1:\d+\. .*CustomResourceDefinition/,
    );
    t.ok(rules.notice?.includes(namespace), 'says in which namespace');
    t.match(await kubectl(kube, 'get', 'rlc'), /the server doesn't have a resource type/);

    await rules.write();
    const list = () => kubectl(kube, 'get', 'rlc', '-n', namespace, '-o', 'name');
    // kubectl looks for kinds in a list, which is refreshed some time after the kind is served.
    await awaitUntil(async () => !/resource type/.test(await list()), { what: 'kubectl to know the kind' });
    t.equal(
      await list(),
      'ratelimitconfig.ratelimit.tollgate.dev/plans\nratelimitconfig.ratelimit.tollgate.dev/routes\n',
    );
    t.equal(await kubectl(kube, 'get', 'rlc/plans', '-n', namespace, ...freePlan), '5');
    await rules.edit(morePerHour);
    t.equal(await kubectl(kube, 'get', 'rlc/plans', '-n', namespace, ...freePlan), '500');
    t.match(rules.getLocation('plans.yaml'), `kubectl edit -n ${namespace} rlc/plans`);
    await rules.write();
    t.equal(await kubectl(kube, 'get', 'rlc/plans', '-n', namespace, ...freePlan), '5');

    await rules.remove();
    // No controller ends the namespace here.
    t.match(await kubectl(kube, 'get', 'ns', namespace, '-o', 'jsonpath={.status.phase}'), 'Terminating');
    await awaitUntil(async () => (await kubectl(kube, 'get', 'crd', '-o', 'name')) === '', {
      what: 'the definition to be gone',
    });
  });

  await t.test('keep an existing definition and foreign objects', async (t) => {
    await kube.apply(await readFile(crdFile, 'utf8'));
    const rules = await clusterRules({ KUBECONFIG: kube.kubeconfigFile });
    t.notMatch(rules.notice, /CustomResourceDefinition/);
    await rules.write();
    await rules.remove();
    t.equal(await kubectl(kube, 'get', 'rlc', '-A', '-o', 'name'), '');
    t.match(await kubectl(kube, 'get', 'crd', '-o', 'name'), /ratelimitconfigs\.ratelimit\.tollgate\.dev/);
  });

  await t.test('give the xDS server variables for credentials, and no settings', async (t) => {
    const rules = await clusterRules({
      KUBECONFIG: kube.kubeconfigFile,
      PATH: '/bin',
      CLOUD_PROFILE: 'mine',
      XDS_FOLDER: '/elsewhere',
      LOG_FORMAT: 'json',
    });
    t.teardown(rules.remove);
    const { XDS_NAMESPACES: namespace, ...others } = rules.xdsEnvironment;
    t.same(others, {
      KUBECONFIG: kube.kubeconfigFile,
      PATH: '/bin',
      CLOUD_PROFILE: 'mine',
      XDS_SOURCE: 'kubernetes',
      XDS_LEASE_NAMESPACE: namespace,
      XDS_ANY_DOMAIN_NAMESPACES: namespace,
    });
  });
});

const edit = { file: 'a.yaml', from: 'x: 1', to: 'x: 2' };

t.test('an edit changes the one line that it names', async (t) => {
  t.equal(editText('x: 1\ny: 10\n', edit), 'x: 2\ny: 10\n');
});

t.test('an edit of a missing or ambiguous line is an error', async (t) => {
  const wrong = { message: 'a.yaml is to have exactly one line that ends in "x: 1"' };
  t.throws(() => editText('x: 1\nx: 1\n', edit), wrong);
  t.throws(() => editText('y: 1\n', edit), wrong);
});

t.test('the edit of the scenario finds its line in the manifests of the demo', async (t) => {
  const text = (await readManifests()).get(morePerHour.file) ?? '';
  t.ok(editText(text, morePerHour).includes(`${morePerHour.to}\n`));
});

t.test('manifests are written, edited in place, and rewritten', async (t) => {
  const rules = folderRules(t.testdir({}));
  const file = rules.getLocation(morePerHour.file);
  const original = (await readManifests()).get(morePerHour.file);

  await rules.write();
  t.equal(readFileSync(file, 'utf8'), original);
  await rules.edit(morePerHour);
  t.equal(readFileSync(file, 'utf8'), original?.replace(morePerHour.from, morePerHour.to));
  await rules.write();
  t.equal(readFileSync(file, 'utf8'), original);
});
