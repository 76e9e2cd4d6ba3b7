/** Resolves after that many milliseconds; rejects with the signal's reason when it is aborted first. */
export type Sleep = (ms: number, options?: { signal?: AbortSignal | undefined }) => Promise<void>;

/** Sleeps by the machine's timers. */
export const sleep: Sleep = (ms, { signal } = {}) =>
  new Promise((resolve, reject) => {
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
