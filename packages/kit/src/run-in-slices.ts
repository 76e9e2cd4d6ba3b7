import { setImmediate as nextTurn } from 'node:timers/promises';
import { monotonicNow } from './time.ts';

/** Work that can be interrupted wherever it yields, and ends with its result. */
export type Sliceable<T> = Generator<void, T, void>;

/** How work is cut up. */
export interface SliceOptions {
  /** How long work goes on before others have their turn. */
  readonly sliceMs: number;
  /** A clock that only goes forward; the process' own when absent. */
  readonly nowMs?: () => number;
}

/**
 * Runs work in slices: after each, the event loop serves what has arrived meanwhile. Work that fits into one slice is
 * done at once.
 */
export async function runInSlices<T>(work: Sliceable<T>, options: SliceOptions): Promise<T> {
  const { sliceMs, nowMs = monotonicNow } = options;
  let endMs = nowMs() + sliceMs;
  for (;;) {
    const step = work.next();
    if (step.done === true) {
      return step.value;
    }
    if (nowMs() >= endMs) {
      await nextTurn();
      endMs = nowMs() + sliceMs;
    }
  }
}
