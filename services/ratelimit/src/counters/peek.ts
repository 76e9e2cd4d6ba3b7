import type { RuleNode } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import type { CounterBackend } from '../backends/counter-backend.ts';
import { errors } from '../errors.ts';
import type { DecisionOptions } from '../ratelimit/decision-options.ts';
import { type HitResult, type LimitedDescriptor, peekHits } from '../ratelimit/hits.ts';
import { type DescriptorLimit, findLimits, type Limit } from '../ratelimit/limit.ts';
import { getHitsAddend, type RateLimitRequest } from '../ratelimit/request.ts';
import { Code } from '../ratelimit/response.ts';
import { createHit, type DecisionContext, getOverallCode } from '../ratelimit/service.ts';
import type { PublicOverride } from './overrides.ts';

/** What a look at counters needs: `/explain` has it without the counter API. */
export interface PeekContext {
  readonly decisions: Pick<
    DecisionContext,
    'rules' | 'overrides' | 'options' | 'nowSeconds' | 'random' | 'usageChecks'
  >;
  /** The store itself, whose counts include what replicas have reserved. */
  readonly backend: Pick<CounterBackend, 'add' | 'read'>;
}

type Target = Pick<LimitedDescriptor, 'limit' | 'hit'>;

/** What a counter has, and the limit that applies to it. */
export interface CounterState {
  /** The metric path of the rule, or the entries of a descriptor with a limit of its own. */
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
  /** The hits of the request would exceed the limit now, whatever that does to the request. */
  readonly over: boolean;
  readonly resetSeconds: number;
  /** The limit is not used as it is meant to be. */
  readonly warning?: string;
  /** The limit is that of an override. */
  readonly override?: PublicOverride;
}

interface DescriptorState {
  readonly entries: RateLimitRequest['descriptors'][number]['entries'];
  /** `none`: no rule matches, or another one replaces it. */
  readonly outcome: 'limited' | 'unlimited' | 'none';
  readonly counter?: CounterState;
}

interface RequestState {
  readonly descriptors: readonly DescriptorState[];
  /** The request would be refused now. */
  readonly wouldBeRefused: boolean;
}

/** The counters of a request. Changes nothing. */
export async function peekCounters(
  { decisions, backend }: PeekContext,
  request: RateLimitRequest,
): Promise<RequestState> {
  const limits = findRequestLimits(decisions, request);
  const targets = toTargets(decisions, request, limits);
  const results = await peekHits(backend, targets);
  const root = decisions.rules()?.domains.get(request.domain);
  let next = 0;
  const descriptors = request.descriptors.map((descriptor, i): DescriptorState => {
    const limit = limits[i];
    const entries = descriptor.entries.map(({ key, value }) => ({ key, value }));
    if (limit?.kind !== 'limited') {
      return { entries, outcome: limit === undefined ? 'none' : 'unlimited' };
    }
    const hits = getHitsAddend(request, descriptor);
    const state = toState(targets[next], results[next], hits === 0 ? getCheckedHits(limit, root) : hits);
    next += 1;
    const override = decisions.overrides?.findPublic(request.domain, limit.keyEntries);
    const warning = root && decisions.usageChecks?.getWarning(limit, root);
    const counter = { ...state, ...(warning && { warning }), ...(override && { override }) };
    return { entries, outcome: 'limited', counter };
  });
  return { descriptors, wouldBeRefused: isRefused(decisions.options, limits, descriptors) };
}

function isRefused(
  { shadowMode, quotaMode }: DecisionOptions,
  limits: readonly DescriptorLimit[],
  descriptors: readonly DescriptorState[],
): boolean {
  const statuses = limits.map((limit, i) => {
    if (limit?.kind !== 'limited') return { code: Code.OK, quota: limit === undefined && quotaMode };
    const isOver = descriptors[i]?.counter?.over === true && !limit.shadowMode;
    return { code: isOver ? Code.OVER_LIMIT : Code.OK, quota: quotaMode || limit.quotaMode };
  });
  return !shadowMode && getOverallCode(statuses) === Code.OVER_LIMIT;
}

/** The hits that a check of 0 hits needs: one, except in windows that count as the original. */
function getCheckedHits({ rate, charge }: Limit, root: RuleNode | undefined): number {
  return rate !== undefined || (root?.atomic === true && charge === 'always') ? 1 : 0;
}

/** @throws AppError when no rules are loaded. */
export function findRequestLimits(
  { rules, overrides, options }: PeekContext['decisions'],
  { domain, descriptors }: RateLimitRequest,
): readonly DescriptorLimit[] {
  const current = rules();
  if (current === undefined) throw errors.no_configuration();
  const root = current.domains.get(domain);
  if (root === undefined) return descriptors.map(() => undefined);
  const limits = findLimits(root, descriptors, options.calendarMonths);
  return overrides?.apply(domain, limits) ?? limits;
}

export function toTargets(
  context: PeekContext['decisions'],
  { domain }: RateLimitRequest,
  limits: readonly DescriptorLimit[],
): readonly Target[] {
  const now = context.nowSeconds();
  return limits.flatMap((limit) =>
    limit?.kind === 'limited' ? [{ limit, hit: createHit(context, domain, limit, 0, now) }] : [],
  );
}

function toState(target: Target | undefined, result: HitResult | undefined, hits: number): CounterState {
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
    over: hits >= 0 && Math.max(0, count) + hits > limit.capacity,
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
