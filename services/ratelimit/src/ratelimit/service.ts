import { toBinary } from '@bufbuild/protobuf';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import { RateLimitResponseSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { RuleSet } from '@tollgate/rules/rule-set';
import { errors, invalidRequest } from '../errors.ts';
import { counterKey, secondsUntilReset } from './counter-key.ts';
import { type HeaderNames, responseHeaders } from './headers.ts';
import type { Count, Counted, CountHits } from './hits.ts';
import { limitsInForce, type Verdict } from './limit.ts';
import { decodeRequest, toMessage } from './messages.ts';
import { dynamicMetadata } from './metadata.ts';
import { checkRequest, hitsAddend, type RateLimitRequest } from './request.ts';
import { Code, type Decision, type DescriptorStatus, overallCode } from './response.ts';
import { countStats, type DecisionStats, nearThreshold } from './stats.ts';

/** What a decision may know of the call it answers. */
interface Caller {
  /** The first value of a request header, by its name in lower case. */
  readonly header: (name: string) => string | undefined;
  /** Runs a part of the decision in a span; absent when nothing is traced. */
  readonly inSpan?:
    | (<T>(span: { name: string; attributes: SpanAttributes }, run: () => Promise<T>) => Promise<T>)
    | undefined;
  /** Called with what was counted, and what it came to; absent when nothing is traced. */
  readonly onCounted?: ((counted: readonly Counted[], counts: readonly Count[]) => void) | undefined;
}

type SpanAttributes = Readonly<Record<string, string | number>>;

/** Answers one request. Rejects with an AppError: the request is unsound, no rules are loaded, or the backend failed. */
export type Decide = (request: RateLimitRequest, caller: Caller) => Promise<Decision>;

/** What deciding takes. */
export interface DeciderDeps {
  /** The rules now in force; undefined until a first set was loaded. */
  readonly rules: () => RuleSet | undefined;
  readonly countHits: CountHits;
  readonly stats: DecisionStats;
  /** Unix time in whole seconds. */
  readonly nowSeconds: () => number;
  /** A number from 0 up to 1, for the jitter of expiries. */
  readonly random: () => number;
}

/** Settings that bear on decisions. */
export interface DeciderOptions {
  readonly cacheKeyPrefix: string;
  /** From which part of a limit on hits count as near it, 0 to 1. */
  readonly nearLimitRatio: number;
  /** Up to this many seconds, exclusive, are added to each counter's life so that they do not all end at once; 0 adds none. */
  readonly expirationJitterMaxSeconds: number;
  /** Every result is OK, whatever the statuses say. */
  readonly shadowMode: boolean;
  /** Every descriptor is treated as if its rule were in quota mode. */
  readonly quotaMode: boolean;
  /** Absent when LIMIT_RESPONSE_HEADERS_ENABLED is false. */
  readonly headerNames?: HeaderNames | undefined;
  readonly responseDynamicMetadata: boolean;
  /** What the exchange with the counter backend is called in traces. */
  readonly countSpanName: string;
  /** What traces say of the exchange with the counter backend. */
  readonly countSpanAttributes: SpanAttributes;
}

const ok: DescriptorStatus = { code: Code.OK, limitRemaining: 0 };
const unlimited: DescriptorStatus = { code: Code.OK, limitRemaining: 0xffff_ffff };
const noHeaders: Decision['responseHeaders'] = [];

/** Makes the decision: match, count, judge, in the order and with the results of envoyproxy/ratelimit. */
export function createDecider(deps: DeciderDeps, options: DeciderOptions): Decide {
  const { stats } = deps;

  return async (request, caller) => {
    const rules = soundRules(request);
    const domain = rules.domains.get(request.domain);
    if (domain === undefined) {
      stats.domainNotFound(request.domain, request.descriptors.length);
      stats.decisions.ok.value += 1;
      return conclude(
        request,
        [],
        request.descriptors.map(() => ok),
      );
    }
    const nowSeconds = deps.nowSeconds();
    const verdicts = limitsInForce(domain, request.descriptors);
    const counted = planCounting(request, verdicts, nowSeconds);
    const counts = counted.length === 0 ? [] : await count(counted, nowSeconds, caller);
    let next = 0;
    const statuses = verdicts.map((verdict) => {
      if (verdict?.kind !== 'limited') {
        return verdict === undefined ? ok : unlimited;
      }
      const status = judge(counted[next], counts[next]);
      next += 1;
      return status;
    });
    const decision = conclude(request, verdicts, statuses);
    countDecision(decision, counted, counts);
    return decision;
  };

  function soundRules(request: RateLimitRequest): RuleSet {
    const problem = checkRequest(request);
    const rules = deps.rules();
    if (problem === undefined && rules !== undefined) {
      return rules;
    }
    stats.serviceError.value += 1;
    throw problem === undefined ? errors.no_configuration() : invalidRequest(problem);
  }

  function planCounting(
    request: RateLimitRequest,
    verdicts: readonly Verdict[],
    nowSeconds: number,
  ): Counted[] {
    const counted: Counted[] = [];
    for (const [i, descriptor] of request.descriptors.entries()) {
      const limit = verdicts[i];
      if (limit?.kind !== 'limited') {
        continue;
      }
      const addend = hitsAddend(request, descriptor);
      const counters = stats.countersOf(request.domain, limit);
      counters.totalHits += addend;
      counted.push({
        limit,
        hit: {
          key: counterKey(
            options.cacheKeyPrefix,
            request.domain,
            limit.keyEntries,
            nowSeconds,
            limit.unitSeconds,
          ),
          addend,
          unit: limit.unit,
          secondsLeft: secondsUntilReset(nowSeconds, limit.unitSeconds),
          ttlSeconds: limit.unitSeconds + Math.floor(deps.random() * options.expirationJitterMaxSeconds),
        },
        counters,
      });
    }
    return counted;
  }

  async function count(
    counted: readonly Counted[],
    nowSeconds: number,
    { inSpan, onCounted }: Caller,
  ): Promise<readonly Count[]> {
    const run = (): Promise<readonly Count[]> => deps.countHits(counted, nowSeconds);
    try {
      if (inSpan === undefined) return await run();
      const attributes = { ...options.countSpanAttributes, 'db.operation.batch.size': counted.length };
      const counts = await inSpan({ name: options.countSpanName, attributes }, run);
      onCounted?.(counted, counts);
      return counts;
    } catch (error) {
      stats.backendError.value += 1;
      throw error;
    }
  }

  function judge(counted: Counted | undefined, count: Count | undefined): DescriptorStatus {
    if (counted === undefined || count === undefined) {
      throw new TypeError('every limited descriptor must have been counted');
    }
    const { limit, hit, counters } = counted;
    countStats(counters, {
      limit: limit.requestsPerUnit,
      nearThreshold: nearThreshold(limit.requestsPerUnit, options.nearLimitRatio),
      addend: hit.addend,
      after: count.after,
      over: count.over,
      shadow: limit.shadowMode,
      fromLocalCache: count.fromLocalCache,
    });
    return {
      code: count.over && !limit.shadowMode ? Code.OVER_LIMIT : Code.OK,
      currentLimit: limit,
      // A counter that somebody else brought below zero leaves no more than the limit, which is what the wire can hold.
      limitRemaining: count.over ? 0 : limit.requestsPerUnit - Math.max(0, count.after),
      secondsUntilReset: hit.secondsLeft,
    };
  }

  function countDecision(
    { overallCode }: Decision,
    counted: readonly Counted[],
    counts: readonly Count[],
  ): void {
    const { ok, nearLimit, overLimit } = stats.decisions;
    if (overallCode === Code.OVER_LIMIT) overLimit.value += 1;
    else if (counted.some(({ limit }, i) => isNear(limit.requestsPerUnit, counts[i]))) nearLimit.value += 1;
    else ok.value += 1;
  }

  function isNear(limit: number, count: Count | undefined): boolean {
    if (count === undefined || count.over) return false;
    return count.after > nearThreshold(limit, options.nearLimitRatio);
  }

  function conclude(
    request: RateLimitRequest,
    verdicts: readonly Verdict[],
    statuses: readonly DescriptorStatus[],
  ): Decision {
    const judged = statuses.map((status, i) => ({
      status,
      code: status.code,
      quota: isQuota(verdicts[i]),
    }));
    const decision: Decision = {
      overallCode: inShadow(overallCode(judged)),
      statuses,
      responseHeaders:
        options.headerNames === undefined ? noHeaders : responseHeaders(judged, options.headerNames),
    };
    return options.responseDynamicMetadata
      ? { ...decision, dynamicMetadata: dynamicMetadata(request, verdicts, statuses) }
      : decision;
  }

  /** An unlimited rule has no quota: counted as one, it would outvote every quota that is over. */
  function isQuota(verdict: Verdict): boolean {
    if (verdict?.kind === 'unlimited') {
      return false;
    }
    return options.quotaMode || verdict?.quotaMode === true;
  }

  function inShadow(code: Code): Code {
    if (options.shadowMode && code === Code.OVER_LIMIT) {
      stats.globalShadowMode.value += 1;
      return Code.OK;
    }
    return code;
  }
}

/** Path of the call. @see envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit */
export const shouldRateLimitPath = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/** Makes the handler of ShouldRateLimit. */
export function createShouldRateLimit(decide: Decide): UnaryHandler {
  return async (bytes, context) =>
    toBinary(RateLimitResponseSchema, toMessage(await decide(decodeRequest(bytes), context)));
}
