import t from 'tap';
import { listSpecChanges } from '../../src/operator-api/spec-changes.ts';

t.test('the smallest fields that differ are listed', async (t) => {
  t.strictSame(listSpecChanges({ a: { b: 1, c: 2 } }, { a: { b: 1, c: 3, d: [] } }), [
    { field: 'spec.a.c', before: 2, after: 3 },
    { field: 'spec.a.d', after: [] },
  ]);
  t.strictSame(listSpecChanges({ a: 1 }, { a: { b: 1 } }), [{ field: 'spec.a', before: 1, after: { b: 1 } }]);
  t.strictSame(listSpecChanges({ a: 1 }, { a: 1 }), []);
  t.strictSame(listSpecChanges(undefined, { a: 1 }), [{ field: 'spec', after: { a: 1 } }]);
});

t.test('an item with a name that is inserted is one change', async (t) => {
  const item = (key: string, limit: number) => ({ key, limit });
  t.strictSame(
    listSpecChanges(
      { items: [item('a', 1), item('b', 2)] },
      { items: [item('c', 3), item('a', 1), item('b', 4)] },
    ),
    [
      { field: 'spec.items[0]', after: item('c', 3) },
      { field: 'spec.items[2].limit', before: 2, after: 4 },
    ],
  );
  t.strictSame(listSpecChanges({ items: [item('a', 1)] }, { items: [] }), [
    { field: 'spec.items[0]', before: item('a', 1) },
  ]);
});

t.test('items without names, or with the same, are compared by their places', async (t) => {
  t.strictSame(listSpecChanges(['a', 'b'], ['a', 'c', 'd'], 'spec.hosts'), [
    { field: 'spec.hosts[1]', before: 'b', after: 'c' },
    { field: 'spec.hosts[2]', after: 'd' },
  ]);
  t.strictSame(
    listSpecChanges(
      [
        { key: 'k', n: 1 },
        { key: 'k', n: 2 },
      ],
      [{ key: 'k', n: 1 }],
    ),
    [{ field: 'spec[1]', before: { key: 'k', n: 2 } }],
  );
});

t.test('names of JavaScript are ordinary names', async (t) => {
  t.strictSame(listSpecChanges({}, JSON.parse('{"__proto__":1,"constructor":2}')), [
    { field: 'spec.__proto__', after: 1 },
    { field: 'spec.constructor', after: 2 },
  ]);
});
