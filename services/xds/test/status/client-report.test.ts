import t from 'tap';
import type { Client } from '../../src/ads/clients.ts';
import { formatReport, parseReport, summarizeClients } from '../../src/status/client-report.ts';
import { makeLimiter, makeRejection, makeSnapshot, versions } from '../support/limiters.ts';

const now = makeSnapshot('new', { shop: '2', web: '1' });
const current = versions({ shop: '2', web: '1' });
const old = versions({ shop: '1', web: '1' });

const present = (id: string): Client => makeLimiter(id, { accepted: current, acceptedVersion: 'new' });

/** As another replica reads it. */
const passedOn = (clients: readonly Client[], snapshot = now) =>
  parseReport(
    formatReport(
      summarizeClients(clients, () => snapshot),
      1,
    ),
  );

t.test('limiters in the same state are counted together', async (t) => {
  const clients = [present('1'), present('2'), makeLimiter('3')];
  t.strictSame(
    summarizeClients(clients, () => now),
    {
      limiters: { connected: 3, current: 2, rejecting: 0 },
      snapshot: 'new',
      groups: [
        { count: 2, names: undefined, accepted: 'new', behind: undefined, rejection: undefined },
        { count: 1, names: undefined, accepted: undefined, behind: undefined, rejection: undefined },
      ],
    },
  );
  const { limiters, ...forReplicas } = summarizeClients(clients, () => now);
  t.ok(limiters, 'for people');
  t.strictSame(passedOn(clients), forReplicas, 'it is read as it was written');
});

t.test('report before the first snapshot is empty', async (t) => {
  t.strictSame(
    summarizeClients([], () => undefined),
    {
      limiters: { connected: 0, current: 0, rejecting: 0 },
      snapshot: undefined,
      groups: [],
    },
  );
});

t.test('limiters with an older version are reported with the domains in which they differ', async (t) => {
  const stuck = makeLimiter('1', { accepted: old, acceptedVersion: 'old' });
  t.match(passedOn([stuck]), { groups: [{ accepted: 'old', behind: ['shop'] }] });
  const byName = makeLimiter('2', { names: new Set(['web']), accepted: old, acceptedVersion: 'old' });
  t.match(passedOn([byName]), { groups: [{ names: ['web'], behind: [] }] });
});

t.test('too many differing domains are omitted', async (t) => {
  const domains = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`d${i}`, '2']));
  const stuck = makeLimiter('1', { accepted: old, acceptedVersion: 'old' });
  t.strictSame(passedOn([stuck], makeSnapshot('new', domains))?.groups, [
    { count: 1, names: undefined, accepted: 'old', behind: undefined, rejection: undefined },
  ]);
});

t.test('rejection has the name of one limiter, and both are cut', async (t) => {
  const rejection = makeRejection(current, 'x'.repeat(1_000));
  const clients = ['1', '2'].map((id) =>
    makeLimiter(id, { accepted: old, acceptedVersion: 'old', rejection, nodeId: 'n'.repeat(500) }),
  );
  t.match(passedOn(clients)?.groups, [
    { count: 2, rejection: { node: 'n'.repeat(100), message: 'x'.repeat(300), snapshot: 's' } },
  ]);
});

t.test('report is bounded and counts every limiter', async (t) => {
  const words = (i: number) => makeRejection(current, `${i} ${'\u0001'.repeat(2_000)}`);
  const clients = Array.from({ length: 3_000 }, (_, i) =>
    makeLimiter(`${i}`, {
      nodeId: `${i}${'n'.repeat(500)}`,
      names:
        i % 3 === 0 ? new Set(Array.from({ length: 50 }, (_, j) => `${j}${'d'.repeat(250)}`)) : undefined,
      accepted: old,
      acceptedVersion: `version-${i % 500}`,
      rejection: i % 2 === 0 ? words(i) : undefined,
    }),
  );
  const { limiters, ...report } = summarizeClients(clients, () => now);
  t.match(limiters, { connected: 3_000, rejecting: 1_500 });
  t.equal(
    report.groups.reduce((sum, { count }) => sum + count, 0),
    3_000,
  );
  t.ok(report.groups.length <= 34, `${report.groups.length} groups`);
  const rejecting = report.groups.filter(({ rejection }) => rejection !== undefined).length;
  t.ok(rejecting > 10 && rejecting <= 20, `${rejecting} groups that reject`);
  const { length } = formatReport(report, 1);
  t.ok(length < 100_000, `${length} characters`);
  t.strictSame(passedOn(clients), report);
});

t.test('text that is not a report is ignored', async (t) => {
  for (const text of ['', 'null', '[]', '{', '{"groups":{}}', '"groups"'])
    t.equal(parseReport(text), undefined, text.slice(0, 20));
});

t.test('malformed parts of a report are ignored', async (t) => {
  const groups = [
    ...[null, 5, {}, { count: -1 }, { count: 1.5 }, { count: '3' }],
    { count: 1, accepted: 7, names: 'shop', behind: {}, rejection: 'no', colour: 'green' },
    { count: 2, accepted: 'a', names: ['shop', 8], rejection: { message: 'no' } },
    { count: 3, rejection: { message: 'm'.repeat(999), snapshot: 's' } },
  ];
  t.strictSame(parseReport(JSON.stringify({ snapshot: 9, groups, later: true })), {
    snapshot: undefined,
    groups: [
      { count: 1, names: undefined, accepted: undefined, behind: undefined, rejection: undefined },
      { count: 2, names: ['shop'], accepted: 'a', behind: undefined, rejection: undefined },
      {
        count: 3,
        names: undefined,
        accepted: undefined,
        behind: undefined,
        rejection: { node: '', message: 'm'.repeat(300), snapshot: 's' },
      },
    ],
  });
});
