/** Runs something once, later; the function it returns takes that back. */
export type Schedule = (delayMs: number, run: () => void) => () => void;

/** By the timers of the process, which keep it alive no longer. */
export const scheduleByTimer: Schedule = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  timer.unref();
  return () => clearTimeout(timer);
};
