import { runSteps } from '@tollgate/kit/steps';
import t from 'tap';
import { type DomainProgress, progressOf } from '../../src/status/conditions.ts';
import { audienceOf } from '../../src/status/limiter-groups.ts';
import type { LimiterReport, ReportedGroup } from '../../src/status/limiter-report.ts';
import { createReportedLimiters, createVersionHistory } from '../../src/status/reported-limiters.ts';
import { snapshotOf } from '../support/limiters.ts';

const one = snapshotOf('one', { shop: '1', web: '1' });
const two = snapshotOf('two', { shop: '2', web: '1' });

/** A replica that has served these, and is told of limiters of another one. */
function hearing(...snapshots: Parameters<typeof snapshotOf>[]) {
  const reported = createReportedLimiters();
  for (const args of snapshots) reported.remember(snapshotOf(...args));
  return {
    reported,
    progress(report: LimiterReport, domain: string, version: string): DomainProgress {
      const other = { identity: 'replica-2_x', replica: 'replica-2', report };
      return progressOf({ name: domain, version }, runSteps(audienceOf(reported.groups([other]))));
    },
  };
}

const report = (snapshot: string, ...groups: readonly ReportedGroup[]): LimiterReport => ({
  snapshot,
  groups,
});

t.test('limiters of another replica have the versions of the snapshot that they accepted', async (t) => {
  const { reported, progress } = hearing();
  reported.remember(one);
  reported.remember(two);
  const told = report('two', { count: 3, accepted: 'two' }, { count: 2, accepted: 'one' });
  t.match(progress(told, 'shop', '2'), { connected: 5, acknowledged: 3, programmed: { reason: 'Pending' } });
  t.match(progress(told, 'web', '1'), { acknowledged: 5, programmed: { reason: 'Acknowledged' } });
});

t.test('those that have accepted nothing are waited for', async (t) => {
  const { reported, progress } = hearing();
  reported.remember(one);
  t.match(progress(report('one', { count: 1 }), 'shop', '1'), { connected: 1, acknowledged: 0 });
});

t.test('a version that is not known yet changes nothing of what was known', async (t) => {
  const { reported, progress } = hearing();
  reported.remember(one);
  t.match(progress(report('one', { count: 2, accepted: 'one' }), 'web', '1'), { acknowledged: 2 });
  const ahead = report('two', { count: 2, accepted: 'two' });
  t.match(progress(ahead, 'web', '1'), { acknowledged: 2, programmed: { status: 'True' } });
  t.match(progress(ahead, 'shop', '1'), { acknowledged: 2 });
  reported.remember(two);
  t.match(progress(ahead, 'shop', '2'), { acknowledged: 2 });
});

t.test('of a replica that has only told of unknown versions nothing is believed', async (t) => {
  const { progress } = hearing(['one', { shop: '1' }]);
  t.match(progress(report('x', { count: 2, accepted: 'x' }), 'shop', '1'), { connected: 2, acknowledged: 0 });
});

t.test('limiters stuck with a version of long ago lack only what they are reported to lack', async (t) => {
  const { progress } = hearing(['two', { shop: '2', web: '1' }]);
  const told = report('two', { count: 1, accepted: 'one', behind: ['shop'] });
  t.match(progress(told, 'web', '1'), { acknowledged: 1 });
  t.match(progress(told, 'shop', '2'), { acknowledged: 0 });
});

t.test('a version stays known as long as it is reported', async (t) => {
  const { reported, progress } = hearing();
  reported.remember(one);
  const told = report('two', { count: 1, accepted: 'one' });
  t.match(progress(told, 'web', '1'), { acknowledged: 1 });
  for (let i = 0; i < 100; i += 1) reported.remember(snapshotOf(`later ${i}`, { shop: `${i}`, web: '1' }));
  t.match(progress(told, 'web', '1'), { acknowledged: 1 });
  reported.groups([]);
  t.match(progress(told, 'web', '1'), { acknowledged: 0 }, 'it was forgotten meanwhile');
});

t.test('a rejection is told with node and replica', async (t) => {
  const { reported, progress } = hearing();
  reported.remember(one);
  reported.remember(two);
  const rejection = { node: 'limiter-7', message: 'shop: no such luck', snapshot: 'two' };
  const told = report('two', { count: 2, accepted: 'one', rejection });
  t.match(progress(told, 'shop', '2').programmed, {
    reason: 'Nacked',
    message: 'refused by 2 of 2 limiters; limiter-7 at replica-2 says: shop: no such luck',
  });
  t.match(progress(told, 'web', '1').programmed.reason, 'Acknowledged');
});

t.test('a rejection of a version that is not known is not told', async (t) => {
  const { reported, progress } = hearing();
  reported.remember(one);
  const rejection = { node: '', message: 'no', snapshot: 'x' };
  const told = report('x', { count: 1, accepted: 'one', rejection });
  t.match(progress(told, 'shop', '1').programmed.reason, 'Acknowledged');
});

t.test('limiters that ask for certain domains are waited for with these only', async (t) => {
  const { reported, progress } = hearing();
  reported.remember(one);
  const told = report('one', { count: 1, names: ['web'], accepted: 'one' });
  t.match(progress(told, 'web', '1'), { connected: 1, acknowledged: 1 });
  t.match(progress(told, 'shop', '1'), { connected: 0, programmed: { reason: 'NoClients' } });
});

t.test('the last 64 snapshots are known, one that came again as the latest', async (t) => {
  const history = createVersionHistory();
  for (let i = 0; i < 64; i += 1) history.add(snapshotOf(`${i}`, { shop: `${i}` }));
  history.add(snapshotOf('0', { shop: '0' }));
  history.add(snapshotOf('64', { shop: '64' }));
  t.equal(history.get('0')?.get('shop'), '0');
  t.equal(history.get('1'), undefined);
  t.equal(history.get('2')?.get('shop'), '2');
  t.equal(history.get('64')?.get('shop'), '64');
});

t.test('large snapshots are known for less long, the latest in any case', async (t) => {
  const history = createVersionHistory();
  const domains = (count: number, version: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`d${i}`, version]));
  for (const version of ['1', '2', '3']) history.add(snapshotOf(version, domains(90_000, version)));
  t.equal(history.get('1'), undefined);
  t.ok(history.get('2'));
  history.add(snapshotOf('4', domains(250_000, '4')));
  t.equal(history.get('3'), undefined);
  t.equal(history.get('4')?.size, 250_000);
  history.add(snapshotOf('5', domains(1, '5')));
  t.equal(history.get('4'), undefined);
  t.ok(history.get('5'));
});
