import t from 'tap';
import { alignColumns, escapeControls } from '../src/table.ts';

t.test('columns are as wide as their longest cell', async (t) => {
  const rows = [
    ['NAME', 'HITS', 'STATE'],
    ['ann', '12', ''],
    ['a-long-name', '3'],
  ];
  t.strictSame(alignColumns(rows), ['NAME         HITS  STATE', 'ann          12', 'a-long-name  3']);
  t.strictSame(
    alignColumns(rows, (column) => column === 1),
    ['NAME         HITS  STATE', 'ann            12', 'a-long-name     3'],
  );
  t.strictSame(alignColumns([]), []);
});

t.test('controls are escaped', async (t) => {
  t.equal(escapeControls('a\n\u001b[31mb\u202ec\u2028'), 'a\\u{a}\\u{1b}[31mb\\u{202e}c\\u{2028}');
});
