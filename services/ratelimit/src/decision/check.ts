import type { CounterResult } from '../algorithms/algorithm.ts';
import type { Hit } from '../stores/counter-store.ts';
import { limitKey, secondsUntilReset } from './counter-key.ts';
import type { DescriptorLimit, Limit } from './find-limit.ts';
import type { DecisionOptions } from './options.ts';

export interface CheckResult extends CounterResult {
  /** The local cache has the counter as over its limit, so the store was not called. */
  readonly fromLocalCache?: boolean;
  /** The hits were not added, because another limit refused the request. */
  readonly withheld?: boolean;
  /** Nor do the statistics have them, in domains that are `atomic`. */
  readonly unrecorded?: boolean;
}

/** A descriptor of a request with its limit: made once for a decision, and filled in. */
export interface LimitCheck {
  /** While the store fails, the part of the limit that this process may allow. */
  limit: Limit;
  /** Hits that the request adds to the counter. */
  hit: Hit;
  /** Undefined until it is known. */
  result: CheckResult | undefined;
}

/** A descriptor without a rule, with one that was replaced, or with an unlimited one. */
interface Uncounted {
  readonly limit: Exclude<DescriptorLimit, Limit>;
  readonly hit?: undefined;
}

export type DescriptorCheck<T extends LimitCheck = LimitCheck> = T | Uncounted;

export function isLimited<T extends LimitCheck>(check: DescriptorCheck<T>): check is T {
  return check.hit !== undefined;
}

/** The result of a check. @throws TypeError before it is known. */
export function requireResult({ result }: LimitCheck): CheckResult {
  if (result === undefined) throw new TypeError('a limited descriptor has no result');
  return result;
}

/** Hits that are refused without the store: as if they came after the last that was allowed. */
export function toRefusedResult({ limit, hit }: LimitCheck): CheckResult {
  return {
    allowed: false,
    used: limit.rule.capacity + hit.addend,
    remaining: 0,
    resetSeconds: hit.secondsLeft,
  };
}

export interface HitOptions {
  readonly options: Pick<DecisionOptions, 'cacheKeyPrefix' | 'cacheKeyEscape' | 'expirationJitterMaxSeconds'>;
  /** A number in [0, 1), for the jitter of expiries. */
  readonly random: () => number;
}

/** Hits on the counter of a limit. */
export function createHit(
  { random, options }: HitOptions,
  limit: Limit,
  {
    domain,
    addend,
    nowSeconds,
  }: { readonly domain: string; readonly addend: number; readonly nowSeconds: number },
): Hit {
  const { rule, windows } = limit;
  const { unitSeconds } = rule;
  const window = windows?.at(nowSeconds);
  const windowSeconds = window === undefined ? unitSeconds : window.end - window.start;
  return {
    key: limitKey(options, domain, limit, nowSeconds),
    addend,
    capacity: rule.capacity,
    charge: rule.charge,
    unit: rule.unit ?? (unitSeconds === 1 ? 'second' : 'period'),
    secondsLeft: window === undefined ? secondsUntilReset(nowSeconds, unitSeconds) : window.end - nowSeconds,
    ttlSeconds: windowSeconds + Math.floor(random() * options.expirationJitterMaxSeconds),
    rate: rule.rate,
    lease: rule.lease,
  };
}
