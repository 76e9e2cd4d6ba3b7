import type { Schedule } from './schedule.ts';

/** Tells a count that stays from one that is about to change back. */
export interface SettledCount {
  /** Takes note of the count, and answers whether it is the one to go by. */
  observe(count: number): boolean;
  /** The one to go by; undefined while there has been none since the start. */
  value(): number | undefined;
  close(): void;
}

/**
 * Makes one that knows of no count. One that differs is gone by once it has not been what it was for `settleMs`; nothing
 * becoming something is settled at once, and nothing is believed only after that time. `onSettled` is called when time
 * has settled it.
 */
export function createSettledCount(
  settleMs: number,
  { schedule, onSettled }: { readonly schedule: Schedule; readonly onSettled: () => void },
): SettledCount {
  let settled: number | undefined;
  let latest = 0;
  let cancel: (() => void) | undefined;

  function settle(): void {
    cancel?.();
    cancel = undefined;
    settled = latest;
  }

  return {
    observe(count) {
      latest = count;
      const wasNothing = (settled ?? 0) === 0;
      if (count === settled || (wasNothing && count > 0) || settleMs === 0) {
        settle();
        return true;
      }
      cancel ??= schedule(settleMs, () => {
        settle();
        onSettled();
      });
      return false;
    },
    value: () => settled,
    close: () => cancel?.(),
  };
}
