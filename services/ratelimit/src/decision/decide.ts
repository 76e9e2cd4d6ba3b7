import type { UnaryHandler } from '@tollgate/grpc-server/call';
import { policyDomainPrefix } from '@tollgate/rules/rule-document';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { errors } from '../errors.ts';
import type { Activity } from './activity.ts';
import { addAllOrNone, isAtomic } from './atomic.ts';
import { createHit, type DescriptorCheck, isLimited, type LimitCheck } from './check.ts';
import { evaluate, getOverallCode, getUnmatchedStatus } from './evaluate.ts';
import { type DescriptorLimit, findLimits, type Limit } from './find-limit.ts';
import { addHits, type HitsContext } from './hits.ts';
import type { DecisionOptions } from './options.ts';
import type { Overrides } from './overrides.ts';
import { type DecisionStats, type RecordedCheck, recordDecision, recordResult } from './stats.ts';
import { decideByPolicy, type StoreFailures } from './store-failure.ts';
import type { UsageChecks } from './usage-checks.ts';
import { decodeRequest, encodeDecision } from './wire/codec.ts';
import { getResponseHeaders, getStandardHeaders } from './wire/headers.ts';
import { getDynamicMetadata } from './wire/metadata.ts';
import { getHitsAddend, invalidRequest, type RateLimitRequest, validateRequest } from './wire/request.ts';
import { Code, type Decision, type DescriptorStatus } from './wire/response.ts';

/** Path of the call. @see envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit */
export const shouldRateLimitPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

export interface Call {
  /** The first value of a request header, by its lower-case name. */
  readonly header: (name: string) => string | undefined;
  /** Absent without tracing. */
  readonly trace?: DecisionTrace | undefined;
}

interface DecisionTrace {
  /** Runs the exchange with the counter store in a span. */
  inBackendSpan<T>(descriptors: number, run: () => Promise<T>): Promise<T>;
  /** Called once the hits were added. */
  onResults(checks: readonly LimitCheck[]): void;
}

/**
 * Decides one request. Rejects with an AppError when the request is invalid, no rules are loaded,
 * those of its policy are unknown, or the store fails. Tracing wraps one such function in another.
 */
export type Decide = (request: RateLimitRequest, call: Call) => Promise<Decision>;

/** Rules on trial: they see requests with their statuses, and have no effect on them. */
interface TrialObserver {
  /** Undefined without such rules. */
  readonly loaded: object | undefined;
  observe(request: RateLimitRequest, statuses: readonly DescriptorStatus[]): void;
}

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
  readonly trial?: TrialObserver | undefined;
  /** Absent without the counter API. */
  readonly activity?: Activity | undefined;
  /** Absent without the counter API. */
  readonly overrides?: Overrides | undefined;
}

export function shouldRateLimit(decide: Decide): UnaryHandler {
  return async (bytes, call) => encodeDecision(await decide(decodeRequest(bytes), call));
}

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
  const domain = requireRules(context, request).domains.get(request.domain);
  if (domain === undefined) {
    stats.domainNotFound(request.domain, request.descriptors.length);
    // Only the auth server asks for policies: it decides what happens without their rules.
    if (request.domain.startsWith(policyDomainPrefix)) {
      stats.serviceError.value += 1;
      throw errors.unknown_policy({
        message: `${errors.unknown_policy.definition.message}: ${request.domain}`,
      });
    }
    stats.decisions.ok.value += 1;
    const unmatched = getUnmatchedStatus(options);
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
  const checks = createChecks(context, request, { limits, nowSeconds });
  const limited = checks.filter(isLimited);
  const count = (): Promise<void> => addRequest(context, limited, { domain, limits, nowSeconds });
  let storeFailure: string | undefined;
  if (limited.length > 0) {
    try {
      await (trace === undefined ? count() : trace.inBackendSpan(limited.length, count));
    } catch (error) {
      storeFailure = await decideByPolicy(context, limited, { error, domain, limits, nowSeconds });
    }
    trace?.onResults(limited);
  }
  const statuses = evaluate(options, checks);
  for (const check of limited) recordResult(check, options);
  const decision = toDecision(context, request, limits, statuses);
  recordDecision(context, decision.overallCode, limited);
  context.activity?.record(request.domain, limited, decision.overallCode);
  return storeFailure === undefined ? decision : withStoreFailure(decision, storeFailure);
}

interface RequestOptions {
  readonly domain: RuleNode;
  /** Limits of all descriptors of the request. */
  readonly limits: readonly DescriptorLimit[];
  readonly nowSeconds: number;
}

/** Adds the hits of one request, all or none where its domain says so. */
export function addRequest(
  context: HitsContext & Pick<DecisionContext, 'options'>,
  checks: readonly LimitCheck[],
  { domain, limits, nowSeconds }: RequestOptions,
): Promise<void> {
  const { quotaMode } = context.options;
  return isAtomic(domain, context.options)
    ? addAllOrNone(context, checks, { quotaMode, limits, nowSeconds })
    : addHits(context, checks, nowSeconds);
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

/** Their hits are counted in the statistics of the rules already. */
function createChecks(
  context: DecisionContext,
  request: RateLimitRequest,
  { limits, nowSeconds }: Omit<RequestOptions, 'domain'>,
): readonly DescriptorCheck<RecordedCheck>[] {
  const { domain } = request;
  return request.descriptors.map((descriptor, i) => {
    const limit = limits[i];
    if (limit?.kind !== 'limited') return { limit };
    const addend = getHitsAddend(request, descriptor);
    const stats = context.stats.getRule(domain, limit);
    if (addend < 0) stats.totalNegativeHits -= addend;
    else if (addend > 0) stats.totalHits += addend;
    else observeCheck(context, domain, limit);
    const hit = createHit(context, limit, { domain, addend, nowSeconds });
    return { limit, hit, stats, result: undefined };
  });
}

function observeCheck(
  { usageChecks, rules }: Pick<DecisionContext, 'usageChecks' | 'rules'>,
  domain: string,
  limit: Limit,
): void {
  const root = usageChecks && rules()?.domains.get(domain);
  if (root !== undefined) usageChecks?.observe(limit, root);
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

function applyShadowMode({ options, stats }: DecisionContext, code: Code): Code {
  if (options.shadowMode && code === Code.OVER_LIMIT) {
    stats.globalShadowMode.value += 1;
    return Code.OK;
  }
  return code;
}
