/** A `sleep` that ends when told, not when time passes. */
export type ManualSleep = {
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** The lengths of the sleeps that are going on. */
  pending(): number[];
  /** Ends the oldest sleep of that length. Throws when there is none. */
  wake(ms: number): void;
};

/** Creates a sleep without a clock. */
export function createManualSleep(): ManualSleep {
  const sleepers = new Set<{ ms: number; resolve: () => void }>();
  return {
    sleep(ms, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const sleeper = { ms, resolve };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', () => {
        sleepers.delete(sleeper);
        reject(signal.reason);
      });
      return promise;
    },
    pending: () => [...sleepers].map(({ ms }) => ms),
    wake(ms) {
      const sleeper = [...sleepers].find((candidate) => candidate.ms === ms);
      if (!sleeper) throw new Error(`no sleeper of ${ms} ms`);
      sleepers.delete(sleeper);
      sleeper.resolve();
    },
  };
}
