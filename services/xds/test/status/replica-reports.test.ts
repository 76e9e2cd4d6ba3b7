import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t, { type Test } from 'tap';
import { type ApiClient, objectPath } from '../../src/kube/client.ts';
import { configMaps, type ObjectName } from '../../src/kube/resources.ts';
import { type ClientReport, formatReport } from '../../src/status/client-report.ts';
import { ReplicaReports, type ReplicaReportsOptions } from '../../src/status/replica-reports.ts';
import { connectApi } from '../support/cluster.ts';
import { recordingLogger } from '../support/recording-logger.ts';

interface Replica {
  readonly reports: ReplicaReports;
  /** Sets the report of this replica. */
  publish(report: ClientReport): void;
  readonly logs: readonly Record<string, unknown>[];
  /** Number of notifications of listeners. */
  notifications(): number;
  /** Names of the other replicas with their numbers of limiters, such as `b 2`. */
  others(): readonly string[] | undefined;
  /** The other reports at each notification, such as `b 2,c 3`. */
  readonly history: readonly string[];
}

/** Starts a replica with short delays. */
function startReplica(
  t: Test,
  api: ApiClient,
  options: Partial<ReplicaReportsOptions> & { identity: string; name: string; leads?: boolean },
): Replica {
  const { leads = false, ...rest } = options;
  const { logger, lines } = recordingLogger();
  const leadership = { isLeader: () => leads, onChange: () => () => undefined };
  let report: ClientReport = { groups: [] };
  const reports = new ReplicaReports({
    api,
    summarize: () => report,
    leadership,
    logger,
    namespace: 'default',
    debounceMs: 5,
    renewMs: 50,
    expiryMs: 20_000,
    backoff: { initialMs: 1, maxMs: 20, jitter: 1 },
    ...rest,
  });
  const others = () =>
    reports.others?.map(({ replica, report }) => `${replica} ${report.groups.map(({ count }) => count)}`);
  const history: string[] = [];
  reports.onChange(() => history.push(String(others())));
  t.teardown(() => reports.close());
  reports.start();
  const publish = (next: ClientReport): void => {
    report = next;
    reports.changed();
  };
  return { reports, publish, logs: lines, notifications: () => history.length, others, history };
}

const problems = ({ logs }: Replica) => logs.filter(({ level }) => level === 'warning' || level === 'error');

function receives(replica: Replica, ...expected: readonly string[]): Promise<unknown> {
  const isSo = () => replica.others()?.join() === expected.join();
  return awaitUntil(isSo, { what: `${expected}` });
}

/** For states that may have passed already. */
function hasReceived(replica: Replica, ...expected: readonly string[]): Promise<unknown> {
  return awaitUntil(() => replica.history.includes(String(expected)), { what: `${expected}, once` });
}

async function readData(api: ApiClient, name: string): Promise<Readonly<Record<string, string>>> {
  // A ConfigMap as the API server has it.
  const { data = {} } = (await api.send({
    method: 'GET',
    path: getPath({ namespace: 'default', name }),
  })) as {
    data?: Record<string, string>;
  };
  return data;
}

const getPath = (name: ObjectName): string => objectPath(configMaps, name);

const patch = (api: ApiClient, name: string, data: Record<string, string>): Promise<unknown> =>
  api.send({
    method: 'PATCH',
    path: getPath({ namespace: 'default', name }),
    contentType: 'application/merge-patch+json',
    body: { data },
  });

kubeSuite(t, 'reports of limiters', async (t, kube) => {
  const api = await connectApi(kube);
  t.teardown(() => api.close());

  await t.test(
    "replicas that start together create one ConfigMap and read each other's reports",
    async (t) => {
      const name = 'together';
      const replicas = ['a', 'b', 'c'].map((id) => startReplica(t, api, { identity: `${id}_1`, name }));
      const [a, b, c] = replicas;
      if (a === undefined || b === undefined || c === undefined) throw new Error('three were made');
      for (const [i, { publish }] of replicas.entries()) publish({ groups: [{ count: i + 1 }] });
      await receives(a, 'b 2', 'c 3');
      await receives(b, 'a 1', 'c 3');
      await receives(c, 'a 1', 'b 2');
      t.strictSame(replicas.flatMap(problems), []);

      b.publish({ groups: [{ count: 9 }] });
      await receives(a, 'b 9', 'c 3');
      await receives(c, 'a 1', 'b 9');
      const before = a.notifications();
      const text = (await readData(api, name)).b_1;
      await awaitUntil(async () => (await readData(api, name)).b_1 !== text, { what: 'a heartbeat' });
      await receives(a, 'b 9', 'c 3');
      t.equal(a.notifications(), before, 'heartbeats do not notify');

      await b.reports.close();
      await receives(a, 'c 3');
      t.strictSame(Object.keys(await readData(api, name)), ['a_1', 'c_1']);
    },
  );

  await t.test('leader removes the report of a replica that is gone', async (t) => {
    const name = 'gone';
    const follower = startReplica(t, api, { identity: 'b_1', name, expiryMs: 400 });
    follower.publish({ groups: [{ count: 1 }] });
    await awaitUntil(async () => (await readData(api, name)).b_1, { what: 'the ConfigMap' });
    await patch(api, name, { killed_1: formatReport({ groups: [{ count: 5 }] }, 1) });
    await hasReceived(follower, 'killed 5');
    await receives(follower);
    t.ok((await readData(api, name)).killed_1, 'who is not the leader leaves it there');
    const leader = startReplica(t, api, { identity: 'a_1', name, expiryMs: 400, leads: true });
    leader.publish({ groups: [{ count: 2 }] });
    await hasReceived(leader, 'b 1', 'killed 5');
    await receives(leader, 'b 1');
    await awaitUntil(async () => !('killed_1' in (await readData(api, name))), {
      what: 'it to be cleared away',
    });
    await receives(follower, 'a 2');
    t.strictSame([leader, follower].flatMap(problems), []);
  });

  await t.test('restarted replica replaces the report of its former process', async (t) => {
    const name = 'restarted';
    const witness = startReplica(t, api, { identity: 'b_1', name });
    witness.publish({ groups: [{ count: 1 }] });
    await awaitUntil(async () => (await readData(api, name)).b_1, { what: 'the ConfigMap' });
    await patch(api, name, { a_1: formatReport({ groups: [{ count: 5 }] }, 1) });
    await receives(witness, 'a 5');
    const restarted = startReplica(t, api, { identity: 'a_2', name });
    restarted.publish({ groups: [{ count: 4 }] });
    await receives(witness, 'a 4');
    await receives(restarted, 'b 1');
    t.strictSame(Object.keys(await readData(api, name)), ['a_2', 'b_1']);
  });

  await t.test('deleted or invalid report is written again with the next heartbeat', async (t) => {
    const name = 'spoiled';
    const [a, b] = ['a', 'b'].map((id) => startReplica(t, api, { identity: `${id}_1`, name }));
    if (a === undefined || b === undefined) throw new Error('two were made');
    for (const { publish } of [a, b]) publish({ groups: [{ count: 1 }] });
    await receives(a, 'b 1');
    await patch(api, name, { b_1: 'nonsense' });
    await receives(a, 'b 1');
    await kube.kubectl(['delete', 'configmap', name]);
    await awaitUntil(async () => Object.keys(await readData(api, name)).length === 2, { what: 'both' });
    await receives(a, 'b 1');
    await receives(b, 'a 1');
  });

  await t.test('identity that is not a valid key is converted', async (t) => {
    const a = startReplica(t, api, { identity: `my pod/${'x'.repeat(300)}_1`, name: 'converted' });
    a.publish({ groups: [] });
    await awaitUntil(
      async () => Object.keys(await readData(api, 'converted'))[0] === `${'x'.repeat(251)}_1`,
      {
        what: 'the key',
      },
    );
  });

  await t.test(
    'reports stay known during an outage of the API server and are updated after it',
    async (t) => {
      const name = 'outage';
      // The return of the API server ends the delay.
      const backoff = { initialMs: 3_600_000, maxMs: 3_600_000 };
      const [a, b] = ['a', 'b'].map((id) => startReplica(t, api, { identity: `${id}_1`, name, backoff }));
      if (a === undefined || b === undefined) throw new Error('two were made');
      for (const { publish } of [a, b]) publish({ groups: [{ count: 1 }] });
      await receives(a, 'b 1');
      await kube.killApiserver();
      b.publish({ groups: [{ count: 2 }] });
      await awaitUntil(
        () => problems(b).some(({ '@message': text }) => /cannot report limiters/.test(String(text))),
        {
          what: 'a warning',
        },
      );
      t.strictSame(a.others(), ['b 1']);
      await kube.startApiserver();
      await awaitUntil(() => a.others()?.join() === 'b 2', { what: 'the change', timeoutMs: 40_000 });
    },
  );
});
