const hourMs = 3_600_000;

/** The requests of the demo take a second or two. */
const marginMs = 10_000;

/**
 * How long to wait so that no window of an hour or a day ends amidst the demo, which would count from 0 again.
 * 0 when the next full hour is more than 10 seconds away.
 */
export function waitForWindowMs(nowMs: number): number {
  const leftMs = hourMs - (nowMs % hourMs);
  return leftMs > marginMs ? 0 : leftMs;
}
