/** A column: its head, and the text of each row's cell. */
export interface Column<Row> {
  head: string;
  cell: (row: Row) => string;
  /** Numbers stand to the right, which is the default. */
  align?: 'left' | 'right';
}

/** Lays rows out as a table for a terminal. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return layOut(columns, rows)
    .map((cells) => cells.join('  ').trimEnd())
    .join('\n');
}

/** Lays rows out as a table in Markdown, lined up as the formatter wants it. */
export function formatMarkdownTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const [head = [], ...body] = layOut(columns, rows);
  const rule = head.map((text, i) =>
    columns[i]?.align === 'left' ? '-'.repeat(text.length) : `${'-'.repeat(text.length - 1)}:`,
  );
  return [head, rule, ...body].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** No column of a Markdown table can be narrower: its rule needs three characters. */
const leastWidth = 3;

/** The heads and the cells of all rows, padded to the width of their column. */
function layOut<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[][] {
  const lines = [columns.map(({ head }) => head), ...rows.map((row) => columns.map(({ cell }) => cell(row)))];
  const widths = columns.map((_, i) => Math.max(leastWidth, ...lines.map((cells) => cells[i]?.length ?? 0)));
  return lines.map((cells) => cells.map((text, i) => pad(text, widths[i] ?? 0, columns[i]?.align)));
}

function pad(text: string, width: number, align: 'left' | 'right' = 'right'): string {
  return align === 'left' ? text.padEnd(width) : text.padStart(width);
}
