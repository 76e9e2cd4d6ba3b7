/** A column: its head, and the text of each row's cell. */
export interface Column<Row> {
  head: string;
  cell: (row: Row) => string;
  /** Numbers stand to the right. */
  align?: 'left' | 'right';
}

/** Lays rows out as a table for a terminal. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const lines = [columns.map(({ head }) => head), ...rows.map((row) => columns.map(({ cell }) => cell(row)))];
  const widths = columns.map((_, i) => Math.max(...lines.map((cells) => cells[i]?.length ?? 0)));
  return lines
    .map((cells) =>
      cells
        .map((text, i) => pad(text, widths[i] ?? 0, columns[i]?.align))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Lays rows out as a table in Markdown. */
export function formatMarkdownTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(columns.map(({ head }) => head)),
    line(columns.map(({ align }) => (align === 'left' ? '---' : '---:'))),
    ...rows.map((row) => line(columns.map(({ cell }) => cell(row)))),
  ].join('\n');
}

function pad(text: string, width: number, align: 'left' | 'right' = 'right'): string {
  return align === 'left' ? text.padEnd(width) : text.padStart(width);
}
