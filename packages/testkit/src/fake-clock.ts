/** A clock that moves only when advanced. Has the shape of the clock of the code under test. */
export interface FakeClock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Bound function, for code that takes a bare function. */
  readonly now: () => number;
  /** Advances by that many milliseconds and wakes the sleepers that are due, earliest first. */
  advance(byMs: number): void;
  /** Jumps to a time, also backwards. Wakes no sleepers. */
  set(toMs: number): void;
  /**
   * Resolves when the clock has been advanced that far; rejects with the signal's reason when
   * aborted.
   */
  sleep(ms: number, options?: { signal?: AbortSignal }): Promise<void>;
  /** Number of sleepers, to wait until the code under test sleeps. */
  sleepers(): number;
}

interface Sleeper {
  wakeAtMs: number;
  wake: () => void;
}

/**
 * A fake clock that starts at `startMs` (default: 2001-09-09T01:46:40Z, a round number of seconds).
 */
export function fakeClock(startMs = 1_000_000_000_000): FakeClock {
  let nowMs = startMs;
  let sleepers: Sleeper[] = [];

  function set(toMs: number): void {
    nowMs = toMs;
    const due = sleepers.filter((sleeper) => sleeper.wakeAtMs <= nowMs);
    sleepers = sleepers.filter((sleeper) => sleeper.wakeAtMs > nowMs);
    for (const sleeper of due.sort((a, b) => a.wakeAtMs - b.wakeAtMs)) sleeper.wake();
  }

  return {
    nowMs: () => nowMs,
    now: () => nowMs,
    advance: (byMs) => set(nowMs + byMs),
    set,
    sleepers: () => sleepers.length,
    sleep(ms, { signal } = {}) {
      return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const forget = () => {
          sleepers = sleepers.filter((other) => other !== sleeper);
          reject(signal?.reason);
        };
        const sleeper: Sleeper = {
          wakeAtMs: nowMs + ms,
          wake: () => {
            signal?.removeEventListener('abort', forget);
            resolve();
          },
        };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', forget, { once: true });
      });
    },
  };
}
