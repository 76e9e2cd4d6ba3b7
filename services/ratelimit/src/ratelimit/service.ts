import type { UnaryHandler } from '@tollgate/grpc-server/call';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { isRefused, type Refuses } from '../backends/all-or-none.ts';
import type { Hit } from '../backends/counter-backend.ts';
import type { Activity } from '../counters/activity.ts';
import type { Overrides } from '../counters/overrides.ts';
import { errors, invalidRequest } from '../errors.ts';
import type { Trial } from '../trial/trial.ts';
import { addAllOrNone, isAtomic } from './atomic.ts';
import { decodeRequest, encodeDecision } from './codec.ts';
import { limitKey, secondsUntilReset } from './counter-key.ts';
import type { DecisionOptions } from './decision-options.ts';
import { getResponseHeaders, getStandardHeaders } from './headers.ts';
import {
  addHits,
  type CountedDescriptor,
  type HitResult,
  type HitsContext,
  type LimitedDescriptor,
} from './hits.ts';
import { type DescriptorLimit, findLimits, type Limit } from './limit.ts';
import { getDynamicMetadata } from './metadata.ts';
import { getHitsAddend, type RateLimitRequest, validateRequest } from './request.ts';
import { Code, type Decision, type DescriptorStatus } from './response.ts';
import { type DecisionStats, nearThreshold, recordDecision, recordResult } from './stats.ts';
import { decideByPolicy, type StoreFailures } from './store-failure.ts';
import type { UsageChecks } from './usage-checks.ts';

/** Path of the call. @see envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit */
export const shouldRateLimitPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

export interface Call {
  /** The first value of a request header, by its lower-case name. */
  readonly header: (name: string) => string | undefined;
  /** Absent without tracing. */
  readonly trace?: DecisionTrace | undefined;
}

interface DecisionTrace {
  /** Runs the exchange with the counter backend in a span. */
  inBackendSpan<T>(descriptors: number, run: () => Promise<T>): Promise<T>;
  /** Called once the hits were added. */
  onResults(descriptors: readonly LimitedDescriptor[], results: readonly HitResult[]): void;
}

/**
 * Decides one request. Rejects with an AppError when the request is invalid, no rules are loaded,
 * or the backend fails. Tracing wraps one such function in another.
 */
export type Decide = (request: RateLimitRequest, call: Call) => Promise<Decision>;

export interface DecisionContext extends HitsContext {
  /** The active rules; undefined until a first set is loaded. */
  readonly rules: () => RuleSet | undefined;
  readonly stats: DecisionStats;
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  /** A number in [0, 1), for the jitter of expiries. */
  readonly random: () => number;
  readonly options: DecisionOptions;
  /** Without it, calls fail when the store does. */
  readonly storeFailures?: StoreFailures | undefined;
  /** Absent where no response is followed by a report. */
  readonly usageChecks?: UsageChecks | undefined;
  /** Absent where no rules can be on trial. */
  readonly trial?: Trial | undefined;
  /** Absent without the counter API. */
  readonly activity?: Activity | undefined;
  /** The same. */
  readonly overrides?: Overrides | undefined;
}

export function shouldRateLimit(decide: Decide): UnaryHandler {
  return async (bytes, call) => encodeDecision(await decide(decodeRequest(bytes), call));
}

const ok: DescriptorStatus = { code: Code.OK, limitRemaining: 0, quota: false };
const okQuota: DescriptorStatus = { ...ok, quota: true };
/** It is no quota: it would allow the request when all quotas are used up. */
const unlimited: DescriptorStatus = { code: Code.OK, limitRemaining: 0xffff_ffff, quota: false };
const noHeaders: Decision['responseHeaders'] = [];

/**
 * Finds the limits, adds the hits and evaluates the counts, with the results of
 * envoyproxy/ratelimit.
 */
export async function decide(
  context: DecisionContext,
  request: RateLimitRequest,
  { trace }: Call,
): Promise<Decision> {
  const { options, stats } = context;
  const unmatched = options.quotaMode ? okQuota : ok;
  const domain = requireRules(context, request).domains.get(request.domain);
  if (domain === undefined) {
    stats.domainNotFound(request.domain, request.descriptors.length);
    stats.decisions.ok.value += 1;
    return toDecision(
      context,
      request,
      [],
      request.descriptors.map(() => unmatched),
    );
  }
  const nowSeconds = context.nowSeconds();
  const found = findLimits(domain, request.descriptors, options.calendarMonths);
  const limits =
    context.overrides?.isActive === true ? context.overrides.apply(request.domain, found) : found;
  let limited: readonly LimitedDescriptor[] = toLimitedDescriptors(context, request, limits, nowSeconds);
  let results: readonly HitResult[] = [];
  let storeFailure: string | undefined;
  if (limited.length > 0) {
    try {
      results = await (trace === undefined
        ? addRequest(context, limited, { domain, limits, nowSeconds })
        : trace.inBackendSpan(limited.length, () =>
            addRequest(context, limited, { domain, limits, nowSeconds }),
          ));
    } catch (error) {
      ({ limited, results, storeFailure } = await decideByPolicy(context, limited, {
        error,
        domain,
        limits,
        nowSeconds,
      }));
    }
    trace?.onResults(limited, results);
  }
  let next = 0;
  const statuses = limits.map((limit) => {
    if (limit?.kind !== 'limited') {
      return limit === undefined ? unmatched : unlimited;
    }
    const status = evaluate(options, limited[next], results[next]);
    next += 1;
    return status;
  });
  const decision = toDecision(context, request, limits, statuses);
  recordDecision(context, decision.overallCode, limited, results);
  context.activity?.record(request.domain, limited, { results, code: decision.overallCode });
  return storeFailure === undefined ? decision : withStoreFailure(decision, storeFailure);
}

interface RequestOptions {
  readonly domain: RuleNode;
  /** Of all descriptors of the request. */
  readonly limits: readonly DescriptorLimit[];
  readonly nowSeconds: number;
}

/** Adds the hits of one request, all or none where its domain says so. */
export function addRequest(
  context: HitsContext & Pick<DecisionContext, 'options'>,
  descriptors: readonly CountedDescriptor[],
  { domain, limits, nowSeconds }: RequestOptions,
): Promise<readonly HitResult[]> {
  const { quotaMode } = context.options;
  return isAtomic(domain, context.options)
    ? addAllOrNone(context, descriptors, { quotaMode, limits, nowSeconds })
    : addHits(context, descriptors, nowSeconds);
}

/** The metadata are the only part of the response in which Envoy and its access log can see it. */
function withStoreFailure(decision: Decision, storeFailure: string): Decision {
  const dynamicMetadata = { ...decision.dynamicMetadata, store_failure: storeFailure };
  return { ...decision, dynamicMetadata, storeFailure };
}

function requireRules({ rules, stats }: DecisionContext, request: RateLimitRequest): RuleSet {
  const problem = validateRequest(request);
  const current = rules();
  if (problem === undefined && current !== undefined) {
    return current;
  }
  stats.serviceError.value += 1;
  throw problem === undefined ? errors.no_configuration() : invalidRequest(problem);
}

function toLimitedDescriptors(
  context: DecisionContext,
  request: RateLimitRequest,
  limits: readonly DescriptorLimit[],
  nowSeconds: number,
): LimitedDescriptor[] {
  const limited: LimitedDescriptor[] = [];
  for (let i = 0; i < limits.length; i += 1) {
    const limit = limits[i];
    const descriptor = request.descriptors[i];
    if (limit?.kind !== 'limited' || descriptor === undefined) {
      continue;
    }
    const addend = getHitsAddend(request, descriptor);
    const ruleStats = context.stats.getRule(request.domain, limit);
    if (addend < 0) ruleStats.totalNegativeHits -= addend;
    else if (addend > 0) ruleStats.totalHits += addend;
    else observeCheck(context, request.domain, limit);
    limited.push({
      limit,
      hit: createHit(context, request.domain, limit, addend, nowSeconds),
      stats: ruleStats,
    });
  }
  return limited;
}

function observeCheck(
  { usageChecks, rules }: Pick<DecisionContext, 'usageChecks' | 'rules'>,
  domain: string,
  limit: Limit,
): void {
  const root = usageChecks && rules()?.domains.get(domain);
  if (root !== undefined) usageChecks?.observe(limit, root);
}

/** Hits on the counter of a limit. */
export function createHit(
  { random, options }: Pick<DecisionContext, 'random' | 'options'>,
  domain: string,
  limit: Limit,
  addend: number,
  nowSeconds: number,
): Hit {
  const { unitSeconds, windows } = limit;
  const window = windows?.at(nowSeconds);
  const windowSeconds = window === undefined ? unitSeconds : window.end - window.start;
  return {
    key: limitKey(options, domain, limit, nowSeconds),
    addend,
    unit: limit.unit ?? (unitSeconds === 1 ? 'second' : 'period'),
    secondsLeft: window === undefined ? secondsUntilReset(nowSeconds, unitSeconds) : window.end - nowSeconds,
    ttlSeconds: windowSeconds + Math.floor(random() * options.expirationJitterMaxSeconds),
    rate: limit.rate,
    lease: limit.lease,
  };
}

/** The status of a descriptor by the result of its hits, which is recorded. */
function evaluate(
  { nearLimitRatio, quotaMode }: DecisionOptions,
  descriptor: LimitedDescriptor | undefined,
  result: HitResult | undefined,
): DescriptorStatus {
  if (descriptor === undefined || result === undefined) {
    throw new TypeError('a limited descriptor has no result');
  }
  const { limit, hit } = descriptor;
  recordResult(descriptor, result, nearThreshold(limit.capacity, nearLimitRatio));
  return {
    code: result.over && !limit.shadowMode ? Code.OVER_LIMIT : Code.OK,
    currentLimit: limit,
    // Other clients of the store may bring a counter below zero; the wire holds no more than the
    // limit. After a refund a counter may still be above its limit.
    limitRemaining: result.over ? 0 : Math.max(0, limit.capacity - Math.max(0, result.count)),
    quota: quotaMode || limit.quotaMode,
    secondsUntilReset: result.resetSeconds ?? hit.secondsLeft,
    tookSlots: result.tookSlots,
  };
}

function toDecision(
  context: DecisionContext,
  request: RateLimitRequest,
  limits: readonly DescriptorLimit[],
  statuses: readonly DescriptorStatus[],
): Decision {
  const { options, trial } = context;
  if (trial?.loaded !== undefined) trial.observe(request, statuses);
  const overallCode = applyShadowMode(context, getOverallCode(statuses));
  let responseHeaders =
    options.headerNames === undefined ? noHeaders : getResponseHeaders(statuses, options.headerNames);
  if (options.standardHeaders && !options.shadowMode)
    responseHeaders = [...responseHeaders, ...getStandardHeaders(limits, { statuses, overallCode })];
  const decision: Decision = { overallCode, statuses, responseHeaders };
  return options.responseDynamicMetadata
    ? { ...decision, dynamicMetadata: getDynamicMetadata(request, limits, statuses) }
    : decision;
}

/**
 * OVER_LIMIT when a descriptor outside quota mode is over its limit, or when all descriptors in
 * quota mode are: a request may draw on any quota that is left.
 */
export function getOverallCode(statuses: readonly Pick<DescriptorStatus, 'code' | 'quota'>[]): Code {
  return isRefused(statuses, refusesByStatus, isOverLimit) ? Code.OVER_LIMIT : Code.OK;
}

function refusesByStatus({ quota }: Pick<DescriptorStatus, 'quota'>): Refuses {
  return quota ? 'together' : 'alone';
}

function isOverLimit({ code }: Pick<DescriptorStatus, 'code'>): boolean {
  return code === Code.OVER_LIMIT;
}

function applyShadowMode({ options, stats }: DecisionContext, code: Code): Code {
  if (options.shadowMode && code === Code.OVER_LIMIT) {
    stats.globalShadowMode.value += 1;
    return Code.OK;
  }
  return code;
}
