import type { CounterResult } from '../algorithms/algorithm.ts';
import type { CounterStore, Hit } from '../stores/counter-store.ts';
import { type CheckResult, type LimitCheck, toRefusedResult } from './check.ts';
import type { LocalCache } from './local-cache.ts';

export interface HitsContext {
  readonly store: Pick<CounterStore, 'take' | 'peek' | 'takeAllOrNone'>;
  /** Absent when LOCAL_CACHE_SIZE_IN_BYTES is 0. */
  readonly localCache?: LocalCache | undefined;
  /**
   * STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: a rejected request adds nothing to its other limits.
   */
  readonly stopIncrementWhenOverLimit: boolean;
}

/**
 * Adds the hits of one request: looks up the local cache, then calls the store for the other
 * counters.
 */
export async function addHits(
  context: HitsContext,
  checks: readonly LimitCheck[],
  nowSeconds: number,
): Promise<void> {
  const { store, localCache } = context;
  const uncached =
    localCache === undefined
      ? checks
      : checks.filter((check) => {
          check.result = findInCache(localCache, check, nowSeconds);
          return check.result === undefined;
        });
  if (uncached.length === 0) return;
  const hits = context.stopIncrementWhenOverLimit
    ? await withholdHits(store, uncached, uncached.length < checks.length)
    : uncached.map(({ hit }) => hit);
  const forgets = localCache?.forgets;
  const results = await store.take(hits);
  const cache = localCache?.forgets === forgets ? localCache : undefined;
  for (let i = 0; i < uncached.length; i += 1) {
    const check = uncached[i];
    const result = results[i];
    if (check === undefined) continue;
    check.result = result && hits[i] !== check.hit ? { ...result, withheld: true } : result;
    if (cache !== undefined) rememberRefusal(cache, check, nowSeconds);
  }
}

/** The results that no further hits would have, in the order of the checks; changes no counter. */
export function peekHits(
  store: Pick<CounterStore, 'peek'>,
  checks: readonly Pick<LimitCheck, 'hit'>[],
): Promise<readonly CounterResult[]> {
  return store.peek(checks.map(({ hit }) => hit));
}

/**
 * The result of hits on a counter that the cache has as over its limit. A refund may bring the
 * counter below its limit, so the cache forgets it.
 */
export function findInCache(
  localCache: LocalCache,
  check: LimitCheck,
  nowSeconds: number,
): CheckResult | undefined {
  const { key, addend, rate } = check.hit;
  if (rate !== undefined) return undefined;
  if (addend < 0) {
    localCache.delete(key);
    return undefined;
  }
  return localCache.has(key, nowSeconds) ? { ...toRefusedResult(check), fromLocalCache: true } : undefined;
}

/** Remembers a window that is over its limit, unless fewer hits may still fit. */
export function rememberRefusal(
  localCache: LocalCache,
  { limit, hit, result }: LimitCheck,
  nowSeconds: number,
): void {
  if (result === undefined || result.allowed || hit.rate !== undefined) return;
  if (result.remaining === 0 && result.used > limit.rule.capacity)
    localCache.add(hit.key, nowSeconds, nowSeconds + hit.secondsLeft);
}

/**
 * When a limit of the request is exceeded, the other counters are only kept alive. Refunds and hits
 * of limits with `charge: always` are applied in any case.
 */
async function withholdHits(
  store: HitsContext['store'],
  checks: readonly LimitCheck[],
  anyOver: boolean,
): Promise<readonly Hit[]> {
  if (anyOver) return checks.map(({ hit }) => withoutHits(hit));
  const states = await peekHits(store, checks);
  const exceeds = checks.map(
    ({ hit }, i) => hit.addend >= 0 && (states[i]?.used ?? 0) + hit.addend > hit.capacity,
  );
  const anyExceeds = exceeds.includes(true);
  return checks.map(({ hit }, i) => (anyExceeds && exceeds[i] !== true ? withoutHits(hit) : hit));
}

export function withoutHits(hit: Hit): Hit {
  return hit.addend < 0 || hit.charge === 'always' ? hit : { ...hit, addend: 0 };
}
