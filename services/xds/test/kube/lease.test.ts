import { awaitUntil } from '@tollgate/testkit/await-until';
import { type FakeClock, fakeClock } from '@tollgate/testkit/fake-clock';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { Registry } from 'prom-client';
import t, { type Test } from 'tap';
import type { ApiClient } from '../../src/kube/client.ts';
import { LeaseElector, type LeaseElectorOptions, replicaIdentity } from '../../src/kube/lease.ts';
import { registerMetrics } from '../../src/metrics.ts';
import { connectApi } from '../support/cluster.ts';
import { type Answer, json, refusal, startScriptedServer } from '../support/kube-server.ts';
import { recordingLogger } from '../support/recording-logger.ts';

interface Candidate {
  readonly elector: LeaseElector;
  /** The notifications of its listeners. */
  readonly notified: readonly boolean[];
  readonly logs: readonly Record<string, unknown>[];
  leaderGauge(): Promise<number | undefined>;
}

function stand(
  t: Test,
  api: ApiClient,
  identity: string,
  options: Partial<LeaseElectorOptions> = {},
): Candidate {
  const { logger, lines } = recordingLogger();
  const registry = new Registry();
  const elector = new LeaseElector({
    api,
    logger,
    metrics: registerMetrics(registry),
    namespace: 'default',
    name: 'tollgate-xds',
    identity,
    ...times,
    random: () => 0,
    ...options,
  });
  const notified: boolean[] = [];
  elector.onChange((leader) => notified.push(leader));
  elector.start();
  t.teardown(() => elector.close());
  const leaderGauge = async () =>
    (await registry.getSingleMetric('tollgate_xds_leader')?.get())?.values[0]?.value;
  return { elector, notified, logs: lines, leaderGauge };
}

const times = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };

const leads = ({ elector }: Candidate) => awaitUntil(() => elector.isLeader(), { what: 'a leader' });

/** Advances time in steps, each when all candidates sleep. */
async function pass(clock: FakeClock, ms: number, candidates = 1, stepMs = 1_000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    await awaitUntil(() => clock.sleepers() === candidates, { what: 'the candidates to sleep' });
    clock.advance(stepMs);
  }
  await awaitUntil(() => clock.sleepers() === candidates, { what: 'the candidates to sleep' });
}

const timed = (clock: FakeClock): Partial<LeaseElectorOptions> => ({
  now: clock.now,
  wallClock: clock.now,
  sleep: clock.sleep,
});

/**
 * An API server with one Lease, guarded by its resourceVersion as the real one is; `fault` may
 * answer instead.
 */
async function leaseServer(t: Test, fault: (method: string) => Answer | undefined = () => undefined) {
  let lease: Record<string, unknown> | undefined;
  let version = 0;
  const store = (body: string): Record<string, unknown> => {
    // Written by the elector under test.
    const sent = JSON.parse(body) as { metadata: object };
    version += 1;
    lease = { ...sent, metadata: { ...sent.metadata, resourceVersion: String(version) } };
    return lease;
  };
  const decide = (method: string, body: string): Answer => {
    const faulty = fault(method);
    if (faulty !== undefined) return faulty;
    if (method === 'POST')
      return lease === undefined ? json(store(body), 201) : refusal(409, 'AlreadyExists');
    if (lease === undefined) return refusal(404, 'NotFound');
    if (method === 'GET') return json(lease);
    const stale = JSON.parse(body).metadata.resourceVersion !== String(version);
    return stale ? refusal(409, 'Conflict') : json(store(body));
  };
  const server = await startScriptedServer((response, request) =>
    decide(request.method, request.body)(response, request),
  );
  t.teardown(() => server.stop());
  return {
    api: server.api,
    requests: server.requests,
    spec: (): Record<string, unknown> => (lease?.spec ?? {}) as Record<string, unknown>,
    /** A renewal arrives, but its response is lost. */
    renewUnseen: (): void => void store(JSON.stringify(lease)),
  };
}

t.test('first candidate creates the Lease and renews it', async (t) => {
  const clock = fakeClock();
  const { api, spec } = await leaseServer(t);
  const one = stand(t, api, 'one', timed(clock));
  await leads(one);
  t.strictSame(spec(), {
    holderIdentity: 'one',
    leaseDurationSeconds: 15,
    acquireTime: '2001-09-09T01:46:40.000000Z',
    renewTime: '2001-09-09T01:46:40.000000Z',
    leaseTransitions: 0,
  });
  t.equal(await one.leaderGauge(), 1);
  await pass(clock, 60_000);
  t.ok(one.elector.isLeader());
  t.strictSame(one.notified, [true]);
  t.match(spec(), { acquireTime: '2001-09-09T01:46:40.000000Z', leaseTransitions: 0 });
  t.not(spec().renewTime, spec().acquireTime);
});

for (const callMs of [4_500, 9_000]) {
  t.test(`renewal of two calls of ${callMs} ms each is too late and starts a new term`, async (t) => {
    const clock = fakeClock();
    const server = { callMs: 0 };
    const { api, requests } = await leaseServer(t, () => {
      if (server.callMs > 0) clock.advance(server.callMs);
      return undefined;
    });
    const one = stand(t, api, 'one', timed(clock));
    await leads(one);
    await awaitUntil(() => clock.sleepers() === 1, { what: 'the candidate to sleep' });
    server.callMs = callMs;
    const before = requests.length;
    clock.advance(times.retryPeriodMs);
    await awaitUntil(() => requests.length === before + 2, { what: 'the renewal' });
    server.callMs = 0;
    await awaitUntil(() => clock.sleepers() === 1, { what: 'the candidate to sleep again' });
    t.equal(one.notified.at(-1), one.elector.isLeader(), 'no notification of a term that has ended');
    if (!one.elector.isLeader()) clock.advance(times.retryPeriodMs);
    await leads(one);
    // Statuses put without a leader are written only when listeners are notified of one.
    t.strictSame(one.notified, [true, false, true]);
  });
}

t.test('another candidate takes over when the holder has not renewed for the duration', async (t) => {
  const clock = fakeClock();
  const state: { silent: boolean } = { silent: false };
  const { api, spec } = await leaseServer(t);
  const one = stand(t, api, 'one', {
    ...timed(clock),
    // The holder's process is stopped and does not renew.
    sleep: (ms, options) => clock.sleep(state.silent ? 1e9 : ms, options),
  });
  await leads(one);
  const two = stand(t, api, 'two', timed(clock));
  await pass(clock, 30_000, 2);
  t.notOk(two.elector.isLeader());
  state.silent = true;
  const renewed = spec().renewTime;
  // Its last renewal, a second or two from now.
  await pass(clock, 2_000, 2);
  t.not(spec().renewTime, renewed);
  await pass(clock, 8_000, 2);
  t.ok(one.elector.isLeader());
  await pass(clock, 2_000, 2);
  t.notOk(one.elector.isLeader(), 'stepped down before anybody else may lead');
  await pass(clock, 4_000, 2);
  t.notOk(two.elector.isLeader());
  // It reads the last renewal up to one retry period late, and checks again up to one late.
  await pass(clock, 6_000, 2);
  t.ok(two.elector.isLeader());
  t.match(spec(), { holderIdentity: 'two', leaseTransitions: 1 });
});

t.test('holder that cannot renew leads until the deadline, steps down, and returns', async (t) => {
  const clock = fakeClock();
  const state: { broken: boolean } = { broken: false };
  const { api, spec } = await leaseServer(t, () => (state.broken ? refusal(503, 'Unavailable') : undefined));
  const one = stand(t, api, 'one', timed(clock));
  await leads(one);
  state.broken = true;
  await pass(clock, 9_000);
  t.ok(one.elector.isLeader());
  await pass(clock, 1_000);
  t.notOk(one.elector.isLeader());
  t.strictSame(one.notified, [true, false]);
  t.equal(await one.leaderGauge(), 0);
  t.equal(one.logs.filter(({ level }) => level === 'warning').length, 1, 'one warning for all attempts');
  state.broken = false;
  await pass(clock, 3_000);
  t.ok(one.elector.isLeader());
  t.match(spec(), { holderIdentity: 'one', leaseTransitions: 0 });
});

t.test('holder whose call hangs does not lead after the deadline', async (t) => {
  const clock = fakeClock();
  const state: { hangs: boolean } = { hangs: false };
  const { api } = await leaseServer(t, () => (state.hangs ? () => undefined : undefined));
  const one = stand(t, api, 'one', timed(clock));
  await leads(one);
  state.hangs = true;
  await awaitUntil(() => clock.sleepers() === 1, { what: 'the holder to sleep' });
  clock.advance(2_000);
  await awaitUntil(() => clock.sleepers() === 0, { what: 'the call' });
  clock.advance(8_000);
  t.notOk(one.elector.isLeader());
});

t.test('holder that finds another one in the Lease steps down at once', async (t) => {
  const clock = fakeClock();
  const state: { thief: boolean } = { thief: false };
  const stolen = json({
    metadata: { resourceVersion: '99' },
    spec: { holderIdentity: 'thief', leaseDurationSeconds: 15, renewTime: 'now', leaseTransitions: 7 },
  });
  const { api } = await leaseServer(t, () => (state.thief ? stolen : undefined));
  const one = stand(t, api, 'one', timed(clock));
  await leads(one);
  state.thief = true;
  await pass(clock, 2_000);
  t.notOk(one.elector.isLeader());
  t.strictSame(one.notified, [true, false]);
});

t.test('candidate takes over at the moment when the Lease expires', async (t) => {
  const clock = fakeClock();
  const { api } = await leaseServer(t);
  // It never renews.
  const killed = stand(t, api, 'one', {
    ...timed(clock),
    retryPeriodMs: 9_000_000,
    renewDeadlineMs: 9_000_000,
  });
  await leads(killed);
  const two = stand(t, api, 'two', { ...timed(clock), retryPeriodMs: 9_000_000 });
  await awaitUntil(() => clock.sleepers() === 2, { what: 'both to sleep' });
  clock.advance(14_999);
  t.notOk(two.elector.isLeader());
  clock.advance(1);
  await leads(two);
});

t.test('process takes over the Lease of an earlier one in its pod at once', async (t) => {
  const clock = fakeClock();
  const { api } = await leaseServer(t);
  const killed = stand(t, api, replicaIdentity('pod-1'), timed(clock));
  await leads(killed);
  const restarted = stand(t, api, replicaIdentity('pod-1'), { ...timed(clock), podName: 'pod-1' });
  await leads(restarted);
  t.equal(clock.now(), fakeClock().now(), 'no time has passed');
});

for (const [fault, answer] of [
  ['is refused', refusal(503, 'Unavailable')],
  ['conflicts with the last renewal of the earlier one', refusal(409, 'Conflict')],
] satisfies [string, Answer][]) {
  t.test(`takeover in the same pod is tried again when it ${fault}`, async (t) => {
    const clock = fakeClock();
    let faults = 0;
    const { api } = await leaseServer(t, (method) => (method === 'PUT' && faults-- > 0 ? answer : undefined));
    const killed = stand(t, api, replicaIdentity('pod-1'), { ...timed(clock), retryPeriodMs: 9_000_000 });
    await leads(killed);
    faults = 1;
    const restarted = stand(t, api, replicaIdentity('pod-1'), { ...timed(clock), podName: 'pod-1' });
    await awaitUntil(() => clock.sleepers() === 2, { what: 'the next attempt to be planned' });
    t.notOk(restarted.elector.isLeader());
    clock.advance(times.retryPeriodMs);
    await leads(restarted);
  });
}

t.test('processes with the name of one pod do not take the Lease from each other in turns', async (t) => {
  const clock = fakeClock();
  const { api, spec } = await leaseServer(t);
  const one = stand(t, api, replicaIdentity('pod-1'), { ...timed(clock), podName: 'pod-1' });
  await leads(one);
  const two = stand(t, api, replicaIdentity('pod-1'), { ...timed(clock), podName: 'pod-1' });
  await leads(two);
  await pass(clock, 10_000, 2);
  t.notOk(one.elector.isLeader());
  t.ok(two.elector.isLeader());
  t.equal(spec().leaseTransitions, 1);
});

t.test('Lease of another pod, or without POD_NAME of a process on this host, must expire', async (t) => {
  const clock = fakeClock();
  const { api } = await leaseServer(t);
  const holder = stand(t, api, replicaIdentity(''), timed(clock));
  await leads(holder);
  const others = ['', 'pod-2'].map((podName) =>
    stand(t, api, replicaIdentity(podName), { ...timed(clock), podName }),
  );
  await pass(clock, 10_000, 3);
  t.ok(holder.elector.isLeader());
  for (const other of others) t.notOk(other.elector.isLeader());
});

t.test('one of two simultaneous candidates gets the Lease', async (t) => {
  const { api } = await leaseServer(t);
  const candidates = ['one', 'two', 'three'].map((name) => stand(t, api, name, timed(fakeClock())));
  await awaitUntil(() => candidates.some(({ elector }) => elector.isLeader()), { what: 'a leader' });
  t.equal(candidates.filter(({ elector }) => elector.isLeader()).length, 1);
});

t.test('close releases the Lease for the next candidate', async (t) => {
  const clock = fakeClock();
  const { api, spec } = await leaseServer(t);
  const one = stand(t, api, 'one', timed(clock));
  await leads(one);
  await one.elector.close();
  t.notOk(one.elector.isLeader());
  t.strictSame(one.notified, [true, false]);
  t.equal(spec().holderIdentity, '');
  await leads(stand(t, api, 'two', timed(clock)));
  t.match(spec(), { holderIdentity: 'two', leaseTransitions: 1 });
});

t.test('renewal aborted by close does not keep the Lease', async (t) => {
  const clock = fakeClock();
  const { api, spec, renewUnseen } = await leaseServer(t);
  const one = stand(t, api, 'one', timed(clock));
  await leads(one);
  renewUnseen();
  await one.elector.close();
  t.equal(spec().holderIdentity, '');
});

t.test('close does not release the Lease of another replica', async (t) => {
  const clock = fakeClock();
  const { api, spec } = await leaseServer(t);
  const one = stand(t, api, 'one', timed(clock));
  await leads(one);
  clock.advance(16_000);
  const two = stand(t, api, 'two', timed(clock));
  await one.elector.close();
  await pass(clock, 20_000);
  await leads(two);
  t.equal(spec().holderIdentity, 'two');
});

t.test('missing permission is logged', async (t) => {
  const { api } = await leaseServer(t, () => refusal(403, 'Forbidden'));
  const one = stand(t, api, 'one', timed(fakeClock()));
  await awaitUntil(() => one.logs.length > 0, { what: 'a log line' });
  t.match(one.logs[0], {
    level: 'warning',
    reason: 'not allowed to get, create and update leases.coordination.k8s.io in namespace default',
  });
});

t.test('identity starts with the pod and is unique', async (t) => {
  t.match(replicaIdentity('xds-0'), /^xds-0_[0-9a-f-]{36}$/);
  t.not(replicaIdentity('xds-0'), replicaIdentity('xds-0'));
  t.match(replicaIdentity(''), /^.+_[0-9a-f-]{36}$/);
});

kubeSuite(t, 'two candidates at a real API server', async (t, kube) => {
  const api = await connectApi(kube);
  t.teardown(() => api.close());
  const spec = async () =>
    JSON.parse((await kube.kubectl(['get', 'lease', 'tollgate-xds', '-o', 'jsonpath={.spec}'])).stdout);

  await t.test('have one leader, and the other takes over when it stops or crashes', async (t) => {
    const one = stand(t, api, 'one', { sleep: quick });
    await leads(one);
    const dying = await connectApi(kube);
    const two = stand(t, dying, 'two', { sleep: quick });
    await awaitUntil(async () => (await spec()).renewTime !== (await spec()).acquireTime, {
      what: 'a renewal',
    });
    t.notOk(two.elector.isLeader());

    await one.elector.close();
    await leads(two);
    t.match(await spec(), { holderIdentity: 'two', leaseTransitions: 1 });

    const clock = fakeClock();
    const three = stand(t, api, 'three', { now: clock.now, sleep: quick });
    // From now on its calls fail, as they do in a pod that lost its network.
    dying.close();
    await awaitUntil(
      async () => {
        if (three.elector.isLeader()) return true;
        // Longer than the duration. After the takeover, longer calls would be late.
        if ((await spec()).holderIdentity !== 'three') clock.advance(16_000);
        return false;
      },
      { what: 'a takeover', everyMs: 300 },
    );
    t.match(await spec(), { holderIdentity: 'three', leaseTransitions: 2 });
  });
});

/** A retry period that a test can wait for. */
async function quick(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
