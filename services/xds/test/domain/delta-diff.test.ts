import t from 'tap';
import { diffResources } from '../../src/domain/delta-diff.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

const before = testSnapshot({ a: 1, b: 1, c: 1 }).resources;

t.test('a difference has what is new or of another version, and what is gone', async (t) => {
  const { changed, removed } = diffResources(before, testSnapshot({ a: 1, b: 2, d: 1 }).resources);
  t.same(
    changed.map(({ name }) => name),
    ['b', 'd'],
  );
  t.same(removed, ['c']);
  t.same(diffResources(before, before), { changed: [], removed: [] });
});
