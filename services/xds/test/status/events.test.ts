import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import type { ApiClient } from '../../src/kube/client.ts';
import { KubernetesEvents } from '../../src/status/events.ts';
import type { ObjectStatus } from '../../src/status/object-status.ts';
import type { StatusWriter } from '../../src/status/reporter.ts';
import { connectApi, deployFile, prepareCluster } from '../support/cluster.ts';
import { recordingContext } from '../support/recording-logger.ts';

const server = 'system:serviceaccount:tollgate:tollgate-xds';

/** A status of a version that limiters reject; the object need not exist. */
function nacked(name: string, version = 'v1', said = 'no'): ObjectStatus {
  return {
    id: `shop/${name}`,
    uid: `uid-of-${name}`,
    observedGeneration: 1,
    rules: 1,
    version,
    accepted: { status: 'True', reason: 'Accepted', message: '' },
    programmed: { status: 'False', reason: 'Nacked', message: `limiter-1 says: ${said}` },
  };
}

/** A writer, by default of the leader; closed when the test ends. */
async function startWriter(
  t: Test,
  api: ApiClient,
  { leads = true, perSecond = 100, burst = 100 } = {},
): Promise<StatusWriter & { lead(): void; readonly lines: readonly Record<string, unknown>[] }> {
  const { context, lines } = recordingContext();
  let isLeader = leads;
  let tell: (leader: boolean) => void = () => undefined;
  const leadership = {
    isLeader: () => isLeader,
    onChange(listener: (leader: boolean) => void) {
      tell = listener;
      return () => undefined;
    },
  };
  const writer = new KubernetesEvents(context, {
    api,
    leadership,
    instance: 'replica-1',
    perSecond,
    burst,
  });
  t.teardown(() => writer.close());
  writer.start();
  return Object.assign(writer, {
    lines,
    lead() {
      isLeader = true;
      tell(true);
    },
  });
}

kubeSuite(
  t,
  'events about RateLimitConfigs',
  async (t, kube) => {
    await prepareCluster(kube, ['tollgate', 'shop']);
    await kube.apply(deployFile('rbac.yaml'));
    const api = await connectApi(kube, server);
    t.teardown(() => api.close());
    const list = async (name: string) => {
      const selector = `--field-selector=regarding.name=${name}`;
      const { stdout } = await kube.kubectl([
        'get',
        'events.events.k8s.io',
        '-n',
        'shop',
        selector,
        '-o',
        'json',
      ]);
      // Parsed boundary: a list, as kubectl writes it.
      return (JSON.parse(stdout) as { items: readonly Record<string, unknown>[] }).items;
    };
    const untilThere = (name: string, count = 1) =>
      awaitUntil(async () => (await list(name)).length === count, { what: `${count} events of ${name}` });

    await t.test('event has object, reason and message', async (t) => {
      const writer = await startWriter(t, api);
      writer.put(nacked('web', 'v1', `no ${'é'.repeat(2_000)}`));
      await untilThere('web');
      const [event] = await list('web');
      t.match(event, {
        type: 'Warning',
        reason: 'Nacked',
        action: 'Program',
        note: /^limiter-1 says: no é+…$/,
        regarding: { kind: 'RateLimitConfig', namespace: 'shop', name: 'web', uid: 'uid-of-web' },
        reportingController: 'ratelimit.tollgate.dev/xds',
        reportingInstance: 'replica-1',
      });
    });

    await t.test('same event is written once, also by another leader', async (t) => {
      const writer = await startWriter(t, api);
      for (const said of ['no', 'no, no']) writer.put(nacked('once', 'v1', said));
      await untilThere('once');
      const next = await startWriter(t, api, { leads: false });
      next.put(nacked('once'));
      next.put(nacked('other'));
      t.equal((await list('other')).length, 0, 'it does not lead');
      next.lead();
      await untilThere('other');
      t.equal((await list('once')).length, 1);
      next.put(nacked('once', 'v2'));
      await untilThere('once', 2);
      t.same(next.lines, []);
    });

    await t.test('excess events are dropped', async (t) => {
      const writer = await startWriter(t, api, { perSecond: 0.001, burst: 3 });
      for (let index = 0; index < 2_000; index += 1) writer.put(nacked(`many-${index}`));
      await untilThere('many-2');
      const { stdout } = await kube.kubectl(['get', 'events.events.k8s.io', '-n', 'shop', '-o', 'name']);
      t.equal(stdout.match(/many-/g)?.length, 3);
    });

    await t.test('missing permission is logged once', async (t) => {
      await kube.kubectl(['delete', 'clusterrolebinding', 'tollgate-xds']);
      const writer = await startWriter(t, api);
      const line = () => writer.lines.filter((one) => one['@message'] === 'cannot write event');
      await awaitUntil(
        () => {
          writer.put(nacked(`refused-${Date.now()}`));
          return line().length > 0;
        },
        { what: 'the warning', everyMs: 100 },
      );
      t.match(line()[0]?.reason, /not allowed to create events.events.k8s.io .*rbac\.yaml/);
      writer.put(nacked('refused-again'));
      t.equal(line().length, 1);
    });
  },
  { users: [{ name: server }] },
);
