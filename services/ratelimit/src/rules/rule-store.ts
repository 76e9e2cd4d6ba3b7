import type { HealthComponent } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import type { RuleSet } from '@tollgate/rules/rule-set';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { statsNames } from '../metrics/names.ts';
import type { Counter, Gauge, StatsRegistry } from '../metrics/registry.ts';

export type RuleLoad =
  | { readonly ok: true; readonly rules: RuleSet; readonly warnings: readonly RuleProblem[] }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

export interface RuleSourceStart {
  readonly signal?: AbortSignal;
  /** Gets the rules on trial that come with the rules; of a source that has such rules. */
  readonly onCandidates?: (load: RuleLoad) => void;
}

export interface RuleSource {
  /**
   * Loads the rules now and on every change, and calls `onLoad` with each result, in order.
   * Resolves after the first attempt; a source that depends on another service resolves once it
   * received valid rules, or soon after `signal` aborts or `close` is called. Rejects when the
   * source cannot work at all, such as without its directory.
   */
  start(onLoad: (load: RuleLoad) => void, options?: RuleSourceStart): Promise<void>;
  /** Resolves once no load is running; idempotent. */
  close(): Promise<void>;
}

interface RuleStoreOptions {
  readonly stats: StatsRegistry;
  readonly logger: Logger;
  /** Present with HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED. */
  readonly health?: HealthComponent | undefined;
}

/** Logged problems of one load; a broken generator can make one for every line. */
export const maxLoggedProblems = 100;

export class RuleStore {
  readonly #options: RuleStoreOptions;
  readonly #succeeded: Counter;
  readonly #failed: Counter;
  readonly #attempts: Counter;
  readonly #failures: Counter;
  readonly #domains: Gauge;
  readonly #isCurrent: Gauge;
  #rules: RuleSet | undefined;

  constructor(options: RuleStoreOptions) {
    const { stats } = options;
    this.#options = options;
    this.#succeeded = stats.counter(statsNames.configLoadSuccess);
    this.#failed = stats.counter(statsNames.configLoadError);
    this.#attempts = stats.counter(statsNames.runtimeLoadAttempts);
    this.#failures = stats.counter(statsNames.runtimeLoadFailures);
    this.#domains = stats.gauge(statsNames.runtimeNumValues);
    this.#isCurrent = stats.gauge(statsNames.configCurrent);
    this.#isCurrent.value = 1;
  }

  /** Undefined until a first set is loaded. */
  current(): RuleSet | undefined {
    return this.#rules;
  }

  /** Activates a valid load as a whole; an invalid one is logged and changes nothing. */
  apply(load: RuleLoad): void {
    this.#attempts.value += 1;
    if (load.ok) this.#activate(load);
    else this.#reject(load.problems);
  }

  #activate({ rules, warnings }: Extract<RuleLoad, { ok: true }>): void {
    const { logger, health, stats } = this.#options;
    for (const warning of warnings.slice(0, maxLoggedProblems)) {
      logger.warn({ problem: formatProblem(warning) }, 'rule looks wrong');
    }
    // Rules that remain take back their series, with their counts.
    stats.releaseRules();
    this.#rules = rules;
    this.#succeeded.value += 1;
    this.#isCurrent.value = 1;
    this.#domains.value = rules.domains.size;
    health?.set(rules.domains.size > 0);
    logger.info({ domains: rules.domains.size, rules: rules.ruleCount }, 'rules loaded');
  }

  #reject(problems: readonly RuleProblem[]): void {
    const { logger } = this.#options;
    this.#failed.value += 1;
    this.#failures.value += 1;
    this.#isCurrent.value = 0;
    for (const problem of problems.slice(0, maxLoggedProblems)) {
      logger.error({ problem: formatProblem(problem) }, 'rules not loaded');
    }
    logger.error(
      { problems: problems.length, kept: this.#rules?.ruleCount ?? 0 },
      this.#rules === undefined ? 'no active rules, every request fails' : 'keeping the last valid rules',
    );
  }
}

type CreateSource = (settings: Settings, context: Context) => RuleSource;

/**
 * Rule sources by CONFIG_TYPE. A new one is a file or folder, a line here and a value of that
 * setting. Only the chosen one is loaded.
 */
export const ruleSources = {
  FILE: async () => (await import('./file-source.ts')).createFileSource,
  GRPC_XDS_SOTW: async () => (await import('./xds/xds-source.ts')).createXdsSource,
} as const satisfies Record<Settings['configType'], () => Promise<CreateSource>>;
