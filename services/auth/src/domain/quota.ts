import { type Millis, parseDuration } from '@tollgate/kit/duration';

/** How many events may happen: so many in each period of the clock, or as many as a bucket holds that refills one by one. */
export type Quota =
  | { readonly kind: 'window'; readonly events: number; readonly periodMs: Millis }
  | { readonly kind: 'bucket'; readonly size: number; readonly refillEveryMs: Millis };

const hourMs = 3_600_000;

/**
 * Reads `N` (N events in each hour of the clock) or `N/duration` (a bucket of N to which one is added after each duration).
 * Answers undefined when the text has neither form.
 */
export function parseQuota(text: string): Quota | undefined {
  const [, number = '', period] = /^(\d{1,9})(?:\/(\S+))?$/.exec(text) ?? [];
  if (number === '') return undefined;
  const events = Number(number);
  if (period === undefined) return { kind: 'window', events, periodMs: hourMs };
  const refillEveryMs = parseDuration(period);
  if (refillEveryMs === undefined || refillEveryMs <= 0) return undefined;
  return { kind: 'bucket', size: events, refillEveryMs };
}

/** A bucket of `events` that refills whole within `periodMs`. */
export function bucketQuota(events: number, periodMs: Millis): Quota {
  return { kind: 'bucket', size: events, refillEveryMs: events > 0 ? periodMs / events : periodMs };
}
