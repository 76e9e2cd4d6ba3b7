import t from 'tap';
import type { ConfigObject, SourceEvent } from '../../src/catalog/source.ts';
import { changed, deleted, getLimits, makeCatalog, replaced } from '../support/catalogs.ts';
import { badSpec, makeObject, type TestRule } from '../support/manifests.ts';
import { type SeededRandom, seededRandom } from '../support/seeded-random.ts';

const ids = ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'c/1'] as const;
const keys = ['k', 'l', 'm'] as const;

/**
 * The history of one object: valid, invalid and colliding versions, other domains, and sometimes
 * deletion and re-creation.
 */
function makeHistory(id: string, random: SeededRandom): SourceEvent[] {
  const events: SourceEvent[] = [];
  for (let generation = 1; generation <= 1 + random.below(4); generation += 1) {
    if (generation > 1 && random.below(5) === 0) events.push(deleted(id));
    const uid = `${id}#${events.filter(({ type }) => type === 'deleted').length}`;
    events.push(changed(getVersion(id, { random, generation, uid })));
  }
  if (random.below(6) === 0) events.push(deleted(id));
  return events;
}

interface Version {
  readonly random: SeededRandom;
  readonly generation: number;
  readonly uid: string;
}

function getVersion(id: string, { random, generation, uid }: Version): ConfigObject {
  const createdMs = id.charCodeAt(0) === 97 ? Number(id.slice(2)) : 2;
  if (random.below(4) === 0) return makeObject(id, { spec: badSpec, createdMs, generation, uid });
  const rules: TestRule[] = random
    .shuffle(keys)
    .slice(0, 1 + random.below(keys.length))
    .map((key) => ({ key, requestsPerUnit: 1 + random.below(9) }));
  return makeObject(id, { domain: random.pick(['shop', 'web']), rules, createdMs, generation, uid });
}

/**
 * A random interleaving of the events of several objects; those of each object stay in order.
 */
function interleave(histories: readonly (readonly SourceEvent[])[], random: SeededRandom): SourceEvent[] {
  const turns = random.shuffle(histories.flatMap((events, index) => events.map(() => index)));
  const next = histories.map((events) => events.values());
  return turns.flatMap((index) => {
    const event = next[index]?.next();
    return event === undefined || event.done === true ? [] : [event.value];
  });
}

t.test('result does not depend on the order of events of different objects', async (t) => {
  for (let seed = 1; seed <= 150; seed += 1) {
    const random = seededRandom(seed);
    const histories = ids.map((id) => makeHistory(id, random));
    const outcomes = Array.from({ length: 3 }, () => {
      const catalog = makeCatalog();
      let last = catalog.apply(replaced());
      const events = interleave(histories, random);
      // At once, one by one, or in groups: batches must not affect the result, either.
      while (events.length > 0) last = catalog.apply(...events.splice(0, 1 + random.below(8)));
      const results = [...catalog.results].sort(([a], [b]) => (a < b ? -1 : 1));
      return {
        version: last.snapshot.version,
        limits: getLimits(last.snapshot),
        results,
        rules: catalog.rules,
      };
    });
    t.strictSame(outcomes[1], outcomes[0], `seed ${seed}`);
    t.strictSame(outcomes[2], outcomes[0], `seed ${seed}`);
    t.equal(
      outcomes[0]?.rules,
      outcomes[0]?.limits.length,
      `seed ${seed}: the limits counted are those served`,
    );
  }
});

t.test('replica that starts late has the same result when nothing is invalid', async (t) => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const random = seededRandom(seed);
    const histories = ids.map((id) => makeHistory(id, random).filter((event) => !isBad(event)));
    const early = makeCatalog();
    let last = early.apply(replaced());
    for (const event of interleave(histories, random)) last = early.apply(event);
    const present = histories.flatMap((events) => {
      const event = events.at(-1);
      return event?.type === 'changed' ? [event.object] : [];
    });
    const late = makeCatalog().apply(replaced(...random.shuffle(present)));
    t.equal(late.snapshot.version, last.snapshot.version, `seed ${seed}`);
  }
});

const isBad = (event: SourceEvent): boolean =>
  event.type === 'changed' && JSON.stringify(event.object.manifest).includes('Fortnight');
