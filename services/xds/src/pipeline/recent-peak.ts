import type { Schedule } from './schedule.ts';

/** Tells a count that is lower for good from one that is about to come back. */
export interface RecentPeak {
  /** Takes note of the count. Answers whether it has not been higher of late: then it is the one to go by. */
  observe(count: number): boolean;
  /** Whether nothing but 0 was seen, and not for long: then it says nothing. */
  isStarting(): boolean;
  close(): void;
}

/** What it takes. */
export interface RecentPeakDeps {
  readonly schedule: Schedule;
  /** Called when a higher count of the past does not matter any more. */
  readonly onFall: () => void;
}

/** Makes one that has seen nothing, and remembers a higher count for `windowMs`; with 0 every count is the one to go by. */
export function createRecentPeak(windowMs: number, { schedule, onFall }: RecentPeakDeps): RecentPeak {
  /** Higher counts of the past, each with what takes back its being forgotten. */
  const higher = new Map<number, () => void>();
  /** Before anything was seen it may have been any number. */
  let present = Number.POSITIVE_INFINITY;

  function remember(count: number): void {
    higher.get(count)?.();
    const forgetIt = schedule(windowMs, () => {
      higher.delete(count);
      onFall();
    });
    higher.set(count, forgetIt);
  }

  function forget(count: number): void {
    higher.get(count)?.();
    higher.delete(count);
  }

  return {
    observe(count) {
      if (windowMs === 0) return true;
      if (count < present) remember(present);
      present = count;
      // One that is there at the start is news, however many there were before.
      if (count > 0) forget(Number.POSITIVE_INFINITY);
      for (const past of [...higher.keys()]) if (past <= count) forget(past);
      return higher.size === 0;
    },
    isStarting: () => higher.has(Number.POSITIVE_INFINITY),
    close() {
      for (const past of [...higher.keys()]) forget(past);
    },
  };
}
