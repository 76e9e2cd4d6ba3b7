import { setTimeout as delay } from 'node:timers/promises';

/** The longest time of a timer: Node fires one that is to wait longer at once. */
export const maxTimerMs = 2 ** 31 - 1;

/** Milliseconds of a clock that does not go back, whatever becomes of the system's time. */
export const monotonicNow = (): number => performance.now();

/**
 * Calls `late` after that time, unless the function that is returned is called before. Whatever has arrived by then is
 * read first: a process that stood still, for want of CPU or to collect garbage, finds its timers due before it finds the
 * answers.
 */
export function startDeadline(timeoutMs: number, late: () => void): () => void {
  let afterReading: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    afterReading = setImmediate(late);
  }, timeoutMs);
  return () => {
    clearTimeout(timer);
    clearImmediate(afterReading);
  };
}

/** Settles as the promise does, or rejects with what `late` makes when that takes longer. What becomes of the promise then is ignored. */
export async function inTime<T>(promise: Promise<T>, timeoutMs: number, late: () => Error): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const clear = startDeadline(timeoutMs, () => timeout.reject(late()));
  try {
    return await Promise.race([promise, timeout.promise]);
  } finally {
    clear();
  }
}

/** Resolves after that time; rejects with the reason of the signal once that aborts. */
export async function sleepFor(
  ms: number,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  try {
    await delay(ms, undefined, { ...(signal && { signal }) });
  } catch (error) {
    // Node wraps the reason in an AbortError of its own.
    signal?.throwIfAborted();
    throw error;
  }
}
