// The load generator, a process of its own so that its work is not mistaken for that of the server or of the bench.
// It takes one LoadPlan from its parent, sends LoadEvents back, and ends; also when the parent goes away.
import { runClosedLoop } from './closed-loop.ts';
import type { LoadEvent, LoadPlan, LoadResult } from './load-plan.ts';
import { runOpenLoop } from './open-loop.ts';

const report = (event: LoadEvent): void => {
  process.send?.(event);
};

async function run(plan: LoadPlan): Promise<LoadResult> {
  const { load } = plan;
  return load.kind === 'closed'
    ? await runClosedLoop({ ...plan, load }, report)
    : await runOpenLoop({ ...plan, load }, report);
}

process.once('disconnect', () => process.exit(1));
// The parent is this same program: what it sends is a plan.
process.once('message', async (plan: LoadPlan) => {
  try {
    report({ kind: 'result', result: await run(plan) });
  } catch (error) {
    report({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
  process.removeAllListeners('disconnect');
  process.disconnect();
});
