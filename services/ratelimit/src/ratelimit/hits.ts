import type { Rate } from '@tollgate/rules/rule-set';
import { algorithms, readResult } from '../algorithms/registry.ts';
import type { CounterBackend, Hit } from '../backends/counter-backend.ts';
import type { RuleStats } from '../stats/registry.ts';
import type { Limit } from './limit.ts';
import type { LocalCache } from './local-cache.ts';

export interface LimitedDescriptor {
  readonly limit: Limit;
  readonly hit: Hit;
  readonly stats: RuleStats;
}

export type CountedDescriptor = Pick<LimitedDescriptor, 'limit' | 'hit'>;

export interface HitResult {
  /** The counter after the hits were added; meaningless when `fromLocalCache`. */
  readonly count: number;
  /** The local cache has the counter as over its limit, so the backend was not called. */
  readonly fromLocalCache: boolean;
  readonly over: boolean;
  /** Whole seconds, at least 1; undefined where the window says it. */
  readonly resetSeconds?: number;
  /** Of a concurrency limit: the hits are in use until a refund or time releases them. */
  readonly tookSlots?: boolean;
  /** The hits were not added, because another limit of an atomic domain refused the request. */
  readonly withheld?: boolean;
}

export interface HitsContext {
  readonly backend: Pick<CounterBackend, 'add' | 'read' | 'addAllOrNone'>;
  /** Absent when LOCAL_CACHE_SIZE_IN_BYTES is 0. */
  readonly localCache?: LocalCache | undefined;
  /**
   * STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: a rejected request adds nothing to its other limits.
   */
  readonly stopIncrementWhenOverLimit: boolean;
}

export const overByLocalCache: HitResult = { count: 0, fromLocalCache: true, over: true };

/**
 * Adds the hits of one request: looks up the local cache, then calls the backend for the other
 * counters.
 */
export async function addHits(
  context: HitsContext,
  descriptors: readonly CountedDescriptor[],
  nowSeconds: number,
): Promise<readonly HitResult[]> {
  const { backend, localCache } = context;
  const cached = localCache && descriptors.map(({ hit }) => isOverInCache(localCache, hit, nowSeconds));
  const uncached = cached === undefined ? descriptors : descriptors.filter((_, i) => cached[i] !== true);
  if (uncached.length === 0) {
    return descriptors.map(() => overByLocalCache);
  }
  const hits = context.stopIncrementWhenOverLimit
    ? await withholdHits(backend, uncached, uncached.length < descriptors.length)
    : uncached.map(({ hit }) => hit);
  const forgets = localCache?.forgets;
  const counts = await backend.add(hits);
  const cache = localCache?.forgets === forgets ? localCache : undefined;
  let next = 0;
  return descriptors.map((descriptor, i) => {
    if (cached?.[i] === true) return overByLocalCache;
    const hit = hits[next];
    const count = counts[next++] ?? 0;
    const isWithheld = hit !== undefined && hit !== descriptor.hit;
    return toResult(isWithheld ? { limit: descriptor.limit, hit } : descriptor, count, cache, nowSeconds);
  });
}

/** The results that no further hits would have; changes no counter. */
export async function peekHits(
  backend: HitsContext['backend'],
  descriptors: readonly CountedDescriptor[],
): Promise<readonly HitResult[]> {
  const hits = descriptors.map(({ hit }) => ({ ...hit, addend: 0 }));
  const rated = hits.filter(({ rate }) => rate !== undefined);
  // Adding 0 would create the counter of a window; of the others, it only reads.
  const [windows, rates] = await Promise.all([
    backend.read(hits.filter(({ rate }) => rate === undefined)),
    rated.length === 0 ? [] : backend.add(rated),
  ]);
  const next = { window: 0, rate: 0 };
  return descriptors.map(({ limit, hit }) =>
    hit.rate === undefined
      ? toResult({ limit, hit }, windows[next.window++] ?? 0, undefined, 0)
      : toResult({ limit, hit: { ...hit, addend: 0 } }, rates[next.rate++] ?? 0, undefined, 0),
  );
}

/** A refund may bring the counter below its limit, so the cache forgets it. */
export function isOverInCache(
  localCache: LocalCache,
  { key, addend, rate }: Hit,
  nowSeconds: number,
): boolean {
  if (rate !== undefined) return false;
  if (addend >= 0) return localCache.has(key, nowSeconds);
  localCache.delete(key);
  return false;
}

/**
 * When a limit of the request is exceeded, the other counters are only kept alive. Refunds and hits
 * of limits with `charge: always` are applied in any case.
 */
async function withholdHits(
  backend: HitsContext['backend'],
  descriptors: readonly CountedDescriptor[],
  anyOver: boolean,
): Promise<readonly Hit[]> {
  const hits = descriptors.map(({ hit }) => hit);
  if (anyOver) {
    return descriptors.map(withoutHits);
  }
  const states = await peekHits(backend, descriptors);
  const exceeds = descriptors.map(
    ({ limit, hit }, i) => hit.addend >= 0 && (states[i]?.count ?? 0) + hit.addend > limit.capacity,
  );
  return exceeds.includes(true)
    ? descriptors.map((one, i) => (exceeds[i] === true ? one.hit : withoutHits(one)))
    : hits;
}

export function withoutHits({ limit, hit }: CountedDescriptor): Hit {
  return hit.addend < 0 || limit.charge === 'always' ? hit : { ...hit, addend: 0 };
}

export function toResult(
  { limit, hit }: CountedDescriptor,
  count: number,
  localCache: LocalCache | undefined,
  nowSeconds: number,
): HitResult {
  if (limit.rate !== undefined) return toRateResult(limit, limit.rate, hit, count);
  const over = hit.addend >= 0 && count > limit.capacity;
  if (over) {
    localCache?.add(hit.key, nowSeconds, nowSeconds + hit.secondsLeft);
  }
  return { count, fromLocalCache: false, over };
}

/** A response has 32 bits for it. 136 years, of a bucket with a large burst and a low rate. */
const maxResetSeconds = 0xffff_ffff;

/** A refused hit counts as if it came after the last one that was allowed. */
function toRateResult(
  { capacity }: Limit,
  rate: Rate,
  { addend, secondsLeft }: Hit,
  taken: number,
): HitResult {
  const { remaining, retrySeconds } = readResult(taken);
  if (retrySeconds > 0) {
    const resetSeconds = Math.min(retrySeconds, maxResetSeconds);
    return { count: capacity + addend, fromLocalCache: false, over: true, resetSeconds };
  }
  const count = capacity - remaining;
  const algorithm = algorithms[rate.algorithm];
  const resetSeconds = Math.min(
    Math.max(1, algorithm.getResetSeconds({ rate, used: count, secondsLeft })),
    maxResetSeconds,
  );
  const tookSlots = algorithm.holdsSlots && addend > 0;
  return { count, fromLocalCache: false, over: false, resetSeconds, ...(tookSlots && { tookSlots }) };
}
