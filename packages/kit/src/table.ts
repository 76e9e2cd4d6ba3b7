/**
 * Lines of a table, whose columns are two spaces apart. The first row has all columns.
 *
 * @param isRight whether a column, from 0, is aligned to the right; default none
 */
export function alignColumns(
  rows: readonly (readonly string[])[],
  isRight: (column: number) => boolean = () => false,
): string[] {
  const [first = []] = rows;
  const widths = first.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const align = (cell: string, column: number): string => {
    const width = widths[column] ?? 0;
    return isRight(column) ? cell.padStart(width) : cell.padEnd(width);
  };
  return rows.map((row) => row.map(align).join('  ').trimEnd());
}

/** A text that others choose must not control the terminal, or forge a row. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
