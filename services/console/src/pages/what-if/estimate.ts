import type { Rule } from '@tollgate/rules/rule-set';

/** Hits of a key by minute. */
export interface KeyMinutes {
  /** Minutes since the epoch of the first number. */
  readonly firstMinute: number;
  readonly hits: readonly number[];
  readonly peakSecond: readonly number[];
}

/** The effect that a limit would have had. */
export interface Estimate {
  /** Most hits in a window of the limit. */
  readonly peak: number;
  readonly refused: number;
  /** False where hits by minute do not say it, and where a window began before the first one. */
  readonly isExact: boolean;
}

type Limit = Pick<Rule, 'requestsPerUnit' | 'unitSeconds' | 'windows' | 'rate' | 'unlimited' | 'quotaMode'>;

const secondsOfHour = 3600;

/**
 * Estimates how many hits of a key a limit would have refused. Undefined for concurrency limits,
 * and for quotas, which refuse together.
 */
export function estimate(limit: Limit, minutes: KeyMinutes): Estimate | undefined {
  const { requestsPerUnit, unitSeconds, rate } = limit;
  if (limit.unlimited) return { peak: Math.max(0, ...minutes.hits), refused: 0, isExact: true };
  if (limit.quotaMode || rate?.algorithm === 'concurrency') return undefined;
  if (rate?.algorithm === 'token_bucket') return drainBucket(rate, minutes);
  if (unitSeconds < 60) return countSeconds(requestsPerUnit, unitSeconds, minutes);
  if (rate?.algorithm === 'sliding_window') return slide(requestsPerUnit, unitSeconds, minutes);
  return countWindows(limit, minutes);
}

/** Fixed windows of a minute or more. */
function countWindows(
  { requestsPerUnit, unitSeconds, windows }: Limit,
  { firstMinute, hits }: KeyMinutes,
): Estimate {
  const sums = new Map<number, number>();
  for (const [index, count] of hits.entries()) {
    const second = (firstMinute + index) * 60;
    const start = windows?.at(second).start ?? second - (second % unitSeconds);
    sums.set(start, (sums.get(start) ?? 0) + count);
  }
  const counts = [...sums.values()];
  return {
    peak: Math.max(0, ...counts),
    refused: counts.reduce((sum, count) => sum + Math.max(0, count - requestsPerUnit), 0),
    isExact: unitSeconds <= secondsOfHour && unitSeconds % 60 === 0,
  };
}

/** A minute has refused what is beyond the limit in its busiest second, or in all its windows. */
function countSeconds(limit: number, seconds: number, { hits, peakSecond }: KeyMinutes): Estimate {
  const refused = hits.map((count, index) =>
    Math.max(0, (peakSecond[index] ?? 0) - limit, count - limit * (60 / seconds)),
  );
  return { peak: Math.max(0, ...peakSecond), refused: Math.round(sum(refused)), isExact: false };
}

function slide(limit: number, seconds: number, { hits }: KeyMinutes): Estimate {
  const length = Math.ceil(seconds / 60);
  const admitted: number[] = [];
  let peak = 0;
  for (const [index, count] of hits.entries()) {
    peak = Math.max(peak, sum(hits.slice(Math.max(0, index - length + 1), index + 1)));
    const before = sum(admitted.slice(Math.max(0, index - length + 1)));
    admitted.push(Math.min(count, Math.max(0, limit - before)));
  }
  return { peak, refused: sum(hits) - sum(admitted), isExact: false };
}

function drainBucket(
  { limit, periodSeconds, burst }: NonNullable<Rule['rate']>,
  minutes: KeyMinutes,
): Estimate {
  const perMinute = (limit * 60) / periodSeconds;
  let tokens = burst;
  let refused = 0;
  for (const [index, count] of minutes.hits.entries()) {
    const allowed = Math.min(count, Math.floor(tokens + perMinute));
    const ofSecond = burst + Math.ceil(limit / periodSeconds);
    refused += Math.max(count - allowed, (minutes.peakSecond[index] ?? 0) - ofSecond, 0);
    tokens = Math.min(burst, tokens + perMinute - allowed);
  }
  return { peak: Math.max(0, ...minutes.hits), refused, isExact: false };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
