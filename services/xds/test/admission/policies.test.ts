import { readFileSync } from 'node:fs';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { serviceAccount, startAdmission } from '../support/admission.ts';
import { policyCrdFile, prepareCluster } from '../support/cluster.ts';
import { perUser } from '../support/policies.ts';

const manifestOf = (spec: object) => ({
  apiVersion: 'policy.tollgate.dev/v1alpha1',
  kind: 'AccessPolicy',
  metadata: { name: 'orders', namespace: 'shop' },
  spec,
});

kubeSuite(
  t,
  'the admission webhook of AccessPolicies',
  async (t, kube) => {
    await prepareCluster(kube, ['shop']);
    await kube.apply(readFileSync(policyCrdFile, 'utf8'));
    const { apply } = await startAdmission(t, kube);

    await t.test('a policy with mistakes is refused, with a suggestion for each', async (t) => {
      const spec = {
        hosts: ['api.test'],
        access: { role: ['admin'] },
        rules: [{ matches: [{ path: { type: 'RegularExpression', value: '(' } }] }],
        limits: [perUser],
      };
      const { code, stderr } = await apply(manifestOf(spec));
      t.equal(code, 1);
      t.match(stderr, /denied the request: \n? *spec\.access\.role: unknown field.*did you mean roles\?/);
      const { stderr: pattern } = await apply(manifestOf({ ...spec, access: { roles: ['admin'] } }));
      t.match(pattern, /denied the request: spec\.rules\[0\]\.matches\[0\]\.path\.value: /);
    });

    await t.test('a policy with less effect than intended is applied with warnings', async (t) => {
      const { code, stderr } = await apply(manifestOf({ hosts: ['api.test'], limits: [perUser] }));
      t.equal(code, 0, stderr);
      t.match(stderr, /^Warning: spec\.hosts: not allowed for the namespace shop, .* on api\.test: /m);
      t.match(stderr, /^Warning: spec\.limits: no limit counts /m);
      const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'orders' };
      const { stderr: missing } = await apply(manifestOf({ targetRefs: [target] }));
      t.match(missing, /^Warning: spec\.targetRefs\[0\]: there is no HTTPRoute orders in namespace shop/m);
    });
  },
  { users: [{ name: serviceAccount }] },
);
