import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds of a clock that does not go back, whatever becomes of the system's time. */
export const monotonicNow = (): number => performance.now();

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
