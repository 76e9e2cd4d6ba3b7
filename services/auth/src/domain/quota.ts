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
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return windowQuota(Number(text), hourMs);
  const [, number = '', period = ''] = /^(\d{1,9})\/(\S+)$/.exec(text) ?? [];
  if (number === '') return undefined;
  const events = Number(number);
  const refillEveryMs = parseDuration(period);
  if (refillEveryMs === undefined || refillEveryMs <= 0) return undefined;
  return { kind: 'bucket', size: events, refillEveryMs };
}

/** Fewer than one event in a period is one in several. */
function windowQuota(events: number, periodMs: Millis): Quota {
  const isFraction = events > 0 && events < 1;
  return isFraction
    ? { kind: 'window', events: 1, periodMs: periodMs / events }
    : { kind: 'window', events, periodMs };
}

/** A bucket of `events` that refills whole within `periodMs`; of fewer than one event, one that refills more slowly. */
export function bucketQuota(events: number, periodMs: Millis): Quota {
  const size = events > 0 ? Math.max(events, 1) : 0;
  return { kind: 'bucket', size, refillEveryMs: events > 0 ? periodMs / events : periodMs };
}
