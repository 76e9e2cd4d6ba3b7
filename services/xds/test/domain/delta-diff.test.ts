import t from 'tap';
import { diffResources, sameDiff } from '../../src/domain/delta-diff.ts';
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

t.test('differences are the same by names and versions', async (t) => {
  const diff = (limits: Readonly<Record<string, number>>) =>
    diffResources(before, testSnapshot(limits).resources);
  t.ok(sameDiff(diff({ a: 2, b: 1 }), diff({ b: 1, a: 2 })));
  t.notOk(sameDiff(diff({ a: 2, b: 1 }), diff({ a: 3, b: 1 })), 'another version');
  t.notOk(sameDiff(diff({ a: 2, b: 1 }), diff({ a: 2, c: 1 })), 'another is gone');
  t.notOk(sameDiff(diff({ a: 2, b: 1, c: 1 }), diff({ a: 1, b: 2, c: 1 })), 'another has changed');
  t.notOk(sameDiff(diff({ a: 2, b: 1, c: 1 }), diff({ a: 2, b: 2, c: 1 })), 'one more has changed');
});
