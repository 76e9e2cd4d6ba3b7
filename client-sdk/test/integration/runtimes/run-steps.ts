/** Result of each step, by its name: a value to compare, or the error that ended it. */
export type Report = Readonly<Record<string, unknown>>;

/**
 * Runs all steps one after the other, each whatever became of those before, and tells what they
 * gave.
 */
export async function runSteps<Sdk, Input>(
  steps: Readonly<Record<string, (sdk: Sdk, input: Input) => Promise<unknown>>>,
  sdk: Sdk,
  input: Input,
): Promise<Report> {
  const report: Record<string, unknown> = {};
  for (const [name, step] of Object.entries(steps)) {
    try {
      report[name] = await step(sdk, input);
    } catch (error) {
      report[name] = describeError(error);
    }
  }
  return report;
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `; cause: ${describeError(error.cause)}`;
  return `${error.name}: ${error.message}${cause}`;
}
