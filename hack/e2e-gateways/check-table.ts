const widths = [5, 43, 46];

/** Prints a line for each check. */
export class CheckTable {
  #failed = false;

  get failed(): boolean {
    return this.#failed;
  }

  line(...cells: readonly string[]): void {
    console.log(cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
  }

  check(what: string, expected: string, got: string, asExpected = got === expected): void {
    this.#failed ||= !asExpected;
    this.line(asExpected ? 'ok' : 'WRONG', what, expected, got);
  }

  /** Ends the table with an error. */
  fail(error: unknown): void {
    this.#failed = true;
    console.error(error);
  }
}
