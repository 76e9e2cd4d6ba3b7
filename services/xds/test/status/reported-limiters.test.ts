import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import { groupClients, indexSubscribers } from '../../src/status/client-groups.ts';
import { type ClientReport, ReportedClients, type ReportedGroup } from '../../src/status/client-report.ts';
import { countLimiters, toDomainStatus } from '../../src/status/domain-status.ts';
import { makeLimiter, makeSnapshot } from '../support/limiters.ts';

const one = makeSnapshot('one', { shop: '1', web: '1' });
const two = makeSnapshot('two', { shop: '2', web: '1' });

/** Reports of another replica, read by one that has served these snapshots. */
function startReported(...snapshots: Parameters<typeof makeSnapshot>[]) {
  const reported = new ReportedClients({ unnamed: 'a limiter' });
  for (const args of snapshots) reported.remember(makeSnapshot(...args));
  return {
    reported,
    domainStatus(report: ClientReport, domain: string, version: string) {
      const other = { identity: 'replica-2_x', replica: 'replica-2', report };
      const resource = { name: domain, version };
      const subscribers = runSteps(indexSubscribers(reported.groups([other])));
      const { programmed } = toDomainStatus(resource, subscribers);
      return { ...countLimiters(resource, subscribers), programmed };
    },
  };
}

const report = (snapshot: string, ...groups: readonly ReportedGroup[]): ClientReport => ({
  snapshot,
  groups,
});

t.test('limiters of another replica have the versions of their accepted snapshot', async (t) => {
  const { reported, domainStatus } = startReported();
  reported.remember(one);
  reported.remember(two);
  const given = report('two', { count: 3, accepted: 'two' }, { count: 2, accepted: 'one' });
  t.match(domainStatus(given, 'shop', '2'), {
    connected: 5,
    acknowledged: 3,
    programmed: { reason: 'Pending' },
  });
  t.match(domainStatus(given, 'web', '1'), { acknowledged: 5, programmed: { reason: 'Acknowledged' } });
});

t.test('limiters that have accepted nothing are waited for', async (t) => {
  const { reported, domainStatus } = startReported();
  reported.remember(one);
  t.match(domainStatus(report('one', { count: 1 }), 'shop', '1'), { connected: 1, acknowledged: 0 });
});

t.test('limiters of a replica that serves an unknown version are waited for', async (t) => {
  const { reported, domainStatus } = startReported();
  reported.remember(one);
  const ahead = report('two', { count: 2, accepted: 'two' });
  t.match(domainStatus(ahead, 'shop', '1'), {
    acknowledged: 0,
    programmed: { reason: 'Pending', message: 'a limiter at replica-2 has not acknowledged it' },
  });
  reported.remember(two);
  t.match(domainStatus(ahead, 'shop', '2'), { acknowledged: 2, programmed: { status: 'True' } });
});

t.test('replica with only unknown versions has acknowledged nothing', async (t) => {
  const { domainStatus } = startReported(['one', { shop: '1' }]);
  t.match(domainStatus(report('x', { count: 2, accepted: 'x' }), 'shop', '1'), {
    connected: 2,
    acknowledged: 0,
  });
});

t.test('limiters stuck with an old version differ only in the reported domains', async (t) => {
  const { domainStatus } = startReported(['two', { shop: '2', web: '1' }]);
  const given = report('two', { count: 1, accepted: 'one', behind: ['shop'] });
  t.match(domainStatus(given, 'web', '1'), { acknowledged: 1 });
  t.match(domainStatus(given, 'shop', '2'), { acknowledged: 0 });
});

t.test('limiters far behind a known snapshot do not count as up to date', async (t) => {
  const { reported, domainStatus } = startReported();
  reported.remember(one);
  reported.remember(two);
  const groups = [
    { count: 3, accepted: 'two' },
    { count: 1, accepted: 'forgotten' },
  ];
  t.match(domainStatus(report('two', ...groups), 'web', '1'), { connected: 4, acknowledged: 3 });
});

t.test('rejection names node and replica', async (t) => {
  const { reported, domainStatus } = startReported();
  reported.remember(one);
  reported.remember(two);
  const rejection = { node: 'limiter-7', message: 'shop: no such luck', snapshot: 'two' };
  const given = report('two', { count: 2, accepted: 'one', rejection });
  t.match(domainStatus(given, 'shop', '2').programmed, {
    reason: 'Nacked',
    message: 'refused by limiter-7 at replica-2: shop: no such luck',
  });
  t.match(domainStatus(given, 'web', '1').programmed.reason, 'Acknowledged');
});

t.test('rejection of an unknown version is not reported', async (t) => {
  const { reported, domainStatus } = startReported();
  reported.remember(one);
  const rejection = { node: '', message: 'no', snapshot: 'x' };
  const given = report('x', { count: 1, accepted: 'one', rejection });
  t.match(domainStatus(given, 'shop', '1').programmed.reason, 'Acknowledged');
});

t.test('limiters that subscribe by name are waited for with these domains only', async (t) => {
  const { reported, domainStatus } = startReported();
  reported.remember(one);
  const given = report('one', { count: 1, names: ['web'], accepted: 'one' });
  t.match(domainStatus(given, 'web', '1'), { connected: 1, acknowledged: 1 });
  t.match(domainStatus(given, 'shop', '1'), { connected: 0, programmed: { reason: 'NoClients' } });
});

t.test('the last 16 snapshots are known, including one that was served again', async (t) => {
  const { reported, domainStatus } = startReported();
  const serve = (version: string) => reported.remember(makeSnapshot(version, { shop: version }));
  for (let i = 0; i < 16; i += 1) serve(`${i}`);
  serve('0');
  serve('16');
  const acknowledged = (version: string) =>
    domainStatus(report('16', { count: 1, accepted: version }), 'shop', version).acknowledged;
  t.strictSame(['0', '1', '2', '16'].map(acknowledged), [1, 0, 1, 1]);
});

t.test('domain has the limiters that subscribe to it by name or by wildcard', async (t) => {
  const subscribers = runSteps(
    indexSubscribers(
      groupClients([
        makeLimiter('shop', { names: new Set(['shop', 'web']) }),
        makeLimiter('all'),
        makeLimiter('web', { names: new Set(['web']) }),
        makeLimiter('nothing', { names: new Set() }),
      ]),
    ),
  );
  const subscribed = (domain: string) =>
    subscribers.of({ name: domain, version: '' }).map(({ example }) => example);
  t.strictSame(subscribed('web'), ['limiter-all', 'limiter-shop', 'limiter-web']);
  t.strictSame(subscribed('shop'), ['limiter-all', 'limiter-shop']);
  t.strictSame(subscribed('other'), ['limiter-all']);
  t.equal(subscribers.size, 4);
});
