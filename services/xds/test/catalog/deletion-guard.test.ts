import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import { Catalog } from '../../src/catalog/catalog.ts';
import { DeletionGuard, type DeletionGuardOptions } from '../../src/catalog/deletion-guard.ts';
import type { SourceEvent } from '../../src/catalog/source.ts';
import { changed, deleted, replaced } from '../support/catalogs.ts';
import { badSpec, makeObject } from '../support/manifests.ts';

const second = 1_000;

/** A guarded catalog whose time is the test's. */
function guarded(options: Partial<DeletionGuardOptions> = {}) {
  const catalog = new Catalog();
  const guard = new DeletionGuard(catalog, {
    delayMs: 2 * second,
    windowMs: 30 * second,
    domains: 10,
    share: 0.5,
    allowEmpty: true,
    command: 'let it through',
    ...options,
  });
  let nowMs = 0;
  const apply = (events: Parameters<Catalog['apply']>[0]) => runSteps(catalog.apply(events, nowMs));
  const step = (events: readonly SourceEvent[], reason?: string) => {
    const admitted = guard.admit(events, nowMs);
    return apply([...admitted, ...guard.decide(nowMs, reason)]);
  };
  return {
    catalog,
    guard,
    apply,
    step,
    /** Advances time and decides, as timers do. */
    pass(ms: number, reason?: string) {
      nowMs += ms;
      return step([], reason);
    },
    release: () => apply(guard.release(nowMs)),
    served: () => apply([]).snapshot.resources.size,
  };
}

const objects = (count: number) =>
  Array.from({ length: count }, (_, i) => makeObject(`ns/${i}`, { domain: `d${i}` }));
const deletions = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => deleted(`ns/${from + i}`));

t.test('single deletion takes effect after the delay', async (t) => {
  const { step, pass, served, guard } = guarded();
  step([replaced(...objects(20))]);
  step([deleted('ns/1')]);
  t.equal(served(), 20);
  t.strictSame(
    ['ns/1', 'ns/2'].map((id) => guard.isDeleted(id)),
    [true, false],
  );
  t.equal(guard.nextDueMs(), 2 * second);
  pass(2 * second - 1);
  t.equal(served(), 20);
  pass(1);
  t.equal(served(), 19);
  t.equal(guard.nextDueMs(), undefined);
});

t.test('object that is created again in time keeps its limits without a gap', async (t) => {
  const { step, pass, served } = guarded();
  step([replaced(...objects(3))]);
  step([deleted('ns/1')]);
  step([changed(makeObject('ns/1', { domain: 'd1', uid: 'new' }))]);
  pass(60 * second);
  t.equal(served(), 3);
});

t.test('held object that returns with the same uid is no longer held', async (t) => {
  const { step, catalog, guard } = guarded();
  step([replaced(...objects(20))]);
  step(deletions(0, 11));
  t.match(catalog.results.get('ns/1')?.accepted, { reason: 'Held' });
  step([replaced(...objects(20))]);
  t.equal(guard.hold, undefined);
  t.match(catalog.results.get('ns/1')?.accepted, { reason: 'Accepted' });
});

t.test('more than half and more than ten domains at once are held back', async (t) => {
  const { step, pass, served, guard, catalog } = guarded();
  step([replaced(...objects(300))]);
  step(deletions(0, 151));
  t.equal(served(), 300);
  t.equal(guard.hold?.reason, '151 of 300 domains vanished within 30 s');
  t.equal(guard.hold?.objects.size, 151);
  t.strictSame(
    ['ns/150', 'ns/151'].map((id) => guard.isDeleted(id)),
    [true, false],
  );
  pass(3_600 * second);
  t.equal(served(), 300);
  t.match(catalog.results.get('ns/0')?.accepted, {
    status: 'False',
    reason: 'Held',
    message:
      'deleted, but generation 1 stays in force: 151 of 300 domains vanished within 30 s; to let deletions through, run: let it through',
  });
});

t.test('half of the domains, or ten of them, are not held back', async (t) => {
  const half = guarded();
  half.step([replaced(...objects(300))]);
  half.step(deletions(0, 150));
  t.equal(half.guard.hold, undefined);
  const ten = guarded();
  ten.step([replaced(...objects(10))]);
  ten.step(deletions(0, 10));
  ten.pass(2 * second);
  t.equal(ten.served(), 0);
});

t.test('many deletions wait for the window, and limits lifted in it return with the hold', async (t) => {
  const { step, pass, served, guard } = guarded();
  step([replaced(...objects(40))]);
  step(deletions(0, 10));
  pass(2 * second);
  t.equal(served(), 30, 'ten may vanish in any case');
  step(deletions(10, 20));
  pass(10 * second);
  t.equal(served(), 30, 'the others wait');
  step([deleted('ns/20')]);
  t.equal(guard.hold?.objects.size, 21);
  t.equal(served(), 40);
});

t.test('many deletions that are not more than half take effect after the window', async (t) => {
  const { step, pass, served } = guarded();
  step([replaced(...objects(100))]);
  step(deletions(0, 12));
  pass(30 * second - 1);
  t.equal(served(), 100);
  pass(1);
  t.equal(served(), 88);
});

t.test('domain that another object defines does not vanish', async (t) => {
  const { step, pass, guard, catalog } = guarded();
  const twins = objects(30).map((object) => ({
    ...object,
    id: `${object.id}-twin`,
    uid: `${object.id}-twin`,
  }));
  step([replaced(...objects(30), ...twins)]);
  step(deletions(0, 30));
  pass(2 * second);
  t.equal(guard.hold, undefined);
  t.equal(catalog.results.size, 30);
});

t.test('invalid object without limits is deleted at once', async (t) => {
  const { step, catalog } = guarded();
  step([replaced(makeObject('ns/bad', { spec: badSpec }))]);
  step([deleted('ns/bad')]);
  t.equal(catalog.results.size, 0);
});

t.test('hold keeps everything that is deleted later', async (t) => {
  const { step, pass, guard } = guarded();
  step([replaced(...objects(20))]);
  step(deletions(0, 11));
  pass(300 * second);
  step([deleted('ns/15')]);
  t.equal(guard.hold?.objects.size, 12);
});

t.test('hold ends when the objects exist again', async (t) => {
  const { step, guard, catalog } = guarded();
  step([replaced(...objects(11))]);
  step(deletions(0, 11));
  const again = objects(11).map((object) => ({ ...object, uid: `${object.id}-2` }));
  step(again.slice(0, 10).map(changed));
  t.equal(guard.hold?.objects.size, 1);
  step(again.slice(10).map(changed));
  t.equal(guard.hold, undefined);
  for (const { accepted } of catalog.results.values()) t.equal(accepted.reason, 'Accepted');
});

t.test('object that is created again with an invalid version keeps the limits that were held', async (t) => {
  const { step, served, catalog } = guarded();
  step([replaced(...objects(11))]);
  step(deletions(0, 11));
  step([changed(makeObject('ns/1', { spec: badSpec, uid: 'new' }))]);
  t.equal(served(), 11);
  t.match(catalog.results.get('ns/1')?.accepted, { reason: 'Invalid', message: /stays in force/ });
});

t.test('object that repeats the rules of a held one says so', async (t) => {
  const { step, catalog } = guarded();
  step([replaced(...objects(11))]);
  step(deletions(0, 11));
  step([changed(makeObject('ns/renamed', { domain: 'd1', createdMs: 5 }))]);
  t.match(catalog.results.get('ns/renamed')?.accepted, {
    status: 'False',
    message: /already in ns\/1, whose deletion is held back/,
  });
});

t.test('released deletions take effect at once, and further ones within the window, too', async (t) => {
  const { step, pass, served, guard, release } = guarded();
  step([replaced(...objects(40))]);
  step(deletions(0, 30));
  release();
  t.equal(guard.hold, undefined);
  t.equal(served(), 10);
  pass(29 * second);
  step([deleted('ns/30')]);
  t.equal(served(), 9);
});

t.test('reason of the source holds any number of deletions back', async (t) => {
  const { step, pass, served, guard } = guarded();
  step([replaced(...objects(3))]);
  step([deleted('ns/1')]);
  pass(2 * second, 'the CRD is deleted');
  t.equal(served(), 3);
  t.equal(guard.hold?.reason, 'the CRD is deleted');
});

t.test('postponed deletion waits', async (t) => {
  const { step, pass, served, guard } = guarded();
  step([replaced(...objects(3))]);
  step([deleted('ns/1')]);
  guard.postpone(3 * second);
  pass(2 * second);
  t.equal(served(), 3);
  pass(second);
  t.equal(served(), 2);
});

for (const [title, options, event, held] of [
  ['list without objects', {}, replaced(), true],
  ['last deletion with XDS_ALLOW_EMPTY=false', { allowEmpty: false }, deleted('ns/0'), true],
  ['last deletion with XDS_ALLOW_EMPTY=true', {}, deleted('ns/0'), false],
] satisfies [string, Partial<DeletionGuardOptions>, SourceEvent, boolean][]) {
  t.test(`${title} is ${held ? 'held back' : 'in force after the delay'}`, async (t) => {
    const { step, pass, guard, served } = guarded(options);
    step([replaced(...objects(1))]);
    step([event]);
    t.equal(guard.hold, undefined, 'a file may be replaced meanwhile');
    pass(2 * second);
    t.equal(guard.hold !== undefined, held);
    t.equal(served(), held ? 1 : 0);
  });
}

t.test('stored objects stay in force with the first list, unless it has them', async (t) => {
  const { step, apply, guard, served } = guarded();
  const before = guarded();
  before.step([replaced(...objects(12))]);
  const stored = [...Array(12).keys()].flatMap((i) => before.catalog.find(`ns/${i}`) ?? []);
  apply(guard.adopt(stored, 'held before'));
  step([replaced(makeObject('ns/0', { domain: 'd0', uid: 'new' }), makeObject('ns/x', { domain: 'x' }))]);
  t.equal(served(), 13);
  t.equal(guard.hold?.objects.size, 11);
});

t.test('deletions that another replica holds are held, although they are not due here', async (t) => {
  const { step, pass, apply, guard, served, catalog } = guarded();
  step([replaced(...objects(20))]);
  const stored = objects(5).flatMap(({ id }) => catalog.find(id) ?? []);
  step(deletions(0, 5));
  apply(guard.adopt(stored, 'held by another replica'));
  t.equal(guard.hold?.objects.size, 5);
  pass(60 * second);
  t.equal(served(), 20);
});
