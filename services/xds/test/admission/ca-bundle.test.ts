import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import { CaBundle } from '../../src/admission/ca-bundle.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import { serviceAccount } from '../support/admission.ts';
import { connectApi, deployFile, prepareCluster } from '../support/cluster.ts';
import { recordingContext } from '../support/recording-logger.ts';

const authorities = [makeCertificates(), makeCertificates()];
for (const { remove } of authorities) t.teardown(remove);
const [first = '', second = ''] = authorities.map(({ ca }) => ca.cert);

const name = 'tollgate-xds';

/** A replica; `lead` makes it the leader, `renew` gives it another authority. */
function startReplica(t: Test, api: ApiClient, configuration = name) {
  const { context, lines, metric } = recordingContext();
  let leads = false;
  let ca: string | undefined;
  const listeners = new Set<() => void>();
  const onChange = (listener: (value: never) => void) => {
    // The value is not read.
    const own = () => listener(undefined as never);
    listeners.add(own);
    return () => void listeners.delete(own);
  };
  const notify = () => {
    for (const listener of listeners) listener();
  };
  const bundle = new CaBundle(context, {
    api,
    name: configuration,
    tls: {
      current: () => (ca === undefined ? {} : { ca: Buffer.from(ca) }),
      onChange,
      close: () => undefined,
    },
    leadership: { isLeader: () => leads, onChange },
    intervalMs: 50,
  });
  t.teardown(() => bundle.close());
  bundle.start();
  return {
    lines,
    isRegistered: async () => (await metric('tollgate_xds_admission_registered')) === 1,
    lead() {
      leads = true;
      notify();
    },
    renew(next: string) {
      ca = next;
      notify();
    },
  };
}

kubeSuite(
  t,
  'the caBundle of a ValidatingWebhookConfiguration',
  async (t, kube) => {
    await prepareCluster(kube, ['tollgate']);
    await kube.apply(deployFile('rbac.yaml'));
    await kube.apply(deployFile('admission-webhook.yaml'));
    const api = await connectApi(kube, serviceAccount);
    t.teardown(() => api.close());
    const path = '-o=jsonpath={.webhooks[0].clientConfig.caBundle}';
    const read = async () => {
      const { stdout } = await kube.kubectl(['get', 'validatingwebhookconfiguration', name, path]);
      return Buffer.from(stdout, 'base64').toString();
    };
    const follows = (wanted: string) =>
      awaitUntil(async () => (await read()) === wanted, { what: 'the bundle' });

    await t.test('only the leader writes, and every replica knows whether it is current', async (t) => {
      const leader = startReplica(t, api);
      const other = startReplica(t, api);
      for (const replica of [leader, other]) replica.renew(first);
      await awaitUntil(
        () => other.lines.some(({ reason }) => /the leader has not written/.test(String(reason))),
        {
          what: 'the comparison',
        },
      );
      t.equal(await read(), '');
      t.notOk(await other.isRegistered());
      leader.lead();
      await follows(first);
      await awaitUntil(other.isRegistered, { what: 'the other replica to see it' });
      leader.renew(second);
      await follows(second);
      await awaitUntil(async () => !(await other.isRegistered()), { what: 'the difference' });
    });

    await t.test('what others remove is written again, and all else stays', async (t) => {
      const leader = startReplica(t, api);
      leader.renew(first);
      leader.lead();
      await follows(first);
      const patch = [
        { op: 'remove', path: '/webhooks/0/clientConfig/caBundle' },
        { op: 'replace', path: '/webhooks/0/timeoutSeconds', value: 1 },
      ];
      await kube.kubectl([
        ...['patch', 'validatingwebhookconfiguration', name, '--type=json'],
        ...['-p', JSON.stringify(patch)],
      ]);
      await follows(first);
      const timeout = '-o=jsonpath={.webhooks[0].timeoutSeconds}';
      t.equal((await kube.kubectl(['get', 'validatingwebhookconfiguration', name, timeout])).stdout, '1');
    });

    await t.test('configuration that is missing or another one: logged with the reason', async (t) => {
      const admin = await connectApi(kube);
      t.teardown(() => admin.close());
      const cases = [
        [admin, 'missing', /there is no ValidatingWebhookConfiguration missing/],
        [api, 'other', /not allowed to get and patch validatingwebhookconfigurations\.admissionregistration/],
      ] as const;
      for (const [client, configuration, reason] of cases) {
        const replica = startReplica(t, client, configuration);
        replica.renew(first);
        replica.lead();
        await awaitUntil(() => replica.lines.some((line) => reason.test(String(line.reason))), {
          what: `${reason}`,
        });
        t.notOk(await replica.isRegistered());
      }
    });
  },
  { users: [{ name: serviceAccount }] },
);
