import t from 'tap';
import { findDeadLinks } from '../links.ts';

const found = (pages: Record<string, string>, ...files: string[]) =>
  findDeadLinks([...files, ...Object.keys(pages)], new Map(Object.entries(pages)));

t.test('links to existing files, folders and headings pass', async (t) => {
  const page = [
    '# The `A`, of [b](docs/b.md)',
    '[a](docs/b.md) [b](docs) [c](./docs/b.md#two-words-1) [d](#the-a-of-b) [e](charts/)',
    '[f](https://example.org/x) [g](mailto:a@example.org)',
    '[h]: docs/b.md',
  ].join('\n');
  const other = '# Two words\n[up](../README.md) [code](../src/a.ts#L3)\n## Two words\n';
  t.same(found({ 'README.md': page, 'docs/b.md': other }, 'charts/c.yaml', 'src/a.ts'), []);
});

t.test('dead links are reported with their line', async (t) => {
  t.same(found({ 'docs/a.md': '# A\n\n[b](b.md) and [c](../c)\n[d](#b)\n[e](./a.md#c)\n' }), [
    'docs/a.md:3: no such file: b.md',
    'docs/a.md:3: no such file: ../c',
    'docs/a.md:4: no such heading: #b',
    'docs/a.md:5: no such heading: ./a.md#c',
  ]);
});

t.test('links and headings in code are ignored', async (t) => {
  t.same(found({ 'a.md': '`[a](b)`\n```sh\n# c\n[a](b)\n```\n' }), []);
  t.match(found({ 'a.md': '```sh\n# c\n```\n[a](#c)\n' }), [/no such heading: #c/]);
});
