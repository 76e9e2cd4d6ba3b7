import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { currentNamespace, loadKubeConfig } from '../../src/kube/config.ts';

interface Written {
  server?: string;
  namespace?: string;
  context?: string;
  current?: string;
  insecure?: boolean;
  /** Further fields of the cluster and of the user. */
  ofCluster?: Record<string, string>;
  ofUser?: Record<string, string>;
}

/** Writes a kubeconfig and returns its path. */
function kubeconfig(t: Test, options: Written = {}): string {
  const { server = 'https://cluster.test:6443', namespace, context = 'shop', current = context } = options;
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const path = join(folder.path, 'config');
  const { ofCluster, ofUser } = options;
  const cluster = {
    server,
    ...ofCluster,
    ...(options.insecure === true && { 'insecure-skip-tls-verify': true }),
  };
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: `cluster-${context}`, cluster }],
      users: [{ name: `user-${context}`, user: { token: 'open', ...ofUser } }],
      contexts: [
        { name: context, context: { cluster: `cluster-${context}`, user: `user-${context}`, namespace } },
      ],
      'current-context': current,
    }),
  );
  return path;
}

const load = (path: string) => loadKubeConfig({ kubeconfig: path, kubernetesServiceHost: '' });

t.test('kubeconfig sets cluster and namespace', async (t) => {
  const config = await load(kubeconfig(t, { namespace: 'bank' }));
  t.equal(config.getCurrentCluster()?.server, 'https://cluster.test:6443');
  t.equal(currentNamespace(config), 'bank');
  t.equal(currentNamespace(await load(kubeconfig(t))), 'default');
});

t.test('first of several kubeconfigs sets the current context', async (t) => {
  const [one, two] = [
    kubeconfig(t, { context: 'one', server: 'https://one.test' }),
    kubeconfig(t, { context: 'two', server: 'https://two.test' }),
  ];
  const config = await load([one, two].join(delimiter));
  t.equal(config.getCurrentCluster()?.server, 'https://one.test');
  t.strictSame(
    config.getContexts().map(({ name }) => name),
    ['one', 'two'],
  );
  const current = await load([kubeconfig(t, { context: 'three', current: 'two' }), two].join(delimiter));
  t.equal(current.getCurrentCluster()?.server, 'https://two.test');
});

t.test('kubeconfig takes precedence over the service account of the pod', async (t) => {
  const path = kubeconfig(t);
  const config = await loadKubeConfig({ kubeconfig: path, kubernetesServiceHost: '10.0.0.1' });
  t.equal(config.getCurrentCluster()?.server, 'https://cluster.test:6443');
});

t.test('pod without a service account fails with advice', async (t) => {
  await t.rejects(loadKubeConfig({ kubeconfig: '', kubernetesServiceHost: '10.0.0.1' }), {
    message: /the pod has no .*token: set automountServiceAccountToken: true/,
  });
});

t.test('unreadable kubeconfig or one without a cluster is an error', async (t) => {
  await t.rejects(load('/nowhere/config'), {
    message: /cannot read the kubeconfig \/nowhere\/config: .*ENOENT/,
  });
  await t.rejects(load(kubeconfig(t, { current: 'lost' })), {
    message: /has no cluster for its current context lost; its contexts: shop/,
  });
  await t.rejects(load(kubeconfig(t, { server: 'cluster' })), { message: /not a URL: cluster/ });
});

t.test('credentials are sent unencrypted only if the kubeconfig allows it', async (t) => {
  const server = 'http://127.0.0.1:8001';
  await t.rejects(load(kubeconfig(t, { server })), { message: /would be sent unencrypted/ });
  t.ok(await load(kubeconfig(t, { server, insecure: true })));
});

t.test('missing file of the kubeconfig is named with its field', async (t) => {
  const missing = (field: string) => ({
    message: new RegExp(`names a ${field} that cannot be read: ENOENT.*/nowhere/pem`),
  });
  const file = '/nowhere/pem';
  await t.rejects(
    load(kubeconfig(t, { ofCluster: { 'certificate-authority': file } })),
    missing('certificate-authority'),
  );
  for (const field of ['client-certificate', 'client-key'])
    await t.rejects(load(kubeconfig(t, { ofUser: { [field]: file } })), missing(field));
});
