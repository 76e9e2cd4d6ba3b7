import { readFile } from 'node:fs/promises';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { manifest } from '../e2e/support/manifest.ts';
import { statusWhen } from '../e2e/support/status-when.ts';
import { startXds } from '../e2e/support/xds-process.ts';
import { helmIsMissing } from './support/helm.ts';
import { objectsOf, renderChart } from './support/rendered-chart.ts';

// An API server and a service are started, on a machine that may have other work.
t.setTimeout(120_000);

const account = 'system:serviceaccount:default:tg-xds';
const users = [{ name: account, groups: ['system:serviceaccounts', 'system:serviceaccounts:default'] }];

helmIsMissing();
kubeSuite(
  t,
  'the management server with the rights that its chart gives',
  async (t, kube) => {
    await kube.apply(await readFile('crds/ratelimitconfigs.yaml', 'utf8'));
    const objects = objectsOf(await renderChart('xds', ['--set=watchNamespaces={default}']));
    const rights = objects.filter(({ kind }) => /^(Cluster)?Role(Binding)?$/.test(kind));
    await kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: rights }));
    const xds = await startXds({
      XDS_SOURCE: 'kubernetes',
      XDS_NAMESPACES: 'default',
      XDS_LEASE_NAME: 'tg-xds',
      XDS_LEASE_NAMESPACE: 'default',
      XDS_STATUS_DEBOUNCE: '100ms',
      KUBECONFIG: kube.kubeconfigFor(account),
      POD_NAME: 'tg-xds-0',
    });
    t.teardown(() => xds.stop());

    await t.test('follows objects, holds its Lease and reports', async (t) => {
      await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 2 } }));
      const status = await statusWhen(kube, 'shop', ({ accepted }) => accepted?.status === 'True');
      t.match(status, { rules: 1, accepted: { reason: 'Accepted' } });
      const { stdout } = await kube.kubectl(['get', 'leases', '-o', 'name']);
      t.match(stdout, 'tg-xds');
    });

    await t.test('is refused nothing that it asks for', async (t) => {
      t.notMatch(xds.logs(), /not allowed|forbidden/i);
    });
  },
  { users },
);
