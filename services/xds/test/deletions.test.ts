import { runSteps } from '@tollgate/kit/time';
import t, { type Test } from 'tap';
import { Catalog } from '../src/catalog/catalog.ts';
import type { HeldObject, SourceEvent, StoredHold } from '../src/catalog/source.ts';
import { Deletions, heldConfigs, memoryHold } from '../src/deletions.ts';
import { deleted, replaced } from './support/catalogs.ts';
import { makeObject } from './support/manifests.ts';
import { manualSchedule } from './support/manual-schedule.ts';
import { recordingContext } from './support/recording-logger.ts';

const windowMs = 30_000;

/** Held deletions whose store and time are the test's. */
async function startDeletions(t: Test) {
  const catalog = new Catalog();
  const time = manualSchedule();
  let nowMs = 0;
  let tell: (stored: StoredHold) => void = () => undefined;
  const puts: (readonly HeldObject[])[] = [];
  const deletions = new Deletions(recordingContext().context, {
    ...{ catalog, schedule: time.schedule, now: () => nowMs, onDue: () => undefined },
    ...{ delayMs: 2_000, windowMs, domains: 10, share: 0.5, allowEmpty: true },
    source: {},
    ...{ form: heldConfigs, setHeld: () => undefined },
    store: {
      ...memoryHold,
      async start(onChange) {
        tell = onChange;
      },
      put: (objects) => void puts.push(objects),
    },
  });
  t.teardown(() => deletions.close());
  await deletions.start();
  return {
    deletions,
    /** The objects of each call of the store. */
    puts,
    /** Passes what the store contains. */
    tell: (stored: StoredHold) => tell(stored),
    /** Applies events, and what `during` does while they are applied. */
    async step(events: readonly SourceEvent[], during: () => void = () => undefined): Promise<void> {
      await deletions.apply(events, {
        isFirst: false,
        apply: async (admitted) => {
          during();
          runSteps(catalog.apply(admitted, nowMs));
        },
      });
    },
    advance(ms: number): void {
      nowMs += ms;
      time.advance(ms);
    },
    served: () => runSteps(catalog.apply([], nowMs)).snapshot.resources.size,
  };
}

const objects = Array.from({ length: 20 }, (_, i) => makeObject(`ns/${i}`, { domain: `d${i}` }));
const deletions = objects.map(({ id }) => deleted(id));

const toHeld = (id: string, domain: string): HeldObject => {
  const { uid, generation, createdMs, manifest } = makeObject(id, { domain });
  // A manifest of makeObject has a spec.
  const { spec } = manifest as { spec: unknown };
  return { id, uid, generation, createdMs, spec };
};

t.test('guard is on again after the window, although the store reports the permission often', async (t) => {
  const { step, tell, advance, puts, deletions: guarded } = await startDeletions(t);
  await step([replaced(...objects)]);
  await step(deletions);
  t.equal(guarded.state()?.domains, 20);
  for (let ms = 0; ms < windowMs; ms += 1_000) {
    tell({ isAllowed: true, objects: [] });
    await step([]);
    advance(1_000);
  }
  t.strictSame(
    puts.map(({ length }) => length),
    [20, 0],
  );
  tell({ isAllowed: false, objects: [] });
  await step([replaced(...objects)]);
  await step(deletions);
  t.equal(guarded.state()?.domains, 20);
});

t.test('hold that is stored while changes are applied is applied next', async (t) => {
  const { step, tell, served } = await startDeletions(t);
  await step([replaced(...objects)], () =>
    tell({ isAllowed: false, objects: [toHeld('other/gone', 'gone')] }),
  );
  t.equal(served(), 20);
  await step([]);
  t.equal(served(), 21);
});

t.test('hold that another replica stores is removed when its objects exist here', async (t) => {
  const { step, tell, puts } = await startDeletions(t);
  await step([replaced(...objects)]);
  tell({ isAllowed: false, objects: [toHeld('ns/1', 'd1')] });
  t.strictSame(puts, [[]]);
});

t.test(
  'object is deleted while its deletion is let through or applied, unless it exists again',
  async (t) => {
    const { step, tell, advance, deletions: guarded } = await startDeletions(t);
    await step([replaced(...objects)]);
    const isDeleted = () => guarded.isDeleted('ns/0');
    await step([deleted('ns/0')], () => t.ok(isDeleted(), 'it waits'));
    advance(2_000);
    await step([], () => t.ok(isDeleted(), 'it is applied'));
    t.notOk(isDeleted(), 'the catalog does not have it any more');
    await step(deletions.slice(1));
    tell({ isAllowed: true, objects: [] });
    t.ok(guarded.isDeleted('ns/1'), 'let through, and not applied yet');
    const [, again = makeObject('ns/1')] = objects;
    await step([{ type: 'changed', object: again }], () => t.notOk(guarded.isDeleted('ns/1')));
  },
);
