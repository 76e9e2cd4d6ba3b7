import type { Rule, RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import { getAlgorithm } from '../algorithms/registry.ts';
import { createHit, type DescriptorCheck, isLimited } from '../decision/check.ts';
import { addRequest, type DecisionContext } from '../decision/decide.ts';
import { evaluate, getOverallCode } from '../decision/evaluate.ts';
import { findMatches, fromMatch } from '../decision/find-limit.ts';
import type { Overrides } from '../decision/overrides.ts';
import { DecisionStats } from '../decision/stats.ts';
import { decideByPolicy, type StoreFailures } from '../decision/store-failure.ts';
import { getHitsAddend, type RateLimitRequest } from '../decision/wire/request.ts';
import { Code, type DescriptorStatus } from '../decision/wire/response.ts';
import { statsNames } from '../metrics/names.ts';
import { type Counter, StatsRegistry } from '../metrics/registry.ts';
import type { TrialCounts, TrialTable } from '../metrics/trial-series.ts';
import type { CounterStore } from '../stores/counter-store.ts';

/** Rules on trial, and their counts. */
export interface LoadedTrial {
  readonly rules: RuleSet;
  readonly counts: TrialTable;
}

interface TrialOptions {
  readonly store: Pick<CounterStore, 'take' | 'peek'>;
  /** The rules on trial see the same requests, so they count them in the same way. */
  readonly stopIncrementWhenOverLimit: boolean;
  readonly options: DecisionContext['options'];
  /** They are in force whichever rules are. Absent without the counter API. */
  readonly overrides?: Overrides | undefined;
  readonly stats: StatsRegistry;
  /** A trial has counters of its own. */
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

  /** The outcome of each descriptor without a limit of its own, which no rule on trial changes. */
  async #decide({ domain, request }: Observation): Promise<readonly Outcome[]> {
    const { options, nowSeconds } = this.#options;
    const now = nowSeconds();
    const compared = findCompared(domain, request, { ...this.#options, nowSeconds: now });
    const limited = compared.map(({ check }) => check).filter(isLimited);
    if (limited.length > 0) {
      const limits = compared.map(({ check }) => check.limit);
      try {
        await addRequest(this.#options, limited, { domain, limits, nowSeconds: now });
      } catch (error) {
        // While the store fails, the policies of the rules on trial decide, if they have any.
        const context = { ...this.#options, stats: this.#discardedStats };
        await decideByPolicy(context, limited, { error, domain, limits, nowSeconds: now });
      }
    }
    const statuses = evaluate(
      options,
      compared.map(({ check }) => check),
    );
    return compared.flatMap((one, i) => {
      const status = statuses[i];
      return status === undefined ? [] : [{ ...one, status }];
    });
  }
}

interface Compared {
  /** Position of the descriptor in the request. */
  readonly index: number;
  readonly addend: number;
  /** Undefined where no rule on trial applies. */
  readonly rule: Rule | undefined;
  readonly check: DescriptorCheck;
}

interface Outcome extends Compared {
  readonly status: DescriptorStatus;
}

function findCompared(
  domain: RuleNode,
  request: RateLimitRequest,
  {
    options,
    overrides,
    random,
    nowSeconds,
  }: Omit<TrialOptions, 'nowSeconds'> & { readonly nowSeconds: number },
): readonly Compared[] {
  const matches = findMatches(domain, request.descriptors);
  return request.descriptors.flatMap((descriptor, index) => {
    if (descriptor.limit !== undefined) return [];
    const match = matches[index];
    const found = match && fromMatch(match, descriptor.entries, options.calendarMonths);
    const limit = overrides?.isActive === true ? overrides.applyTo(request.domain, found) : found;
    const addend = getHitsAddend(request, descriptor);
    const hits = { domain: request.domain, addend, nowSeconds };
    const check: DescriptorCheck =
      limit?.kind === 'limited'
        ? { limit, hit: createHit({ options, random }, limit, hits), result: undefined }
        : { limit };
    return [{ index, addend, rule: match?.rule, check }];
  });
}

/** Refunds are never refused, so they are no requests. */
function countDifference({ trial, request, statuses }: Observation, outcomes: readonly Outcome[]): void {
  const { counts } = trial;
  for (const { index, addend, rule, status } of outcomes) {
    if (rule === undefined || addend < 0) continue;
    count(counts.rule(rule.domain, rule.path, describeLimit(rule)), {
      wouldRefuse: status.code === Code.OVER_LIMIT,
      refused: statuses[index]?.code === Code.OVER_LIMIT,
    });
  }
  if (!outcomes.some(({ addend }) => addend >= 0)) return;
  const today = outcomes.flatMap(({ index }) => statuses[index] ?? []);
  count(counts.domain(request.domain), {
    wouldRefuse: getOverallCode(outcomes.map(({ status }) => status)) === Code.OVER_LIMIT,
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
  const burst = rate !== undefined && getAlgorithm(rate).hasBurst ? `, burst ${rate.burst}` : '';
  const zone = windows?.timeZone === undefined ? '' : ` of ${windows.timeZone}`;
  return `${requestsPerUnit} per ${unit ?? formatPeriod(unitSeconds)}${zone}${algorithm}${burst}`;
}
