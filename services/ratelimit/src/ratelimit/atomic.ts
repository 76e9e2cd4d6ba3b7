import type { ConditionalHit } from '../backends/all-or-none.ts';
import {
  type CountedDescriptor,
  type HitResult,
  type HitsContext,
  isOverInCache,
  overByLocalCache,
  toResult,
} from './hits.ts';
import type { LocalCache } from './local-cache.ts';

interface AtomicOptions {
  /** QUOTA_MODE: all limits are quotas. */
  readonly quotaMode: boolean;
  /** A descriptor without a limit counts as a quota that is never used up. */
  readonly hasFreeQuota: boolean;
  readonly nowSeconds: number;
}

/**
 * Adds the hits of one request of a domain that is `atomic`: all of them, or none when the request
 * is refused. A request that is not refused is counted as in any other domain.
 */
export async function addAllOrNone(
  { backend, localCache }: Pick<HitsContext, 'backend' | 'localCache'>,
  descriptors: readonly CountedDescriptor[],
  options: AtomicOptions,
): Promise<readonly HitResult[]> {
  const { nowSeconds } = options;
  const cached = descriptors.map(
    ({ hit }) => localCache !== undefined && hit.addend !== 0 && isOverInCache(localCache, hit, nowSeconds),
  );
  const hits = toConditionalHits(descriptors, options);
  const uncached = hits.filter((_, i) => cached[i] !== true);
  if (isRefusedByCache(hits, cached)) {
    return cached.map((isCached) => (isCached ? overByLocalCache : unknown));
  }
  if (uncached.length === 0) return descriptors.map(() => overByLocalCache);
  if (backend.addAllOrNone === undefined) throw new TypeError('the store cannot decide a request together');
  const forgets = localCache?.forgets;
  const { refused, counts } = await backend.addAllOrNone(uncached);
  const cache = localCache?.forgets === forgets ? localCache : undefined;
  let next = 0;
  return descriptors.map((descriptor, i) => {
    if (cached[i] === true) return overByLocalCache;
    const count = counts[next++] ?? 0;
    return refused
      ? toRefusedResult(descriptor, count, cache, nowSeconds)
      : toResult(descriptor, count, cache, nowSeconds);
  });
}

/** The store was not asked for the counter, because another limit refuses the request. */
const unknown: HitResult = { count: 0, fromLocalCache: false, over: false, withheld: true };

/**
 * Quotas refuse a request together, when all of them are used up. One in shadow mode never is, so
 * the others refuse nothing.
 */
function toConditionalHits(
  descriptors: readonly CountedDescriptor[],
  { quotaMode, hasFreeQuota }: AtomicOptions,
): readonly ConditionalHit[] {
  const isQuota = ({ limit }: CountedDescriptor): boolean => quotaMode || limit.quotaMode;
  const isFree =
    hasFreeQuota || descriptors.some((descriptor) => descriptor.limit.shadowMode && isQuota(descriptor));
  return descriptors.map((descriptor) => {
    const { limit, hit } = descriptor;
    const { capacity, shadowMode } = limit;
    if (shadowMode) return { ...hit, capacity, refuses: 'never' };
    if (!isQuota(descriptor)) return { ...hit, capacity, refuses: 'alone' };
    return { ...hit, capacity, refuses: isFree ? 'never' : 'together' };
  });
}

function isRefusedByCache(hits: readonly ConditionalHit[], cached: readonly boolean[]): boolean {
  if (hits.some(({ refuses }, i) => refuses === 'alone' && cached[i] === true)) return true;
  const together = hits.flatMap(({ refuses }, i) => (refuses === 'together' ? [cached[i]] : []));
  return together.length > 0 && together.every((isCached) => isCached === true);
}

/** A limit that is exceeded is shown as if the hits came after the last one that was allowed. */
function toRefusedResult(
  descriptor: CountedDescriptor,
  count: number,
  localCache: LocalCache | undefined,
  nowSeconds: number,
): HitResult {
  const { limit, hit } = descriptor;
  if (limit.rate !== undefined || count >= 0) {
    const result = toResult(descriptor, count, undefined, nowSeconds);
    return result.over ? result : { ...result, tookSlots: false, withheld: true };
  }
  // A smaller request may still fit, unless the limit is reached.
  if (-1 - count >= limit.capacity) localCache?.add(hit.key, nowSeconds, nowSeconds + hit.secondsLeft);
  return { count: limit.capacity + hit.addend, fromLocalCache: false, over: true };
}
