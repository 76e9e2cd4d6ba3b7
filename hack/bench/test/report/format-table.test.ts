import t from 'tap';
import { type Column, formatMarkdownTable, formatTable } from '../../report/format-table.ts';

const columns: readonly Column<{ name: string; count: number }>[] = [
  { head: 'name', align: 'left', cell: ({ name }) => name },
  { head: 'n', cell: ({ count }) => String(count) },
];
const rows = [
  { name: 'first', count: 1 },
  { name: 'b', count: 2000 },
];

t.test('columns line up, numbers to the right', async (t) => {
  t.equal(formatTable(columns, rows), 'name      n\nfirst     1\nb      2000');
});

t.test('the same rows make a table in Markdown, lined up', async (t) => {
  t.equal(
    formatMarkdownTable(columns, rows),
    '| name  |    n |\n| ----- | ---: |\n| first |    1 |\n| b     | 2000 |',
  );
});
