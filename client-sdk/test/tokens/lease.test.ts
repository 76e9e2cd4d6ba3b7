import t from 'tap';
import { LeaseWatch } from '../../src/tokens/renewal.ts';

const held = (version: string, expiresAt = 1030) => ({
  version,
  record: { lease: { holder: 'other', seconds: 30, expiresAt } },
});

t.test('mustWait is false without a lease, and with its own', (t) => {
  const watch = new LeaseWatch('me');
  t.notOk(watch.mustWait(undefined, 1000, 0));
  t.notOk(watch.mustWait({ version: '1', record: {} }, 1000, 0));
  t.notOk(new LeaseWatch('other').mustWait(held('1'), 1000, 0));
  t.end();
});

t.test('a lease expires after its length without a change, independent of clocks', (t) => {
  const watch = new LeaseWatch('me');
  const future = held('1', 99_999);
  t.ok(watch.mustWait(future, 1000, 0));
  t.ok(watch.mustWait(future, 1000, 29));
  t.notOk(watch.mustWait(future, 1000, 30));
  t.end();
});

t.test('a renewed lease counts from its renewal', (t) => {
  const watch = new LeaseWatch('me');
  t.ok(watch.mustWait(held('1'), 1000, 0));
  t.ok(watch.mustWait(held('2'), 1000, 29));
  t.ok(watch.mustWait(held('2'), 1000, 58));
  t.notOk(watch.mustWait(held('2'), 1000, 59));
  t.end();
});

t.test('a lease of a process that died long ago expires immediately', (t) => {
  t.ok(new LeaseWatch('me').mustWait(held('1'), 1090, 0));
  t.notOk(new LeaseWatch('me').mustWait(held('1'), 1091, 0));
  t.end();
});
