import { type RateName, rateNames, type Totals } from './replica-metrics.ts';

/** Requests per second, summed over replicas; undefined while no replica says so. */
type Rates = Readonly<Record<RateName, number | undefined>>;

/** A point of the charts. */
export interface Point extends Rates {
  readonly atMs: number;
  /** Durations of decisions in milliseconds; undefined without requests. */
  readonly p50: number | undefined;
  readonly p99: number | undefined;
}

/** Counts of a process between two of its samples. A restart counts from 0. */
export interface Difference {
  readonly seconds: number;
  readonly counts: Totals['counts'];
  readonly buckets: Totals['buckets'];
}

export function subtract(now: Totals, before: Totals, seconds: number): Difference {
  const isRestarted = now.startedAt !== before.startedAt;
  const counts = { ...now.counts };
  const buckets = new Map(now.buckets);
  if (!isRestarted) {
    for (const name of rateNames) counts[name] = Math.max(0, now.counts[name] - before.counts[name]);
    for (const [bound, count] of now.buckets)
      buckets.set(bound, Math.max(0, count - (before.buckets.get(bound) ?? 0)));
  }
  return { seconds, counts, buckets };
}

/**
 * The rates of all replicas. With limiters, the auth servers' allowed requests are not counted
 * again: they go on to a limiter.
 */
export function toPoint(
  atMs: number,
  {
    limiters,
    authServers,
  }: { readonly limiters: readonly Difference[]; readonly authServers: readonly Difference[] },
): Point {
  const all = [...limiters, ...authServers];
  const rate = (differences: readonly Difference[], name: RateName) =>
    differences.length === 0
      ? undefined
      : differences.reduce((sum, { counts, seconds }) => sum + counts[name] / seconds, 0);
  const checked = rate(authServers, 'allowed');
  const decided = rate(limiters, 'allowed');
  const refused = rate(limiters, 'refused');
  const buckets = sumBuckets(all.map((difference) => difference.buckets));
  return {
    atMs,
    allowed: checked === undefined ? decided : Math.max(decided ?? 0, checked - (refused ?? 0)),
    refused,
    denied: rate(authServers, 'denied'),
    errors: rate(all, 'errors'),
    p50: toMilliseconds(quantile(buckets, 0.5)),
    p99: toMilliseconds(quantile(buckets, 0.99)),
  };
}

/** Sums the bounds that all histograms have: a sum of others would not be cumulative. */
function sumBuckets(histograms: readonly Difference['buckets'][]): ReadonlyMap<number, number> {
  const [first, ...others] = histograms.filter(({ size }) => size > 0);
  const sums = new Map<number, number>();
  for (const [bound, count] of first ?? [])
    if (others.every((other) => other.has(bound)))
      sums.set(
        bound,
        others.reduce((sum, other) => sum + (other.get(bound) ?? 0), count),
      );
  return sums;
}

function toMilliseconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

/** As `histogram_quantile` of Prometheus: linear within a bucket, its lower bound in the last. */
export function quantile(buckets: ReadonlyMap<number, number>, q: number): number | undefined {
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  const rank = q * total;
  let lower = 0;
  let below = 0;
  for (const [bound, count] of sorted) {
    if (count >= rank) {
      if (bound === Number.POSITIVE_INFINITY) return lower;
      return count === below ? bound : lower + ((bound - lower) * (rank - below)) / (count - below);
    }
    lower = bound;
    below = count;
  }
  return lower;
}
