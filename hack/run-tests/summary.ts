/** A step or a test file, and how long it took. */
export interface Duration {
  readonly name: string;
  readonly seconds: number;
}

/** How many test files the summary names. */
const slowest = 15;

/** Durations of the test files in the output of one run of tap. */
export function fileDurations(tap: string): Duration[] {
  const lines = tap.matchAll(/^(?:not )?ok \d+ - (\S+\.test\.ts) # time=([\d.]+)ms/gm);
  return [...lines].map(([, name = '', ms]) => ({ name, seconds: Number(ms) / 1000 }));
}

/** A table for people: all steps in their order, then the slowest test files. */
export function formatSummary(steps: readonly Duration[], files: readonly Duration[]): string {
  const row = ({ name, seconds }: Duration) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`;
  const longest = [...files].sort((a, b) => b.seconds - a.seconds).slice(0, slowest);
  const heading = `slowest of ${files.length} test files (two run at a time):\n`;
  return ['what took long:\n', ...steps.map(row), heading, ...longest.map(row)].join('');
}
