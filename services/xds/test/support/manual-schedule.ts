import type { Schedule } from '@tollgate/kit/time';

/** Timers that the test advances. */
export interface ManualSchedule {
  readonly schedule: Schedule;
  /** Advances time and runs due timers. */
  advance(byMs: number): void;
  /** Number of pending timers. */
  readonly waiting: number;
  /** Whether a timer is due within that time. */
  isDueWithin(ms: number): boolean;
}

export function manualSchedule(): ManualSchedule {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly run: () => void }[] = [];
  return {
    schedule(delayMs, run) {
      const timer = { atMs: nowMs + delayMs, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    advance(byMs) {
      nowMs += byMs;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter(({ atMs }) => atMs > nowMs);
      for (const { run } of due) run();
    },
    get waiting() {
      return timers.length;
    },
    isDueWithin: (ms) => timers.some(({ atMs }) => atMs - nowMs <= ms),
  };
}
