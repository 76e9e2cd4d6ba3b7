import { style, type Terminal } from './terminal.ts';

/** Values that are absent are shown as `-`. */
type Cell = string | number | boolean | null | undefined;

/** A column: its heading, and the cell of an item. */
export type Columns<Item> = Readonly<Record<string, (item: Item) => Cell>>;

/** Writes a table, or the sentence that says what to do where there are no items. */
export function printTable<Item>(
  terminal: Terminal,
  items: readonly Item[],
  { columns, empty }: { readonly columns: Columns<Item>; readonly empty: string },
): void {
  if (items.length === 0) terminal.warn(empty);
  else printRows(terminal, items, columns);
}

function printRows<Item>(terminal: Terminal, items: readonly Item[], columns: Columns<Item>): void {
  const headings = Object.keys(columns);
  const rows = items.map((item) => Object.values(columns).map((toCell) => formatCell(toCell(item))));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const format = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  terminal.print(`${style(terminal, 'dim', format(headings))}\n`);
  for (const row of rows) terminal.print(`${format(row)}\n`);
}

function formatCell(cell: Cell): string {
  return cell === undefined || cell === null || cell === '' ? '-' : escapeControls(String(cell));
}

/** Others choose names and values: they must not control the terminal, or forge a row. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
