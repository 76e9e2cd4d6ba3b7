const widths = [5, 43, 46];

/** Prints a line for each check. */
export class CheckTable {
  failed = false;

  line(...cells: readonly string[]): void {
    console.log(cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
  }

  check(what: string, expected: string, got: string, asExpected = got === expected): void {
    this.failed ||= !asExpected;
    this.line(asExpected ? 'ok' : 'WRONG', what, expected, got);
  }
}
