import { type Millis, parseDuration } from '@tollgate/kit/time';

/** Limit of events: a fixed window aligned to the clock, or a leaky bucket. */
export type Quota = { readonly kind: 'window'; readonly events: number; readonly periodMs: Millis } | Bucket;

/** Holds `size` events, and drains by one event per time. */
export interface Bucket {
  readonly kind: 'bucket';
  readonly size: number;
  readonly refillEveryMs: Millis;
}

const hourMs = 3_600_000;

/**
 * Parses `N` (N events per hour of the clock) or `N/duration` (a bucket of N, refilled with one
 * event per duration); undefined for any other text.
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

/** Fewer than one event per period is one event per several periods. */
function windowQuota(events: number, periodMs: Millis): Quota {
  const isFraction = events > 0 && events < 1;
  return isFraction
    ? { kind: 'window', events: 1, periodMs: periodMs / events }
    : { kind: 'window', events, periodMs };
}
