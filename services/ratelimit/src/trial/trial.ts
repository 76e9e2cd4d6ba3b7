import type { Rule, RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import type { CounterBackend } from '../backends/counter-backend.ts';
import type { Overrides } from '../counters/overrides.ts';
import type { CountedDescriptor, HitResult } from '../ratelimit/hits.ts';
import { type DescriptorLimit, findMatches, fromMatch } from '../ratelimit/limit.ts';
import { getHitsAddend, type RateLimitRequest } from '../ratelimit/request.ts';
import { Code, type DescriptorStatus } from '../ratelimit/response.ts';
import { addRequest, createHit, type DecisionContext, getOverallCode } from '../ratelimit/service.ts';
import { DecisionStats } from '../ratelimit/stats.ts';
import { decideByPolicy, type StoreFailures } from '../ratelimit/store-failure.ts';
import { statsNames } from '../stats/names.ts';
import { type Counter, StatsRegistry } from '../stats/registry.ts';
import type { TrialCounts, TrialTable } from '../stats/trial-series.ts';

/** Rules on trial, and their counts. */
export interface LoadedTrial {
  readonly rules: RuleSet;
  readonly counts: TrialTable;
}

interface TrialOptions {
  readonly backend: Pick<CounterBackend, 'add' | 'read'>;
  /** The rules on trial see the same requests, so they count them in the same way. */
  readonly stopIncrementWhenOverLimit: boolean;
  readonly options: DecisionContext['options'];
  /** They are in force whichever rules are. Absent without the counter API. */
  readonly overrides?: Overrides | undefined;
  readonly stats: StatsRegistry;
  /** With counters of its own. */
  readonly storeFailures: StoreFailures;
  readonly nowSeconds: () => number;
  readonly random: () => number;
}

/** A request and the codes of the rules in force. */
interface Observation {
  readonly trial: LoadedTrial;
  readonly domain: RuleNode;
  readonly request: RateLimitRequest;
  readonly statuses: readonly DescriptorStatus[];
}

/** Hardly the beginning of a domain: a trial must not share a counter with a rule in force. */
const trialPrefix = 'tollgate-trial_';

/** Requests that wait for their comparison, of about 1 KB each. */
const maxWaiting = 10_000;

/** A few µs each; decisions come in between. */
const comparisonsPerTurn = 256;

/**
 * Decides requests by the rules on trial after the rules in force have, and counts the difference.
 * Counters of the rules on trial have keys of their own.
 */
export class Trial {
  /** Undefined while no rules are on trial. A plain field, because each decision reads it. */
  loaded: LoadedTrial | undefined;
  readonly #options: TrialOptions;
  readonly #dropped: Counter;
  readonly #failed: Counter;
  /** Statistics of the rules in force do not include those on trial. */
  readonly #discardedStats = new DecisionStats(new StatsRegistry());
  /** Whose comparison has not begun. */
  readonly #observed: Observation[] = [];
  #waiting = 0;

  constructor(options: TrialOptions) {
    const { cacheKeyPrefix } = options.options;
    this.#options = {
      ...options,
      options: { ...options.options, cacheKeyPrefix: `${cacheKeyPrefix}${trialPrefix}` },
    };
    this.#dropped = options.stats.counter(statsNames.trialDropped);
    this.#failed = options.stats.counter(statsNames.trialFailed);
  }

  /**
   * Takes note of a decision. It is compared once the responses of this turn are sent; requests of
   * one turn share a batch of the counter store.
   */
  observe(request: RateLimitRequest, statuses: readonly DescriptorStatus[]): void {
    const trial = this.loaded;
    const domain = trial?.rules.domains.get(request.domain);
    if (trial === undefined || domain === undefined) return;
    if (this.#waiting >= maxWaiting) {
      this.#dropped.value += 1;
      return;
    }
    this.#waiting += 1;
    this.#observed.push({ trial, domain, request, statuses });
    if (this.#observed.length === 1) setImmediate(() => this.#compareObserved());
  }

  #compareObserved(): void {
    for (const observation of this.#observed.splice(0, comparisonsPerTurn)) void this.#compare(observation);
    if (this.#observed.length > 0) setImmediate(() => this.#compareObserved());
  }

  async #compare(observation: Observation): Promise<void> {
    try {
      countDifference(observation, await this.#decide(observation));
    } catch {
      this.#failed.value += 1;
    }
    this.#waiting -= 1;
  }

  /** The outcome of each descriptor; overrides of requests are no limits of rules. */
  async #decide({ domain, request }: Observation): Promise<readonly Outcome[]> {
    const { backend, stopIncrementWhenOverLimit, options, nowSeconds } = this.#options;
    const now = nowSeconds();
    const outcomes = findOutcomes(domain, request, this.#options);
    const limited = outcomes.flatMap((outcome) =>
      outcome.limit?.kind === 'limited'
        ? [
            {
              outcome,
              limit: outcome.limit,
              hit: createHit(this.#options, request.domain, outcome.limit, outcome.addend, now),
            },
          ]
        : [],
    );
    if (limited.length > 0) {
      const limits = outcomes.map(({ limit }) => limit);
      const context = { backend, stopIncrementWhenOverLimit, options };
      const results = await addRequest(context, limited, { domain, limits, nowSeconds: now }).catch(
        (error: unknown) => this.#decideByPolicy(limited, { error, domain, limits, nowSeconds: now }),
      );
      for (const [i, { outcome, limit }] of limited.entries()) {
        if (results[i]?.over === true && !limit.shadowMode) outcome.code = Code.OVER_LIMIT;
      }
    }
    return outcomes;
  }

  /** While the store fails, the policies of the rules on trial decide, if they have any. */
  async #decideByPolicy(
    limited: readonly CountedDescriptor[],
    failed: Parameters<typeof decideByPolicy>[2],
  ): Promise<readonly HitResult[]> {
    const { results } = await decideByPolicy(
      { ...this.#options, stats: this.#discardedStats },
      limited,
      failed,
    );
    return results;
  }
}

interface Outcome {
  /** Position of the descriptor in the request. */
  readonly index: number;
  readonly addend: number;
  /** Undefined where no rule on trial applies. */
  readonly rule: Rule | undefined;
  readonly limit: DescriptorLimit;
  readonly quota: boolean;
  code: Code;
}

function findOutcomes(
  domain: RuleNode,
  request: RateLimitRequest,
  { options: { quotaMode, calendarMonths }, overrides }: Pick<TrialOptions, 'options' | 'overrides'>,
): Outcome[] {
  const matches = findMatches(domain, request.descriptors);
  return request.descriptors.flatMap((descriptor, index) => {
    if (descriptor.limit !== undefined) return [];
    const match = matches[index];
    const found = match && fromMatch(match, descriptor.entries, calendarMonths);
    const limit = overrides?.isActive === true ? overrides.applyTo(request.domain, found) : found;
    const quota = limit?.kind === 'unlimited' ? false : quotaMode || (limit?.quotaMode ?? false);
    const addend = getHitsAddend(request, descriptor);
    return [{ index, addend, rule: match?.rule, limit, quota, code: Code.OK }];
  });
}

/** Refunds are never refused, so they are no requests. */
function countDifference({ trial, request, statuses }: Observation, outcomes: readonly Outcome[]): void {
  const { counts } = trial;
  for (const { index, addend, rule, code } of outcomes) {
    if (rule === undefined || addend < 0) continue;
    count(counts.rule(rule.domain, rule.path, describeLimit(rule)), {
      wouldRefuse: code === Code.OVER_LIMIT,
      refused: statuses[index]?.code === Code.OVER_LIMIT,
    });
  }
  if (!outcomes.some(({ addend }) => addend >= 0)) return;
  const today = outcomes.flatMap(({ index }) => statuses[index] ?? []);
  count(counts.domain(request.domain), {
    wouldRefuse: getOverallCode(outcomes) === Code.OVER_LIMIT,
    refused: getOverallCode(today) === Code.OVER_LIMIT,
  });
}

function count(
  counts: TrialCounts,
  { wouldRefuse, refused }: { readonly wouldRefuse: boolean; readonly refused: boolean },
): void {
  counts.requests += 1;
  if (wouldRefuse) counts.wouldRefuse += 1;
  if (refused) counts.refused += 1;
  if (wouldRefuse && !refused) counts.newlyRefused += 1;
  if (refused && !wouldRefuse) counts.newlyAllowed += 1;
}

function describeLimit({ unlimited, requestsPerUnit, unit, unitSeconds, windows, rate }: Rule): string {
  if (unlimited) return 'unlimited';
  const algorithm = rate === undefined ? '' : `, ${rate.algorithm}`;
  const burst = rate?.algorithm === 'token_bucket' ? `, burst ${rate.burst}` : '';
  const zone = windows?.timeZone === undefined ? '' : ` of ${windows.timeZone}`;
  return `${requestsPerUnit} per ${unit ?? formatPeriod(unitSeconds)}${zone}${algorithm}${burst}`;
}
