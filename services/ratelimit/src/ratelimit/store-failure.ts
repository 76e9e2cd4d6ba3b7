import { isAppError } from '@tollgate/kit/errors';
import { FailureLog } from '@tollgate/kit/logger';
import type { Rate, RuleNode, StoreFailurePolicy } from '@tollgate/rules/rule-set';
import { MemoryBackend } from '../backends/memory.ts';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { addAllOrNone, isAtomic, isRefusedBy } from './atomic.ts';
import {
  addHits,
  type CountedDescriptor,
  type HitResult,
  type HitsContext,
  isOverInCache,
  overByLocalCache,
  withoutHits,
} from './hits.ts';
import type { DescriptorLimit } from './limit.ts';
import type { DecisionContext } from './service.ts';

/** About 25 MB (as much again with other algorithms): an outage must not exhaust the memory. */
const maxLocalCounters = 100_000;

/** Until then, a Redis that is available again has been reconnected. */
const maxRetrySeconds = 5;

/** What failure policies share between requests. */
export interface StoreFailures {
  /** Of limits without a policy of their own or of their domain; undefined fails the call. */
  readonly fallback: StoreFailurePolicy | undefined;
  /** Parts of a limit: one for each process that counts. */
  readonly shares: number;
  /**
   * Counters of the policy `local`. They are kept after an outage: the next one in the same window
   * goes on from them.
   */
  readonly counters: MemoryBackend;
  readonly log: FailureLog;
}

export function createStoreFailures(
  {
    onStoreFailure,
    onStoreFailureReplicas,
    workers,
  }: Pick<Settings, 'onStoreFailure' | 'onStoreFailureReplicas' | 'workers'>,
  { logger, nowMs }: Pick<Context, 'logger' | 'nowMs'>,
): StoreFailures {
  return {
    fallback: onStoreFailure === 'fail' ? undefined : onStoreFailure,
    shares: onStoreFailureReplicas * workers,
    counters: new MemoryBackend({ nowMs, maxCounters: maxLocalCounters }),
    log: new FailureLog({ logger, message: 'store unavailable, answering by failure policy' }),
  };
}

type PolicyContext = Pick<
  DecisionContext,
  'localCache' | 'storeFailures' | 'stats' | 'options' | 'stopIncrementWhenOverLimit'
>;

interface PolicyResults<T> {
  /** With the capacity by which they were decided. */
  readonly limited: readonly T[];
  readonly results: readonly HitResult[];
  /** The policies in use, such as `allow` or `deny,local`; undefined for none. */
  readonly storeFailure: string | undefined;
}

/**
 * Decides by failure policies what the store could not count. Counters that the local cache has as
 * over their limit need no policy.
 *
 * @throws the error of the store when a descriptor that needs it has no policy.
 */
export async function decideByPolicy<T extends CountedDescriptor>(
  context: PolicyContext,
  limited: readonly T[],
  failed: {
    readonly error: unknown;
    readonly domain: RuleNode;
    /** Of all descriptors of the request. */
    readonly limits: readonly DescriptorLimit[];
    readonly nowSeconds: number;
  },
): Promise<PolicyResults<T>> {
  const { localCache, storeFailures, stats } = context;
  const { error, domain, limits, nowSeconds } = failed;
  const policies = limited.map(({ limit, hit }) =>
    localCache !== undefined && isOverInCache(localCache, hit, nowSeconds)
      ? 'cached'
      : (limit.onStoreFailure ?? domain.onStoreFailure ?? storeFailures?.fallback),
  );
  const isStoreFailure = isAppError(error) && error.code === 'backend_failure';
  if (storeFailures === undefined || policies.includes(undefined) || !isStoreFailure) {
    stats.backendError.value += 1;
    throw error;
  }
  const known = limited.map((descriptor, i) => decideByOnePolicy(policies[i], descriptor));
  const refusal = { quotaMode: context.options.quotaMode, limits };
  const { stopIncrementWhenOverLimit: stops, options } = context;
  const withholds = stops && !options.shadowMode && isRefusedBy(known, limited, refusal);
  const descriptors = limited.map((descriptor, i) =>
    known[i] === undefined ? toShare(descriptor, { shares: storeFailures.shares, withholds }) : descriptor,
  );
  const store = { backend: storeFailures.counters, stopIncrementWhenOverLimit: stops };
  const results = isAtomic(domain, options)
    ? await addAllOrNone(store, descriptors, { ...refusal, nowSeconds, known })
    : await addUnknown(store, descriptors, { nowSeconds, known });
  for (const policy of policies) {
    if (policy !== undefined && policy !== 'cached') stats.storeFailure[policy].value += 1;
  }
  const inUse = (['allow', 'deny', 'local'] as const).filter((policy) => policies.includes(policy));
  // Meanwhile other requests may have found all counters over their limit.
  if (inUse.length === 0) return { limited: descriptors, results, storeFailure: undefined };
  const storeFailure = inUse.join(',');
  storeFailures.log.log(error, { policy: storeFailure, domain: domain.composite });
  return { limited: descriptors, results, storeFailure };
}

/** Adds the hits of limits whose result is not known. */
async function addUnknown(
  store: HitsContext,
  descriptors: readonly CountedDescriptor[],
  { known, nowSeconds }: { readonly known: readonly (HitResult | undefined)[]; readonly nowSeconds: number },
): Promise<readonly HitResult[]> {
  const added = await addHits(
    store,
    descriptors.filter((_, i) => known[i] === undefined),
    nowSeconds,
  );
  let next = 0;
  return known.map((result) => result ?? added[next++] ?? allowed);
}

/** The descriptor with the part of its limit that one process may allow; the key is the same. */
function toShare<T extends CountedDescriptor>(
  descriptor: T,
  { shares, withholds }: { readonly shares: number; readonly withholds: boolean },
): T {
  const { limit, hit } = descriptor;
  const share = (count: number): number => Math.ceil(count / shares);
  const rate = hit.rate && toRateShare(hit.rate, share);
  return {
    ...descriptor,
    limit: { ...limit, capacity: share(limit.capacity), rate },
    hit: { ...(withholds ? withoutHits({ limit, hit }) : hit), rate },
  };
}

function toRateShare(rate: Rate, share: (count: number) => number): Rate {
  const { limit, burst, maxDebt } = rate;
  return {
    ...rate,
    limit: share(limit),
    burst: share(burst),
    maxDebt: typeof maxDebt === 'number' ? share(maxDebt) : maxDebt,
  };
}

const allowed: HitResult = { count: 0, fromLocalCache: false, over: false };

/** Undefined where counters of the process decide. */
function decideByOnePolicy(
  policy: StoreFailurePolicy | 'cached' | undefined,
  { limit, hit }: CountedDescriptor,
): HitResult | undefined {
  if (policy === 'local') return undefined;
  if (policy === 'cached') return overByLocalCache;
  // A refund is never over its limit.
  if (policy === 'allow' || hit.addend < 0) return allowed;
  return {
    count: limit.capacity + hit.addend,
    fromLocalCache: false,
    over: true,
    resetSeconds: Math.min(hit.secondsLeft, maxRetrySeconds),
  };
}
