const hourMs = 3_600_000;

/** The scenario takes three seconds; on a machine that is busy with other work many times as long. */
const marginMs = 45_000;

/**
 * How long to wait so that no window of an hour or a day ends amidst the demo, which would count from 0 again.
 * 0 when the next full hour is more than 45 seconds away.
 */
export function waitForWindowMs(nowMs: number): number {
  const leftMs = hourMs - (nowMs % hourMs);
  return leftMs > marginMs ? 0 : leftMs;
}
