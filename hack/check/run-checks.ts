/** What a check found. */
export interface Finding {
  ok: boolean;
  /** For people; shown only when it is not ok. */
  output: string;
}

/** One line of the table that `npm run check` prints. */
export interface Check {
  readonly name: string;
  run(): Promise<Finding>;
}

/** A finding with the name of its check and how long it took. */
export interface CheckResult extends Finding {
  name: string;
  seconds: number;
}

/** Runs all checks, at most `concurrency` at a time, and answers their results in the order given. A check that throws has failed. */
export async function runChecks(
  checks: readonly Check[],
  { concurrency }: { concurrency: number },
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  const waiting = checks.entries();
  async function work(): Promise<void> {
    for (const [index, check] of waiting) results[index] = await timed(check);
  }
  await Promise.all(Array.from({ length: concurrency }, work));
  return results;
}

async function timed(check: Check): Promise<CheckResult> {
  const startMs = performance.now();
  const finding = await check.run().catch((error: unknown) => ({
    ok: false,
    output: error instanceof Error ? `${error.stack}` : String(error),
  }));
  return { ...finding, name: check.name, seconds: (performance.now() - startMs) / 1000 };
}

/** The table, then the output of each check that failed. */
export function formatResults(results: readonly CheckResult[]): string {
  const width = Math.max(...results.map(({ name }) => name.length));
  const row = ({ name, ok, seconds }: CheckResult) =>
    `${name.padEnd(width)}  ${ok ? 'ok    ' : 'FAILED'}  ${seconds.toFixed(1).padStart(5)} s\n`;
  const details = ({ name, output }: CheckResult) => `\n--- ${name}\n${output.trimEnd()}\n`;
  return [...results.map(row), ...results.filter(({ ok }) => !ok).map(details)].join('');
}
