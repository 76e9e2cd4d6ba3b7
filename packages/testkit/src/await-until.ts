import { setTimeout as delay } from 'node:timers/promises';

/** How long and how often `awaitUntil` looks, and what its error calls the thing waited for. */
export interface AwaitUntilOptions {
  /** Completes "waited for …" in the error. */
  what: string;
  /** Default 20000: far more than anything local takes, also on a machine that stalls; far less than a test's own deadline. */
  timeoutMs?: number;
  /** Default 10. */
  everyMs?: number;
}

/**
 * Calls `attempt` until it answers something truthy and returns that. An attempt that throws (a failed assertion, a
 * refused connection) counts as "not yet".
 *
 * @throws Error naming what was waited for and how long; its cause is what the last attempt threw.
 */
export async function awaitUntil<T>(
  attempt: () => T | Promise<T>,
  { what, timeoutMs = 20_000, everyMs = 10 }: AwaitUntilOptions,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
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
    await delay(everyMs);
  }
}

/**
 * Like `awaitUntil`, for assertions that answer nothing: done when `assertion` does not throw.
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
