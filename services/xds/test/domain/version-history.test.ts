import t from 'tap';
import { createVersionHistory } from '../../src/domain/version-history.ts';
import { snapshotOf } from '../support/limiters.ts';

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
