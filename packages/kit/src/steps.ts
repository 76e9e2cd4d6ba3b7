import { setImmediate as nextTurn } from 'node:timers/promises';
import { monotonicNow } from './time.ts';

/**
 * Work that may be interrupted wherever it yields. The caller decides how long it runs at a time.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs work to its end without a break. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Runs work in slices of `sliceMs`, and lets the event loop serve what has arrived after each
 * slice. Work that fits into one slice completes without a break.
 */
export async function runInSlices<T>(
  steps: Steps<T>,
  { sliceMs, nowMs = monotonicNow }: { readonly sliceMs: number; readonly nowMs?: () => number },
): Promise<T> {
  let endMs = nowMs() + sliceMs;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (nowMs() >= endMs) {
      await nextTurn();
      endMs = nowMs() + sliceMs;
    }
  }
}
