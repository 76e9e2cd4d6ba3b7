import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import type { ApiClient } from '../../src/kube/client.ts';
import { type EventKind, KubernetesEvents, rateLimitConfigEvents } from '../../src/status/events.ts';
import type { ObjectStatus } from '../../src/status/object-status.ts';
import type { PolicyObservation } from '../../src/status/policy-conditions.ts';
import { policyEvents } from '../../src/status/policy-events.ts';
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

function nackedPolicy(name: string, client: string): PolicyObservation {
  return {
    result: {
      ...{ id: `shop/${name}`, namespace: 'shop', name, label: `shop/${name}`, generation: 1 },
      ...{ problems: [], warnings: [], ancestors: [], heldBack: undefined, allowedHosts: [] },
      inForce: undefined,
    },
    programmed: { status: 'False', reason: 'Nacked', message: `refused by auth server ${client}` },
    isSeen: false,
  };
}

/** A writer about RateLimitConfigs, by default of the leader; closed when the test ends. */
const startWriter = (t: Test, api: ApiClient, options?: Parameters<typeof startWriterOf>[3]) =>
  startWriterOf(t, api, rateLimitConfigEvents, options);

function startWriterOf<Status>(
  t: Test,
  api: ApiClient,
  kind: EventKind<Status>,
  { leads = true, perSecond = 100, burst = 100 } = {},
) {
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
    ...{ kind, api, leadership },
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
  'events about objects that need action',
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
      const writer = startWriter(t, api);
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
      const writer = startWriter(t, api);
      for (const said of ['no', 'no, no']) writer.put(nacked('once', 'v1', said));
      await untilThere('once');
      const next = startWriter(t, api, { leads: false });
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

    await t.test('event about an access policy has its kind, once per refused generation', async (t) => {
      const writer = startWriterOf(
        ...([t, api] as const),
        policyEvents((id) => `uid-of-${id}`),
      );
      const first = nackedPolicy('orders', 'auth-1');
      for (const observation of [first, nackedPolicy('orders', 'auth-2')]) writer.put(observation);
      await untilThere('orders');
      t.match((await list('orders'))[0], {
        ...{ type: 'Warning', reason: 'Nacked', action: 'Program' },
        regarding: { kind: 'AccessPolicy', namespace: 'shop', name: 'orders', uid: 'uid-of-shop/orders' },
        reportingController: 'policy.tollgate.dev/xds',
      });
      const { result } = nackedPolicy('orders', 'auth-1');
      writer.put({ ...first, result: { ...result, generation: 2 } });
      await untilThere('orders', 2);
      t.same(writer.lines, []);
    });

    await t.test('excess events are dropped', async (t) => {
      const writer = startWriter(t, api, { perSecond: 0.001, burst: 3 });
      for (let index = 0; index < 2_000; index += 1) writer.put(nacked(`many-${index}`));
      await untilThere('many-2');
      const { stdout } = await kube.kubectl(['get', 'events.events.k8s.io', '-n', 'shop', '-o', 'name']);
      t.equal(stdout.match(/many-/g)?.length, 3);
    });

    await t.test('missing permission is logged once', async (t) => {
      await kube.kubectl(['delete', 'clusterrolebinding', 'tollgate-xds']);
      const writer = startWriter(t, api);
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
