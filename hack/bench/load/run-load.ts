import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { LoadEvent, LoadPlan, LoadResult } from './load-plan.ts';

const program = join(import.meta.dirname, 'main.ts');

/** Called at the edges of the measured time, to read the server's CPU time there. */
export interface LoadMarks {
  onMeasuring?: () => void;
  onMeasured?: () => void;
}

/**
 * Runs one plan in a process of its own and waits for its result.
 *
 * @throws Error with what the load process said, when it failed or took far longer than planned; it is gone by then.
 */
export async function runLoad(plan: LoadPlan, marks: LoadMarks = {}): Promise<LoadResult> {
  const child = fork(program);
  const exited = once(child, 'exit');
  const { promise: outcome, resolve, reject } = Promise.withResolvers<LoadResult>();
  // The load process is our own program: what it sends is a LoadEvent.
  child.on('message', (event: LoadEvent) => {
    if (event.kind === 'measuring') marks.onMeasuring?.();
    else if (event.kind === 'measured') marks.onMeasured?.();
    else if (event.kind === 'result') resolve(event.result);
    else reject(new Error(`the load generator: ${event.message}`));
  });
  child.on('error', reject);
  child.on('exit', (code, signal) => reject(new Error(`the load generator ended with ${signal ?? code}`)));
  const endWithParent = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', endWithParent);
  const deadline = setTimeout(
    () => reject(new Error('the load generator does not end')),
    plan.warmUpMs + plan.measureMs + 30_000,
  );
  try {
    child.send(plan);
    return await outcome;
  } finally {
    clearTimeout(deadline);
    process.off('exit', endWithParent);
    child.kill('SIGKILL');
    await exited;
  }
}
