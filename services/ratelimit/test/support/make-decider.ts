import { loadYaml } from '@tollgate/rules/load-yaml';
import { formatProblem } from '@tollgate/rules/problem';
import type { RuleSet } from '@tollgate/rules/rule-set';
import type { CounterBackend, CounterHit } from '../../src/backends/counter-backend.ts';
import { createMemoryBackend } from '../../src/backends/memory.ts';
import { createCountHits } from '../../src/ratelimit/hits.ts';
import { createLocalCache } from '../../src/ratelimit/local-cache.ts';
import type { Descriptor } from '../../src/ratelimit/request.ts';
import type { Decision } from '../../src/ratelimit/response.ts';
import { createDecider, type DeciderOptions } from '../../src/ratelimit/service.ts';
import { createDecisionStats } from '../../src/ratelimit/stats.ts';
import { createStatsRegistry, type StatsRegistry } from '../../src/stats/registry.ts';

/** A descriptor written as `key=value` pairs, with what else it may carry. */
export function descriptor(
  entries: Readonly<Record<string, string>>,
  more: Omit<Descriptor, 'entries'> = {},
): Descriptor {
  return { entries: Object.entries(entries).map(([key, value]) => ({ key, value })), ...more };
}

/** What a test may set. */
export interface MakeDeciderOptions extends Partial<DeciderOptions> {
  /** Rules in YAML; null for a service that has loaded none. */
  readonly yaml?: string | null;
  readonly nowSeconds?: number;
  readonly localCache?: boolean;
  readonly stopIncrementWhenOverLimit?: boolean;
  readonly random?: () => number;
}

/** A decider on the memory backend, with its clock, statistics and the hits it sent. */
export interface TestDecider {
  /** Decides for `domain` "d" unless another is given. */
  ask(
    descriptors: readonly Descriptor[],
    request?: { domain?: string; hitsAddend?: number },
  ): Promise<Decision>;
  readonly clock: { nowSeconds: number };
  readonly stats: StatsRegistry;
  /** Every call of the backend's `add`. */
  readonly added: (readonly CounterHit[])[];
  readonly backend: CounterBackend;
  /** Statistics of a rule, by its key without the domain. */
  rule(key: string): Record<string, number>;
}

/** Makes one. */
export function makeDecider(options: MakeDeciderOptions = {}): TestDecider {
  const clock = { nowSeconds: options.nowSeconds ?? 1_000_000 };
  const stats = createStatsRegistry();
  const added: (readonly CounterHit[])[] = [];
  const memory = createMemoryBackend({ nowSeconds: () => clock.nowSeconds, maxCounters: 10_000 });
  const backend: CounterBackend = {
    ...memory,
    add(hits) {
      added.push(hits);
      return memory.add(hits);
    },
  };
  const rules = options.yaml === null ? undefined : rulesOf(options.yaml ?? 'domain: d\ndescriptors: []\n');
  const decide = createDecider(
    {
      rules: () => rules,
      countHits: createCountHits({
        backend,
        localCache: options.localCache === true ? createLocalCache(0) : undefined,
        stopIncrementWhenOverLimit: options.stopIncrementWhenOverLimit ?? false,
      }),
      stats: createDecisionStats(stats),
      nowSeconds: () => clock.nowSeconds,
      random: options.random ?? (() => 0),
    },
    {
      cacheKeyPrefix: '',
      nearLimitRatio: 0.8,
      expirationJitterMaxSeconds: 0,
      shadowMode: false,
      quotaMode: false,
      responseDynamicMetadata: false,
      countSpanName: 'Memory Counter Execution',
      countSpanAttributes: {},
      ...options,
    },
  );
  return {
    clock,
    stats,
    added,
    backend,
    ask: (descriptors, { domain = 'd', hitsAddend = 0 } = {}) =>
      decide({ domain, descriptors, hitsAddend }, { header: () => undefined }),
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
  const loaded = loadYaml([{ source: 'test.yaml', text: yaml }], { mergeDomains: false });
  if (!loaded.ok) {
    throw new TypeError(loaded.problems.map(formatProblem).join('\n'));
  }
  return loaded.rules;
}
