import type { Schedule } from '../../src/context.ts';

/** Timers that wait for the test. */
export interface ManualSchedule {
  readonly schedule: Schedule;
  /** Time goes on by so much, and what is due is run. */
  advance(byMs: number): void;
  /** How many wait. */
  readonly waiting: number;
}

/** Makes one that nobody waits for. */
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
  };
}
