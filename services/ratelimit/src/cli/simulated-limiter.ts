import { type DescriptorExplanation, explain } from '@tollgate/rules/explain';
import type { Entry } from '@tollgate/rules/match';
import type { RuleSet, Unit } from '@tollgate/rules/rule-set';
import { type DecisionContext, decide } from '../decision/decide.ts';
import { plainDecisionOptions } from '../decision/options.ts';
import { DecisionStats } from '../decision/stats.ts';
import { unitToWire } from '../decision/wire/request.ts';
import { Code, type DescriptorStatus } from '../decision/wire/response.ts';
import { StatsRegistry } from '../metrics/registry.ts';
import { MemoryStore } from '../stores/memory/memory-store.ts';

interface SimulatedRequest {
  readonly domain: string;
  readonly descriptors: readonly SimulatedDescriptor[];
  /** Hits of each descriptor. Default 1; 0 reads the counters. */
  readonly hits?: number;
}

interface SimulatedDescriptor {
  readonly entries: readonly Entry[];
  /** Replaces the number of the rule. */
  readonly limit?: { readonly requestsPerUnit: number; readonly unit: Unit } | undefined;
}

interface SimulatedDecision {
  readonly allowed: boolean;
  /** Limits of the descriptors, in their order. */
  readonly limits: readonly SimulatedLimit[];
}

/** A descriptor, the rule that limits it, and its counter after the request. */
export interface SimulatedLimit extends DescriptorExplanation {
  /** Absent, as the fields that follow, for a descriptor that is not limited. */
  readonly requestsPerUnit?: number;
  /** Absent for a period. */
  readonly unit?: Unit | undefined;
  readonly remaining?: number;
  readonly resetSeconds?: number;
  readonly exceeded: boolean;
}

/** More than the requests of a file of cases may have. */
const maxCounters = 100_000;

/** Decides as the service does, with counters in memory and the clock of the caller. */
export class SimulatedLimiter {
  readonly #rules: RuleSet;
  readonly #context: DecisionContext;

  constructor(rules: RuleSet, nowMs: () => number) {
    this.#rules = rules;
    this.#context = {
      rules: () => rules,
      store: new MemoryStore({ nowMs, maxCounters }),
      stopIncrementWhenOverLimit: false,
      stats: new DecisionStats(new StatsRegistry()),
      nowSeconds: () => Math.floor(nowMs() / 1000),
      random: () => 0,
      options: plainDecisionOptions,
    };
  }

  /** @throws AppError for an invalid request, and for a policy without rules */
  async decide({ domain, descriptors, hits = 1 }: SimulatedRequest): Promise<SimulatedDecision> {
    // Hits go with each descriptor: 0 for a request means that it is not set.
    const request = {
      domain,
      descriptors: descriptors.map(({ entries, limit }) => ({
        entries,
        limit: limit && { requestsPerUnit: limit.requestsPerUnit, unit: unitToWire(limit.unit) },
        hitsAddend: BigInt(hits),
      })),
      hitsAddend: hits,
    };
    const { overallCode, statuses } = await decide(this.#context, request, { header: () => undefined });
    const explained = explain(this.#rules, request).descriptors;
    const limits = explained.map((one, i) => ({ ...one, ...describeStatus(statuses[i]) }));
    return { allowed: overallCode === Code.OK, limits };
  }
}

function describeStatus(
  status: DescriptorStatus | undefined,
): Omit<SimulatedLimit, keyof DescriptorExplanation> {
  const exceeded = status?.code === Code.OVER_LIMIT;
  if (status?.currentLimit === undefined) return { exceeded };
  const { requestsPerUnit, unit } = status.currentLimit;
  const { limitRemaining: remaining, secondsUntilReset: resetSeconds } = status;
  return {
    ...{ requestsPerUnit, unit, remaining, exceeded },
    ...(resetSeconds !== undefined && { resetSeconds }),
  };
}
