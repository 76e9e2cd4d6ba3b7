/** Takes steps back in reverse order; each is taken, whatever becomes of the others. */
export async function undoAll(steps: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps.toReversed()) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0)
    throw new AggregateError(failures, 'not everything that was started could be ended');
}
