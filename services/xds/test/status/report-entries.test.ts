import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { parseKubeObject } from '../../src/kube/reflector.ts';
import { formatReport } from '../../src/status/client-report.ts';
import { ReportEntries } from '../../src/status/replica-reports.ts';
import { recordingLogger } from '../support/recording-logger.ts';

function start() {
  const clock = fakeClock();
  const { logger, lines } = recordingLogger();
  const entries = new ReportEntries({ own: 'me_1', expiryMs: 30_000, now: clock.now, logger });
  /** Passes on the event for a ConfigMap with this data. */
  const read = (data: Record<string, unknown> | undefined): void => {
    const object = parseKubeObject({
      metadata: { namespace: 'tollgate', name: 'tollgate-xds-limiters', uid: 'u', resourceVersion: '1' },
      data,
    });
    entries.update({ type: 'changed', object });
  };
  const counting = () => entries.active()?.map(({ replica }) => replica);
  return { clock, lines, entries, read, counting };
}

const report = (beat: number): string => formatReport({ groups: [{ count: 1 }] }, beat);

t.test('reports of other replicas count, the own does not', async (t) => {
  const { entries, read } = start();
  t.equal(entries.active(), undefined, 'before anything was read');
  read({ me_1: report(1), 'replica-2_ab-c': report(7) });
  t.match(entries.active(), [
    { identity: 'replica-2_ab-c', replica: 'replica-2', report: { groups: [{ count: 1 }] } },
  ]);
  read({ me_1: report(1) });
  t.strictSame(entries.active(), []);
});

t.test('without a ConfigMap there are no reports', async (t) => {
  const { entries, read } = start();
  entries.update({ type: 'replaced', objects: [] });
  t.strictSame(entries.active(), []);
  read({ other_1: report(1) });
  t.equal(entries.active()?.length, 1);
  entries.update({ type: 'deleted', id: 'tollgate/tollgate-xds-limiters' });
  t.strictSame(entries.active(), []);
  read(undefined);
  t.strictSame(entries.active(), []);
});

t.test('entry that has not changed for the expiry expires until it changes', async (t) => {
  const { clock, entries, read, counting } = start();
  for (let beat = 0; beat < 3; beat += 1) {
    read({ me_1: report(beat), alive_1: report(beat), dead_1: report(0) });
    t.strictSame(counting(), ['alive', 'dead']);
    t.strictSame(entries.expired(), []);
    clock.advance(10_000);
  }
  read({ me_1: report(3), alive_1: report(3), dead_1: report(0) });
  t.strictSame(counting(), ['alive']);
  t.strictSame(entries.expired(), ['dead_1']);
  read({ me_1: report(3), alive_1: report(3), dead_1: report(1) });
  t.strictSame(counting(), ['alive', 'dead']);
});

t.test('entry of a former process does not count unless it changes', async (t) => {
  const { entries, read, counting } = start();
  read({ me_0: report(9), other_1: report(1) });
  t.strictSame(counting(), ['other']);
  t.strictSame(entries.expired(), ['me_0']);
  read({ me_0: report(10), me_1: report(1), other_1: report(1) });
  t.strictSame(counting(), ['me', 'other'], 'two processes of one host');
  read({ me_0: report(10), me_1: report(1), me_2: report(1), other_1: report(1) });
  t.strictSame(counting(), ['me', 'me', 'other'], 'one that came later is no former life');
});

t.test('limiters of former processes are counted in the first event', async (t) => {
  const { entries, read } = start();
  t.equal(entries.formerLimiters, undefined);
  read({
    me_0: formatReport({ groups: [{ count: 2 }, { count: 3 }] }, 9),
    other_1: report(1),
  });
  t.equal(entries.formerLimiters, 5);
  read({ me_1: report(1), other_1: report(1) });
  t.equal(entries.formerLimiters, 5);
});

t.test('no entry expires while no event arrives', async (t) => {
  const { clock, entries, read, counting } = start();
  read({ me_1: report(1), other_1: report(1) });
  clock.advance(300_000);
  t.strictSame(counting(), ['other'], 'the API server is away');
  read({ me_1: report(2), other_1: report(1) });
  t.strictSame(counting(), ['other'], 'it is back, and so is this replica, a moment before the other');
  for (let beat = 3; beat < 6; beat += 1) {
    clock.advance(10_000);
    read({ me_1: report(beat), other_1: report(1) });
  }
  t.strictSame(entries.expired(), ['other_1']);
});

t.test('malformed report does not count and is logged once per replica', async (t) => {
  const { lines, entries, read, counting } = start();
  read({ new_1: 'v2;1', good_1: report(1), number: 5 });
  read({ new_1: 'v2;2', good_1: report(2) });
  t.strictSame(counting(), ['good']);
  t.match(lines, [{ level: 'warning', key: 'new_1' }]);
  t.equal(lines.length, 1);
  read({ good_1: report(3) });
  read({ new_1: 'v2;3' });
  t.equal(lines.length, 2);
  t.strictSame(entries.expired(), []);
});
