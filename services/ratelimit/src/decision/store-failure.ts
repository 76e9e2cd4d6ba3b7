import { isAppError } from '@tollgate/kit/errors';
import { FailureLog } from '@tollgate/kit/logger';
import type { Rate, RuleNode, StoreFailurePolicy } from '@tollgate/rules/rule-set';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { MemoryStore } from '../stores/memory/memory-store.ts';
import { addAllOrNone, isAtomic, isRefusedByKnown } from './atomic.ts';
import { type CheckResult, type LimitCheck, toRefusedResult } from './check.ts';
import type { DecisionContext } from './decide.ts';
import type { DescriptorLimit } from './find-limit.ts';
import { addHits, findInCache, withoutHits } from './hits.ts';

/** About 25 MB (as much again with other algorithms): an outage must not exhaust the memory. */
const maxLocalCounters = 100_000;

/** Until then, a Redis that is available again has been reconnected. */
const maxRetrySeconds = 5;

/** State of failure policies that requests share. */
export interface StoreFailures {
  /** Policy of limits that have none of their own or of their domain; undefined fails the call. */
  readonly fallback: StoreFailurePolicy | undefined;
  /** Parts of a limit: one for each process that counts. */
  readonly shares: number;
  /**
   * Counters of the policy `local`. They are kept after an outage: the next one in the same window
   * goes on from them.
   */
  readonly counters: MemoryStore;
  readonly log: FailureLog;
}

export function createStoreFailures(
  { onStoreFailure, onStoreFailureReplicas }: Pick<Settings, 'onStoreFailure' | 'onStoreFailureReplicas'>,
  { logger, nowMs }: Pick<Context, 'logger' | 'nowMs'>,
): StoreFailures {
  return {
    fallback: onStoreFailure === 'fail' ? undefined : onStoreFailure,
    shares: onStoreFailureReplicas,
    counters: new MemoryStore({ nowMs, maxCounters: maxLocalCounters }),
    log: new FailureLog({ logger, message: 'store unavailable, answering by failure policy' }),
  };
}

type PolicyContext = Pick<
  DecisionContext,
  'localCache' | 'storeFailures' | 'stats' | 'options' | 'stopIncrementWhenOverLimit'
>;

/**
 * Decides by failure policies what the store could not count. Counters that the local cache has as
 * over their limit need no policy. Returns the policies in use, such as `allow` or `deny,local`;
 * undefined for none.
 *
 * @throws the error of the store when a descriptor that needs it has no policy.
 */
export async function decideByPolicy(
  context: PolicyContext,
  checks: readonly LimitCheck[],
  failed: {
    readonly error: unknown;
    readonly domain: RuleNode;
    /** Limits of all descriptors of the request. */
    readonly limits: readonly DescriptorLimit[];
    readonly nowSeconds: number;
  },
): Promise<string | undefined> {
  const { localCache, storeFailures, stats, options } = context;
  const { error, domain, limits, nowSeconds } = failed;
  for (const check of checks) check.result = localCache && findInCache(localCache, check, nowSeconds);
  const undecided = checks.filter(({ result }) => result === undefined);
  const policies = undecided.map(
    ({ limit }) => limit.rule.onStoreFailure ?? domain.onStoreFailure ?? storeFailures?.fallback,
  );
  const isStoreFailure = isAppError(error) && error.code === 'backend_failure';
  if (storeFailures === undefined || policies.includes(undefined) || !isStoreFailure) {
    stats.backendError.value += 1;
    throw error;
  }
  for (const [i, check] of undecided.entries()) check.result = decideByOnePolicy(policies[i], check);
  const refusal = { quotaMode: options.quotaMode, limits };
  const { stopIncrementWhenOverLimit: stops } = context;
  const withholds = stops && !options.shadowMode && isRefusedByKnown(checks, refusal);
  for (const check of undecided)
    if (check.result === undefined) takeShare(check, { shares: storeFailures.shares, withholds });
  const store = { store: storeFailures.counters, stopIncrementWhenOverLimit: stops };
  if (isAtomic(domain, options)) await addAllOrNone(store, checks, { ...refusal, nowSeconds });
  else
    await addHits(
      store,
      undecided.filter(({ result }) => result === undefined),
      nowSeconds,
    );
  for (const policy of policies) if (policy !== undefined) stats.storeFailure[policy].value += 1;
  const inUse = (['allow', 'deny', 'local'] as const).filter((policy) => policies.includes(policy));
  // Meanwhile other requests may have found all counters over their limit.
  if (inUse.length === 0) return undefined;
  const storeFailure = inUse.join(',');
  storeFailures.log.log(error, { policy: storeFailure, domain: domain.composite });
  return storeFailure;
}

/** Replaces the limit by the part of it that one process may allow; the key is the same. */
function takeShare(
  check: LimitCheck,
  { shares, withholds }: { readonly shares: number; readonly withholds: boolean },
): void {
  const { limit, hit } = check;
  const share = (count: number): number => Math.ceil(count / shares);
  const rate = hit.rate && toRateShare(hit.rate, share);
  const capacity = share(limit.rule.capacity);
  check.limit = { ...limit, rule: { ...limit.rule, capacity, rate } };
  check.hit = { ...(withholds ? withoutHits(hit) : hit), capacity, rate };
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

/** Undefined where counters of the process decide. */
function decideByOnePolicy(
  policy: StoreFailurePolicy | undefined,
  check: LimitCheck,
): CheckResult | undefined {
  const { limit, hit } = check;
  if (policy === 'local') return undefined;
  // A refund is never over its limit.
  if (policy === 'allow' || hit.addend < 0)
    return { allowed: true, used: 0, remaining: limit.rule.capacity, resetSeconds: hit.secondsLeft };
  return { ...toRefusedResult(check), resetSeconds: Math.min(hit.secondsLeft, maxRetrySeconds) };
}
