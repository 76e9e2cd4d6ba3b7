import { runSteps } from '@tollgate/kit/time';
import { Registry } from 'prom-client';
import t, { type Test } from 'tap';
import { ClientRegistry } from '../../src/ads/clients.ts';
import { SnapshotBuilder, SnapshotStore } from '../../src/catalog/snapshot.ts';
import type { ConfigObject } from '../../src/catalog/source.ts';
import { registerMetrics } from '../../src/metrics.ts';
import { PolicyCatalog } from '../../src/policies/policy-catalog.ts';
import type { RolloutClients } from '../../src/policies/rollout.ts';
import { type ClientReport, summarizeClients } from '../../src/status/client-report.ts';
import type { PolicyObservation } from '../../src/status/policy-conditions.ts';
import { PolicyStatusReporter } from '../../src/status/policy-reporter.ts';
import { makeLimiter, makeRejection } from '../support/limiters.ts';
import { manualSchedule } from '../support/manual-schedule.ts';
import { makePolicy, perUser } from '../support/policies.ts';

interface Options {
  readonly startGraceMs?: number;
  readonly stored?: unknown;
  /** The report of another replica. */
  readonly other?: ClientReport;
}

/** A reporter whose clients, policies and time are the test's. */
function startReporter(t: Test, { startGraceMs = 0, stored, other }: Options = {}) {
  const time = manualSchedule();
  const makeClients = () => ({ snapshots: new SnapshotStore(() => 0), clients: new ClientRegistry(time) });
  const [authServers, limiters] = [makeClients(), makeClients()];
  const observed: PolicyObservation[] = [];
  const others = other && [{ identity: 'xds-2_x', replica: 'xds-2', report: other }];
  const registry = new Registry();
  const reporter = new PolicyStatusReporter({
    metrics: registerMetrics(registry),
    ...{ authServers, limiters, startGraceMs, schedule: time.schedule },
    reports: others && {
      others,
      changed: () => undefined,
      formerLimiters: 0,
      onChange: () => () => undefined,
    },
    stored: () => stored,
    observers: [{ put: (one) => void observed.push(one), forget: () => undefined }],
  });
  t.teardown(() => reporter.close());
  const catalog = new PolicyCatalog();
  const rules = new SnapshotBuilder();
  const put = (...objects: readonly ConfigObject[]) => {
    const change = runSteps(catalog.apply([{ type: 'replaced', objects }]));
    for (const result of change.results) reporter.put(result);
    return () => {
      for (const [domain, document] of change.documents) rules.put(domain, document);
      limiters.snapshots.set(rules.build());
      authServers.snapshots.set(change.access);
      reporter.published();
    };
  };
  return {
    ...{ authServers, limiters, reporter, put, observed },
    /** Policies that not all clients have, by reason, without zeros. */
    async countUnprogrammed() {
      const series = (await registry.metrics()).matchAll(
        /^tollgate_xds_unprogrammed_policies\{reason="(\w+)"\} ([1-9]\d*)$/gm,
      );
      return Array.from(series, ([, reason, count]) => `${reason} ${count}`);
    },
    /** `reason isSeen: message` of a policy, after changes were collected. */
    settle(id = 'shop/a', ms = 100) {
      time.advance(ms);
      const last = observed.findLast(({ result }) => result.id === id);
      return last && `${last.programmed.reason} ${last.isSeen}: ${last.programmed.message}`;
    },
  };
}

const versionsOf = ({ snapshots }: RolloutClients) =>
  new Map([...(snapshots.current()?.resources.values() ?? [])].map(({ name, version }) => [name, version]));

const acknowledge = (of: RolloutClients, id = 'one') =>
  of.clients.put(
    makeLimiter(id, { accepted: versionsOf(of), acceptedVersion: of.snapshots.current()?.version }),
  );

const refuse = (of: RolloutClients, message: string) => {
  const rejection = makeRejection(versionsOf(of), message);
  const snapshotVersion = of.snapshots.current()?.version ?? '';
  of.clients.put(makeLimiter('one', { rejection: rejection && { ...rejection, snapshotVersion } }));
};

const limited = (host: string) => ({ hosts: [host], limits: [perUser] });
const programmed = 'Programmed false: acknowledged by all connected auth servers and limiters';

t.test('a policy is programmed when auth servers and limiters have acknowledged it', async (t) => {
  const { put, settle, authServers, limiters, countUnprogrammed } = startReporter(t);
  const publish = put(makePolicy('shop/a', limited('a.test')));
  t.equal(settle(), 'Pending false: not served yet');
  publish();
  t.equal(settle(), 'NoClients false: no auth server and no limiter is connected');
  t.same(await countUnprogrammed(), ['NoClients 1']);
  acknowledge(authServers);
  t.equal(settle(), 'NoClients false: no limiter is connected');
  limiters.clients.put(makeLimiter('one', { accepted: new Map() }));
  t.equal(settle(), 'Pending false: limiter-one has not acknowledged it');
  t.same(await countUnprogrammed(), ['Pending 1']);
  acknowledge(limiters);
  t.equal(settle(), programmed);
  t.same(await countUnprogrammed(), []);
});

t.test('an edit is not programmed by the acknowledgement of the version before', (t) => {
  const { put, settle, authServers, observed } = startReporter(t);
  put(makePolicy('shop/a', { hosts: ['a.test'] }), makePolicy('shop/b', { hosts: ['b.test'] }))();
  acknowledge(authServers);
  t.equal(settle(), programmed, 'without limits, no limiter has to acknowledge it');
  const count = observed.length;
  const edited = makePolicy('shop/b', { hosts: ['c.test'] }, { generation: 2 });
  const publish = put(makePolicy('shop/a', { hosts: ['a.test'] }), edited);
  t.equal(settle('shop/b'), 'Pending false: not served yet');
  publish();
  t.equal(settle('shop/b'), 'Pending false: auth server limiter-one has not acknowledged it');
  acknowledge(authServers);
  t.equal(settle('shop/b'), programmed);
  const others = observed.slice(count).filter(({ result }) => result.id === 'shop/a');
  t.same(others, [], 'another policy of the namespace does not change');
  t.end();
});

t.test('a NACK is that of the policies that it names, and of all without names', async (t) => {
  const { put, settle, authServers, reporter, countUnprogrammed } = startReporter(t);
  put(makePolicy('shop/a', { hosts: ['a.test'] }), makePolicy('shop/b', { hosts: ['b.test'] }))();
  refuse(authServers, 'shop/a: spec.mode: unknown field');
  t.equal(settle(), 'Nacked false: refused by auth server limiter-one: shop/a: spec.mode: unknown field');
  t.equal(settle('shop/b'), programmed, 'it is in force nevertheless');
  refuse(authServers, 'out of memory');
  t.equal(settle(), 'Nacked false: refused by auth server limiter-one: out of memory');
  t.same(await countUnprogrammed(), ['Nacked 2'], 'the other was acknowledged once, and is refused');
  reporter.forget('shop/b');
  settle();
  t.same(await countUnprogrammed(), ['Nacked 1']);
  acknowledge(authServers);
  t.equal(settle(), programmed);
});

t.test('a version stays programmed while clients come and go', (t) => {
  const { put, settle, authServers, observed } = startReporter(t);
  put(makePolicy('shop/a', { hosts: ['a.test'] }))();
  acknowledge(authServers);
  settle();
  const count = observed.length;
  authServers.clients.put(makeLimiter('two', { accepted: new Map() }));
  settle();
  authServers.clients.remove('one');
  authServers.clients.remove('two');
  t.equal(settle(), programmed);
  t.equal(observed.length, count);
  t.end();
});

t.test('clients of other replicas are waited for, and say which policies checks had', (t) => {
  const source = startReporter(t);
  source.put(makePolicy('shop/a', limited('a.test')))();
  for (const one of [source.authServers, source.limiters]) acknowledge(one, 'far');
  const summarize = ({ clients, snapshots }: RolloutClients) =>
    summarizeClients(clients.settled(), (name) => snapshots.currentOf(name));
  const authServers = summarize(source.authServers);
  const other = { ...summarize(source.limiters), authServers, seenPolicies: ['shop/a', 'shop/none'] };
  const { put, settle } = startReporter(t, { other });
  put(makePolicy('shop/a', limited('a.test')))();
  t.equal(settle(), programmed.replace('false', 'true'));
  const behind = startReporter(t, { other });
  behind.put(makePolicy('shop/a', limited('b.test')))();
  t.match(behind.settle(), /^Pending true: auth server at xds-2 has not acknowledged it/);
  t.end();
});

t.test('a check is remembered over edits, until the policy has another target', (t) => {
  const { put, settle, reporter } = startReporter(t);
  put(makePolicy('shop/a', { hosts: ['a.test'] }))();
  reporter.addSeen(['shop/a', 'shop/unknown', 7]);
  reporter.addSeen('shop/a');
  t.match(settle(), /^NoClients true/);
  t.same(reporter.reportSeen(), ['shop/a']);
  const edited = { hosts: ['a.test'], access: { type: 'Public' } };
  put(makePolicy('shop/a', edited, { generation: 2 }))();
  t.match(settle(), /^NoClients true/);
  put(makePolicy('shop/a', { hosts: ['b.test'] }, { generation: 3 }))();
  t.match(settle(), /^NoClients false/);
  t.end();
});

t.test('after a restart, what the status says of this version stays', (t) => {
  const toStatus = (observedGeneration: number, reason?: string) => ({
    target: 'a.test',
    ancestors: [
      {
        conditions: [
          { type: 'Programmed', status: reason ? 'False' : 'True', reason, observedGeneration },
          { type: 'Enforced', status: 'True', observedGeneration },
        ],
      },
    ],
  });
  const replaced = startReporter(t, { startGraceMs: 5_000, stored: toStatus(1, 'Overridden') });
  replaced.put(makePolicy('shop/a', { hosts: ['a.test'] }));
  t.match(replaced.settle(), programmed.replace('false', 'true'), 'clients have a replaced one, too');
  const same = startReporter(t, { startGraceMs: 5_000, stored: toStatus(1) });
  const publish = same.put(makePolicy('shop/a', { hosts: ['a.test'] }));
  t.equal(same.settle(), programmed.replace('false', 'true'), 'also before it is published');
  publish();
  t.equal(same.settle(), programmed.replace('false', 'true'));
  t.same(same.reporter.reportSeen(), [], 'other replicas read it in the status');

  const changed = startReporter(t, { startGraceMs: 5_000, stored: toStatus(1) });
  changed.put(makePolicy('shop/a', { hosts: ['b.test'] }, { generation: 2 }))();
  acknowledge(changed.authServers);
  t.equal(changed.settle(), 'Pending false: the xDS server has just started, and its clients reconnect');
  t.equal(changed.reporter.observationOf('shop/a')?.isProvisional, true);
  t.equal(changed.settle('shop/a', 5_000) && changed.settle(), programmed);
  t.equal(changed.reporter.observationOf('shop/a')?.isProvisional, false);
  t.end();
});
