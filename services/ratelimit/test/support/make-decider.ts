import { createLogger } from '@tollgate/kit/logger';
import { loadRuleFiles } from '@tollgate/rules/load-rule-files';
import { formatProblem } from '@tollgate/rules/problem';
import type { RuleSet } from '@tollgate/rules/rule-set';
import { type DecisionContext, decide } from '../../src/decision/decide.ts';
import { LocalCache } from '../../src/decision/local-cache.ts';
import { type DecisionOptions, plainDecisionOptions } from '../../src/decision/options.ts';
import { DecisionStats } from '../../src/decision/stats.ts';
import { createStoreFailures } from '../../src/decision/store-failure.ts';
import type { Descriptor } from '../../src/decision/wire/request.ts';
import type { Decision } from '../../src/decision/wire/response.ts';
import { StatsRegistry } from '../../src/metrics/registry.ts';
import type { Hit } from '../../src/stores/counter-store.ts';
import { Leases } from '../../src/stores/leases.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';

/** A descriptor written as `key=value` pairs, with what else it may carry. */
export function descriptor(
  entries: Readonly<Record<string, string>>,
  more: Omit<Descriptor, 'entries'> = {},
): Descriptor {
  return { entries: Object.entries(entries).map(([key, value]) => ({ key, value })), ...more };
}

/** Options of a test. */
export interface MakeDeciderOptions extends Partial<DecisionOptions> {
  /** Rules in YAML; null for a service that has loaded none. */
  readonly yaml?: string | null;
  readonly nowSeconds?: number;
  readonly localCache?: boolean;
  readonly stopIncrementWhenOverLimit?: boolean;
  readonly random?: () => number;
  /** Shared with other deciders, like `store`. */
  readonly clock?: { nowSeconds: number };
  /** Instead of a store in memory. */
  readonly store?: DecisionContext['store'];
  readonly onStoreFailureReplicas?: number;
}

/** A decider on the memory store, with its clock, statistics and the hits it sent. */
export interface TestDecider {
  /** Decides for `domain` "d" unless another is given. */
  ask(
    descriptors: readonly Descriptor[],
    request?: { domain?: string; hitsAddend?: number },
  ): Promise<Decision>;
  readonly clock: { nowSeconds: number };
  readonly stats: StatsRegistry;
  /** Every call of the store's `take`. */
  readonly added: (readonly Hit[])[];
  readonly store: DecisionContext['store'];
  /** Statistics of a rule, by its key without the domain. */
  rule(key: string): Record<string, number>;
}

/** Makes one. */
export function makeDecider(options: MakeDeciderOptions = {}): TestDecider {
  const clock = options.clock ?? { nowSeconds: options.nowSeconds ?? 1_000_000 };
  const stats = new StatsRegistry();
  const added: (readonly Hit[])[] = [];
  const nowMs = (): number => clock.nowSeconds * 1000;
  const inner = options.store ?? new MemoryStore({ nowMs, maxCounters: 10_000 });
  const store: DecisionContext['store'] = {
    take(hits) {
      added.push(hits);
      return inner.take(hits);
    },
    peek: (hits) => inner.peek(hits),
    async takeAllOrNone(hits) {
      added.push(hits);
      return (await inner.takeAllOrNone?.(hits)) ?? { refused: true, results: [] };
    },
  };
  const rules = options.yaml === null ? undefined : rulesOf(options.yaml ?? 'domain: d\ndescriptors: []\n');
  const context: DecisionContext = {
    rules: () => rules,
    store: new Leases(store),
    localCache: options.localCache === true ? new LocalCache(0) : undefined,
    stopIncrementWhenOverLimit: options.stopIncrementWhenOverLimit ?? false,
    stats: new DecisionStats(stats),
    nowSeconds: () => clock.nowSeconds,
    random: options.random ?? (() => 0),
    options: { ...plainDecisionOptions, ...options },
    storeFailures: createStoreFailures(
      { onStoreFailure: 'fail', onStoreFailureReplicas: options.onStoreFailureReplicas ?? 1 },
      { logger: createLogger({ level: 'fatal', format: 'json' }), nowMs },
    ),
  };
  return {
    clock,
    stats,
    added,
    store,
    ask: (descriptors, { domain = 'd', hitsAddend = 0 } = {}) =>
      decide(context, { domain, descriptors, hitsAddend }, { header: () => undefined }),
    rule(key) {
      const found = [...stats.rules()].find((series) => series.key === `d.${key}`);
      const {
        totalHits = 0,
        overLimit = 0,
        nearLimit = 0,
        overLimitWithLocalCache = 0,
        withinLimit = 0,
        shadowMode = 0,
      } = found ?? {};
      return { totalHits, overLimit, nearLimit, overLimitWithLocalCache, withinLimit, shadowMode };
    },
  };
}

/** Rules from YAML that is known to be good. */
export function rulesOf(yaml: string): RuleSet {
  const loaded = loadRuleFiles([{ source: 'test.yaml', text: yaml }], { mergeDomains: false });
  if (!loaded.ok) {
    throw new TypeError(loaded.problems.map(formatProblem).join('\n'));
  }
  return loaded.rules;
}
