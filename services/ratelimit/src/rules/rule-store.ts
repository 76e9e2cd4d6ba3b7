import type { HealthComponent } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import type { RuleSet } from '@tollgate/rules/rule-set';
import { statsNames } from '../stats/names.ts';
import type { StatsRegistry } from '../stats/registry.ts';

/** What came of one attempt to load rules. */
export type RuleLoad =
  | { readonly ok: true; readonly rules: RuleSet; readonly warnings: readonly RuleProblem[] }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

/** Where rules come from. */
export interface RuleSource {
  /**
   * Loads once, then again whenever the source changes, and hands every attempt to `onLoad`, in order. Resolves when
   * the first attempt was made; a source that waits for another service resolves when that has sent rules that are
   * good, and soon after `signal` aborts or `close` is called. Rejects when the source cannot be there at all, such as
   * a missing directory.
   */
  start(onLoad: (load: RuleLoad) => void, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Resolves once nothing is loaded any more; idempotent. */
  close(): Promise<void>;
}

/** What the store takes. */
export interface RuleStoreDeps {
  readonly stats: StatsRegistry;
  readonly logger: Logger;
  /** Present with HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED. */
  readonly health?: HealthComponent | undefined;
}

/** The rules in force. */
export interface RuleStore {
  /** Undefined until a first set was loaded. */
  current(): RuleSet | undefined;
  /** Puts a good load in force as a whole; a bad one changes nothing and is logged, problem by problem. */
  apply(load: RuleLoad): void;
}

/** Problems of one load that are logged; a broken generator can make one for every line. */
const maxLoggedProblems = 100;

/** Makes an empty store. */
export function createRuleStore({ stats, logger, health }: RuleStoreDeps): RuleStore {
  const succeeded = stats.counter(statsNames.configLoadSuccess);
  const failed = stats.counter(statsNames.configLoadError);
  const attempts = stats.counter(statsNames.runtimeLoadAttempts);
  const failures = stats.counter(statsNames.runtimeLoadFailures);
  const values = stats.gauge(statsNames.runtimeNumValues);
  const isCurrent = stats.gauge(statsNames.configCurrent);
  isCurrent.value = 1;
  let rules: RuleSet | undefined;

  return {
    current: () => rules,
    apply(load) {
      attempts.value += 1;
      if (!load.ok) {
        failed.value += 1;
        failures.value += 1;
        isCurrent.value = 0;
        for (const problem of load.problems.slice(0, maxLoggedProblems)) {
          logger.error({ problem: formatProblem(problem) }, 'rules not loaded');
        }
        logger.error(
          { problems: load.problems.length, kept: rules?.ruleCount ?? 0 },
          rules === undefined
            ? 'no rules in force: every request fails'
            : 'the rules loaded last stay in force',
        );
        return;
      }
      for (const warning of load.warnings.slice(0, maxLoggedProblems)) {
        logger.warn({ problem: formatProblem(warning) }, 'rule looks wrong');
      }
      // Rules that are still there take their series back, with their counts.
      stats.releaseRules();
      rules = load.rules;
      succeeded.value += 1;
      isCurrent.value = 1;
      values.value = rules.domains.size;
      health?.set(rules.domains.size > 0);
      logger.info({ domains: rules.domains.size, rules: rules.ruleCount }, 'rules loaded');
    },
  };
}
