import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import { VersionHistory } from '../../src/catalog/version-history.ts';
import { changed, deleted, replaced } from '../support/catalogs.ts';
import { makeObject } from '../support/manifests.ts';

function start(maxBytes?: number) {
  let nowMs = 0;
  const history = new VersionHistory({ nowMs: () => nowMs, ...(maxBytes !== undefined && { maxBytes }) });
  return {
    add(...events: Parameters<typeof history.add>[0]) {
      nowMs += 1_000;
      runSteps(history.add(events));
    },
    evaluated: history.evaluated.bind(history),
    versions: (id = 'ns/a') => history.find(id)?.versions,
    generations: (id = 'ns/a') => history.find(id)?.versions.map(({ generation }) => generation),
  };
}

const version = (generation: number, id = 'ns/a', uid = id) =>
  makeObject(id, { generation, uid, domain: `d${generation}` });

t.test('versions have their manifest, the time, and whether they were accepted', async (t) => {
  const { add, evaluated, versions } = start();
  add(replaced(version(1)));
  evaluated('ns/a', 1, true);
  add(changed(version(2)));
  evaluated('ns/a', 1, false);
  t.match(versions(), [
    { generation: 2, readMs: 2_000, isAccepted: undefined, manifest: { spec: { domain: 'd2' } } },
    { generation: 1, readMs: 1_000, isAccepted: true, manifest: { spec: { domain: 'd1' } } },
  ]);
});

t.test('an event of the same generation is no new version', async (t) => {
  const { add, versions } = start();
  add(replaced(version(1)));
  add(changed(version(1)), replaced(version(1)));
  t.match(versions(), [{ generation: 1, readMs: 1_000 }]);
});

t.test('the last ten versions of an object are kept', async (t) => {
  const { add, generations } = start();
  for (let generation = 1; generation <= 12; generation += 1) add(changed(version(generation)));
  t.strictSame(generations(), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
});

t.test('beyond the bound, the oldest versions of any object are dropped, and no newest one', async (t) => {
  const bytes = JSON.stringify(version(1).manifest).length;
  const { add, generations } = start(2 * bytes);
  add(replaced(version(1), version(1, 'ns/b')));
  add(changed(version(2)), changed(version(2, 'ns/b')));
  add(changed(version(3)));
  t.strictSame(generations('ns/a'), [3, 2]);
  t.strictSame(generations('ns/b'), [2, 1]);
  add(changed(version(3, 'ns/b')));
  t.strictSame(generations('ns/a'), [3, 2]);
  t.strictSame(generations('ns/b'), [3, 2]);
});

t.test('an object that was deleted, or created again, has no versions of the former one', async (t) => {
  const { add, generations } = start();
  add(replaced(version(1), version(1, 'ns/b')));
  add(changed(version(2)), changed(version(1, 'ns/a', 'another')));
  t.strictSame(generations(), [1]);
  add(deleted('ns/a'));
  t.equal(generations(), undefined);
  add(replaced());
  t.equal(generations('ns/b'), undefined);
});
