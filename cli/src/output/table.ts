import { alignColumns, escapeControls } from '@tollgate/kit/table';
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
  if (items.length === 0) {
    terminal.warn(empty);
    return;
  }
  const rows = items.map((item) => Object.values(columns).map((toCell) => formatCell(toCell(item))));
  const [heading = '', ...lines] = alignColumns([Object.keys(columns), ...rows]);
  for (const line of [style(terminal, 'dim', heading), ...lines]) terminal.print(`${line}\n`);
}

/** Others choose names and values. */
function formatCell(cell: Cell): string {
  return cell === undefined || cell === null || cell === '' ? '-' : escapeControls(String(cell));
}
