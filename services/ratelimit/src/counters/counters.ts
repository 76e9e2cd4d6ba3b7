import type { Logger } from '@tollgate/kit/logger';
import { formatPeriod } from '@tollgate/rules/windows';
import type { CounterBackend } from '../backends/counter-backend.ts';
import { errors } from '../errors.ts';
import { type HitResult, type LimitedDescriptor, peekHits } from '../ratelimit/hits.ts';
import { type DescriptorLimit, entriesKey, findLimits, type Limit } from '../ratelimit/limit.ts';
import type { RateLimitRequest } from '../ratelimit/request.ts';
import { createHit, type DecisionContext } from '../ratelimit/service.ts';
import type { Caller } from './admin-server.ts';
import { makeChange } from './audit.ts';
import type { CounterChanges } from './changes.ts';
import { type PublicOverride, toPublic } from './overrides.ts';
import type { parsePrefix } from './requests.ts';

/** What the counter API works with. */
export interface CounterContext {
  readonly decisions: DecisionContext;
  /** The store itself, whose counts include what replicas have reserved. */
  readonly backend: CounterBackend;
  readonly changes: CounterChanges;
  readonly logger: Logger;
}

type Target = Pick<LimitedDescriptor, 'limit' | 'hit'>;

/** What a counter has, and the limit that applies to it. */
interface CounterState {
  /** The metric path of the rule; empty for a limit that the descriptor has itself. */
  readonly rule: string;
  readonly name?: string;
  readonly algorithm: string;
  /** Or its period: `5m`. */
  readonly unit: string;
  readonly requestsPerUnit: number;
  /** Of token buckets. */
  readonly burst?: number;
  readonly shadowMode: boolean;
  readonly key: string;
  readonly count: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  /** The limit is that of an override. */
  readonly override?: PublicOverride;
}

interface DescriptorState {
  readonly entries: RateLimitRequest['descriptors'][number]['entries'];
  /** `none`: no rule matches, or another one replaces it. */
  readonly outcome: 'limited' | 'unlimited' | 'none';
  readonly counter?: CounterState;
}

/** The counters of a request. Changes nothing. */
export async function peekCounters(
  { decisions, backend }: CounterContext,
  request: RateLimitRequest,
): Promise<readonly DescriptorState[]> {
  const limits = findRequestLimits(decisions, request);
  const targets = toTargets(decisions, request, limits);
  const results = await peekHits(backend, targets);
  let next = 0;
  return request.descriptors.map(({ entries }, i) => {
    const limit = limits[i];
    const plain = entries.map(({ key, value }) => ({ key, value }));
    if (limit?.kind !== 'limited') {
      return { entries: plain, outcome: limit === undefined ? 'none' : 'unlimited' };
    }
    const state = toState(targets[next], results[next]);
    next += 1;
    const override = decisions.overrides?.find(request.domain, limit.keyEntries);
    const counter = override === undefined ? state : { ...state, override: toPublic(override) };
    return { entries: plain, outcome: 'limited', counter };
  });
}

/** More than any counter holds. */
const allHits = Number.MAX_SAFE_INTEGER;

/** A counter that was reset, and what it had. */
interface ResetCounter {
  readonly key: string;
  readonly count: number;
}

/**
 * Takes all hits back from the counters of a request, which any store does without a race with
 * hits that arrive meanwhile. Token buckets are full then.
 *
 * @throws AppError `descriptor_not_limited` when none of them has a counter.
 */
export async function resetCounters(
  context: CounterContext,
  request: RateLimitRequest,
  caller: Caller,
): Promise<readonly ResetCounter[]> {
  const { decisions, backend } = context;
  const targets = toTargets(decisions, request, findRequestLimits(decisions, request));
  if (targets.length === 0) throw errors.descriptor_not_limited();
  const before = await peekHits(backend, targets);
  const keys = targets.map(({ hit }) => hit.key);
  await makeChange(context, {
    caller,
    describe: () => ({ action: 'reset', domain: request.domain, keys }),
    announcement: { keys },
    make: () => backend.add(targets.map(({ hit }) => ({ ...hit, addend: -allHits }))),
  });
  return keys.map((key, i) => ({ key, count: before[i]?.count ?? 0 }));
}

/** The counters that were deleted. */
interface PrefixReset {
  readonly prefix: string;
  readonly deleted: number;
}

/**
 * Deletes all counters below entries. Keys escape nothing, so `a` is also the beginning of `a_b`:
 * counters of other values may be among them.
 *
 * @throws AppError `store_lacks_feature` with memcached, which lists no keys.
 */
export async function resetByPrefix(
  context: CounterContext,
  { domain, entries, lastKey }: ReturnType<typeof parsePrefix>,
  caller: Caller,
): Promise<PrefixReset> {
  const { shared } = context.backend;
  if (shared === undefined) {
    throw errors.store_lacks_feature({ message: 'memcached lists no keys: reset exact descriptors' });
  }
  const start = entriesKey(context.decisions.options.cacheKeyPrefix, domain, entries);
  const prefix = lastKey === undefined ? start : `${start}${lastKey}_`;
  const deleted = await makeChange(context, {
    caller,
    describe: (count) => ({ action: 'reset by prefix', domain, prefix, deleted: count }),
    announcement: { prefix },
    make: () => shared.deleteByPrefix(prefix),
  });
  return { prefix, deleted };
}

/** @throws AppError when no rules are loaded. */
export function findRequestLimits(
  { rules, overrides, options }: DecisionContext,
  { domain, descriptors }: RateLimitRequest,
): readonly DescriptorLimit[] {
  const current = rules();
  if (current === undefined) throw errors.no_configuration();
  const root = current.domains.get(domain);
  if (root === undefined) return descriptors.map(() => undefined);
  const limits = findLimits(root, descriptors, options.calendarMonths);
  return overrides?.apply(domain, limits) ?? limits;
}

function toTargets(
  context: DecisionContext,
  { domain }: RateLimitRequest,
  limits: readonly DescriptorLimit[],
): readonly Target[] {
  const now = context.nowSeconds();
  return limits.flatMap((limit) =>
    limit?.kind === 'limited' ? [{ limit, hit: createHit(context, domain, limit, 0, now) }] : [],
  );
}

function toState(target: Target | undefined, result: HitResult | undefined): CounterState {
  if (target === undefined || result === undefined) {
    throw new TypeError('a limited descriptor has no result');
  }
  const { limit, hit } = target;
  const { count } = result;
  return {
    ...describeLimit(limit),
    key: hit.key,
    count,
    remaining: Math.max(0, limit.capacity - Math.max(0, count)),
    resetSeconds: result.resetSeconds ?? hit.secondsLeft,
  };
}

function describeLimit({ name, rate, unit, unitSeconds, requestsPerUnit, shadowMode, metricPath }: Limit) {
  return {
    rule: metricPath.join('.'),
    ...(name !== '' && { name }),
    algorithm: rate?.algorithm ?? 'fixed_window',
    unit: unit ?? formatPeriod(unitSeconds),
    requestsPerUnit,
    ...(rate?.algorithm === 'token_bucket' && { burst: rate.burst }),
    shadowMode,
  };
}
