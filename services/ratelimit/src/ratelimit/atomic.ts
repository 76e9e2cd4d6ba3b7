import type { RuleNode } from '@tollgate/rules/rule-set';
import { isRefused, type Refuses } from '../backends/all-or-none.ts';
import {
  type CountedDescriptor,
  type HitResult,
  type HitsContext,
  isOverInCache,
  overByLocalCache,
  toResult,
} from './hits.ts';
import type { DescriptorLimit } from './limit.ts';
import type { LocalCache } from './local-cache.ts';

interface RefusalOptions {
  /** QUOTA_MODE: all limits are quotas, and so are descriptors without a limit. */
  readonly quotaMode: boolean;
  /** Of all descriptors of the request. */
  readonly limits: readonly DescriptorLimit[];
}

interface AtomicOptions extends RefusalOptions {
  readonly nowSeconds: number;
  /** Results that need no counter; undefined for a limit that has one. */
  readonly known?: readonly (HitResult | undefined)[];
}

/** Global shadow mode refuses no request. */
export function isAtomic(domain: RuleNode, { shadowMode }: { readonly shadowMode: boolean }): boolean {
  return domain.atomic === true && !shadowMode;
}

/**
 * Adds the hits of one request of a domain that is `atomic`: all of them, or those with `charge:
 * always` when the request is refused. A request that is not refused is counted as in any other
 * domain.
 */
export async function addAllOrNone(
  { backend, localCache }: Pick<HitsContext, 'backend' | 'localCache'>,
  descriptors: readonly CountedDescriptor[],
  options: AtomicOptions,
): Promise<readonly HitResult[]> {
  const { nowSeconds } = options;
  const known =
    options.known ??
    descriptors.map(({ hit }) =>
      localCache !== undefined && hit.addend !== 0 && isOverInCache(localCache, hit, nowSeconds)
        ? overByLocalCache
        : undefined,
    );
  if (isRefusedBy(known, descriptors, options)) {
    return await chargeRefused({ backend, localCache }, descriptors, { known, nowSeconds });
  }
  const kinds = getRefusals(descriptors, known, options);
  const hits = descriptors.flatMap(({ limit: { capacity, charge }, hit }, i) =>
    known[i] === undefined ? [{ ...hit, capacity, charge, refuses: kinds[i] ?? 'alone' }] : [],
  );
  if (hits.length === 0) return descriptors.map((_, i) => known[i] ?? withheld);
  if (backend.addAllOrNone === undefined) throw new TypeError('the store cannot decide a request together');
  const forgets = localCache?.forgets;
  const { refused, counts } = await backend.addAllOrNone(hits);
  const cache = localCache?.forgets === forgets ? localCache : undefined;
  let next = 0;
  return descriptors.map((descriptor, i) => {
    const result = known[i];
    if (result !== undefined) return refused ? withhold(result) : result;
    const count = counts[next++] ?? 0;
    return refused && descriptor.limit.charge !== 'always'
      ? toRefusedResult(descriptor, count, cache, nowSeconds)
      : toCountedResult(descriptor, count, cache, nowSeconds);
  });
}

interface KnownResults extends Pick<AtomicOptions, 'nowSeconds'> {
  readonly known: readonly (HitResult | undefined)[];
}

/** Adds the hits with `charge: always` of a request that is refused without the store. */
async function chargeRefused(
  { backend, localCache }: Pick<HitsContext, 'backend' | 'localCache'>,
  descriptors: readonly CountedDescriptor[],
  { known, nowSeconds }: KnownResults,
): Promise<readonly HitResult[]> {
  const charged = descriptors.filter(({ limit }, i) => known[i] === undefined && limit.charge === 'always');
  if (charged.length === 0) return known.map(withhold);
  const forgets = localCache?.forgets;
  const counts = await backend.add(charged.map(({ hit }) => ({ ...hit, lease: undefined })));
  const cache = localCache?.forgets === forgets ? localCache : undefined;
  return descriptors.map((descriptor, i) => {
    const at = charged.indexOf(descriptor);
    return at === -1 ? withhold(known[i]) : toCountedResult(descriptor, counts[at] ?? 0, cache, nowSeconds);
  });
}

/** Of usage that is reported after the response, a window without a hit left admits no more. */
function toCountedResult(
  descriptor: CountedDescriptor,
  count: number,
  localCache: LocalCache | undefined,
  nowSeconds: number,
): HitResult {
  const { limit, hit } = descriptor;
  const result = toResult(descriptor, count, localCache, nowSeconds);
  const isReached = limit.rate === undefined && limit.charge === 'always' && hit.addend === 0;
  return isReached && count >= limit.capacity ? { ...result, over: true } : result;
}

/** Another limit refuses the request, and the counter is not known. */
const withheld: HitResult = { count: 0, fromLocalCache: false, over: false, withheld: true };

/** A result of a request that is refused. */
function withhold(result: HitResult | undefined): HitResult {
  return result?.over === true ? result : withheld;
}

/** Whether a request is refused by the results that are known, whatever the others will be. */
export function isRefusedBy(
  known: readonly (HitResult | undefined)[],
  descriptors: readonly CountedDescriptor[],
  options: RefusalOptions,
): boolean {
  if (!known.some((result) => result?.over === true)) return false;
  const kinds = getRefusals(descriptors, known, options);
  return isRefused(
    kinds,
    (kind) => kind,
    (_, i) => known[i]?.over === true,
  );
}

/**
 * Quotas refuse a request together, when all of them are used up. One in shadow mode never is, so
 * the others refuse nothing; nor do they when one is known to be left.
 */
function getRefusals(
  descriptors: readonly CountedDescriptor[],
  known: readonly (HitResult | undefined)[],
  { quotaMode, limits }: RefusalOptions,
): readonly Refuses[] {
  const isQuota = ({ limit }: CountedDescriptor): boolean => quotaMode || limit.quotaMode;
  const hasFreeQuota =
    (quotaMode && limits.includes(undefined)) ||
    descriptors.some((one, i) => isQuota(one) && (one.limit.shadowMode || known[i]?.over === false));
  return descriptors.map((descriptor) => {
    if (descriptor.limit.shadowMode) return 'never';
    if (!isQuota(descriptor)) return 'alone';
    return hasFreeQuota ? 'never' : 'together';
  });
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
