import t from 'tap';
import { createManifestPlaces } from '../../../src/resource-sources/folder/manifest-places.ts';

const text = `# first
---
a: &x { b: 1 }
c: *x
---
# nothing
---
kind: List
items:
  - d: [1, { e: 2 }]
...
`;
const placeOf = createManifestPlaces([{ source: 'x#1.yaml', text }]);

t.test('a field is found in its document, at its key, and an item where it begins', (t) => {
  t.strictSame(placeOf('x#1.yaml#1', 'a.b'), { source: 'x#1.yaml', line: 3, column: 9 });
  t.strictSame(placeOf('x#1.yaml#2.items[0]', 'd[1].e'), { source: 'x#1.yaml', line: 10, column: 14 });
  t.strictSame(placeOf('x#1.yaml#2.items[0]', 'd[1]'), { source: 'x#1.yaml', line: 10, column: 12 });
  t.strictSame(placeOf('x#1.yaml#2.items[0]', ''), { source: 'x#1.yaml', line: 10, column: 5 });
  t.end();
});

t.test('what is missing or behind an alias is where the nearest thing is that holds it', (t) => {
  t.match(placeOf('x#1.yaml#1', 'c.b'), { line: 4, column: 1 });
  t.match(placeOf('x#1.yaml#1', 'ab.c'), { line: 3, column: 1 });
  t.end();
});

t.test('what is no label of a manifest has no place', (t) => {
  for (const label of ['x#1.yaml', 'x#1.yaml#3', 'x#1.yaml:3:1', 'other.yaml#1'])
    t.equal(placeOf(label, ''), undefined);
  t.end();
});
