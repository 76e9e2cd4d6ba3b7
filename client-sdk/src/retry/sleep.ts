import { assertTimer } from '../client/timers.ts';

/** Resolves after that many milliseconds; rejects with the signal's reason when it is aborted first. */
export type Sleep = (ms: number, options?: { signal?: AbortSignal | undefined }) => Promise<void>;

/** Sleeps by the machine's timers. Rejects with a ConfigurationError for a time that they do not wait. */
export const sleep: Sleep = (ms, { signal } = {}) =>
  new Promise((resolve, reject) => {
    assertTimer('the wait', ms);
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
