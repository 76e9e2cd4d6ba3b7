import t from 'tap';
import { mendAnchors } from '../mend-anchors.ts';

t.test('a number that no heading has is left out of a link', async (t) => {
  t.equal(mendAnchors('[`K`](#kind-1)\n### Kind\n'), '[`K`](#kind)\n### Kind\n');
});

t.test('links that lead to a heading stay, and those that nothing mends', async (t) => {
  const page = '[a](#kind-1) [b](#kind) [c](#other-1) [d](x.md#kind-1)\n# Kind\n## Kind\n';
  t.equal(mendAnchors(page), page);
});
