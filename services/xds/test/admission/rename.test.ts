import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { serviceAccount, startAdmission } from '../support/admission.ts';
import { prepareCluster } from '../support/cluster.ts';

const manifestOf = (name: string) => ({
  apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
  kind: 'RateLimitConfig',
  metadata: { name, namespace: 'shop' },
  spec: {
    domain: 'shop',
    descriptors: [{ key: 'user', rateLimit: { unit: 'Minute', requestsPerUnit: 10 } }],
  },
});

kubeSuite(
  t,
  'an object that is renamed while its deletion waits passes the webhook',
  async (t, kube) => {
    await prepareCluster(kube, ['shop']);
    // Longer than the test, so that a review never succeeds because the deletion has taken effect.
    const { app, apply } = await startAdmission(t, kube, { env: { XDS_DELETION_DELAY: '10m' } });
    t.match(await apply(manifestOf('before')), { code: 0 });
    const problem = /'user' is already in shop\/before/;
    await awaitUntil(
      async () => problem.test((await apply(manifestOf('later'), '--dry-run=server')).stderr),
      {
        what: 'the xDS server to know the object',
      },
    );
    await kube.kubectl(['delete', 'rlc', '-n', 'shop', 'before']);
    // The watch may be late.
    await awaitUntil(async () => (await apply(manifestOf('later'))).code === 0, { what: 'the new name' });
    const page = await (await fetch(`http://127.0.0.1:${app.ports.admin}/objects`)).text();
    t.match(page, /shop\/before/, 'the rules of the old name are in force still');
  },
  { users: [{ name: serviceAccount }] },
);
