import { setTimeout as delay } from 'node:timers/promises';

/** Options of `awaitUntil`. */
export interface AwaitUntilOptions {
  /** Completes "waited for …" in the error. */
  what: string;
  /**
   * Default 60000: more than local work takes on a stalled machine, and less than a test's own
   * timeout.
   */
  timeoutMs?: number;
  /** Default 10. At least as long as the attempt, so that waiting takes half of a CPU. */
  everyMs?: number;
}

/**
 * Calls `attempt` until its result is truthy, and returns that. An attempt that throws (a failed
 * assertion, a refused connection) counts as "not yet".
 *
 * @throws Error naming what was waited for and how long; its cause is what the last attempt threw.
 */
export async function awaitUntil<T>(
  attempt: () => T | Promise<T>,
  { what, timeoutMs = 60_000, everyMs = 10 }: AwaitUntilOptions,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const attemptMs = performance.now();
    let lastError: unknown;
    try {
      const answer = await attempt();
      if (answer) return answer;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() >= deadline) {
      const because = lastError instanceof Error ? `: ${lastError.message}` : '';
      throw new Error(`waited ${timeoutMs} ms in vain for ${what}${because}`, { cause: lastError });
    }
    await delay(Math.max(everyMs, performance.now() - attemptMs));
  }
}

/**
 * Waits as `awaitUntil` does, for assertions without a result: resolves when `assertion` does not
 * throw.
 *
 * @throws Error as `awaitUntil` does.
 */
export async function awaitPass(
  assertion: () => void | Promise<void>,
  options: AwaitUntilOptions,
): Promise<void> {
  await awaitUntil(async () => {
    await assertion();
    return true;
  }, options);
}
