import type { Logger } from '@tollgate/kit/logger';
import { getCharge, type RuleNode } from '@tollgate/rules/rule-set';
import { getAlgorithm } from '../algorithms/registry.ts';
import { statsNames } from '../metrics/names.ts';
import type { Counter, StatsRegistry } from '../metrics/registry.ts';
import type { Limit } from './find-limit.ts';

/** Bounds the memory and the log; checks of further rules are only counted. */
const maxRules = 1_000;

export const usageWarning = 'usage is reported after the response; set charge: always';

/**
 * Finds limits that are checked with 0 hits, which announces a report of the usage after the
 * response, and that take nothing from a report that does not fit: they would admit requests
 * without end.
 */
export class UsageChecks {
  readonly #logger: Logger;
  readonly #counter: Counter;
  /** Paths of rules, so that a reload does not repeat the warning. */
  readonly #seen = new Set<string>();

  constructor({ logger, stats }: { readonly logger: Logger; readonly stats: StatsRegistry }) {
    this.#logger = logger;
    this.#counter = stats.counter(statsNames.unchargedUsageChecks);
  }

  /** Called for each check of 0 hits. */
  observe(limit: Limit, domain: Pick<RuleNode, 'atomic'>): void {
    if (!losesUsage(limit, domain)) return;
    this.#counter.value += 1;
    const { path } = limit.rule;
    if (limit.isOwn || this.#seen.has(path) || this.#seen.size >= maxRules) return;
    this.#seen.add(path);
    this.#logger.warn({ rule: path }, usageWarning);
  }

  /** The warning of a limit that was checked; undefined for others. */
  getWarning(limit: Limit, domain: Pick<RuleNode, 'atomic'>): string | undefined {
    const isSeen = !limit.isOwn && this.#seen.has(limit.rule.path);
    return isSeen && losesUsage(limit, domain) ? usageWarning : undefined;
  }
}

/** The slots of requests in progress are not usage. */
function losesUsage(limit: Limit, domain: Pick<RuleNode, 'atomic'>): boolean {
  return !getAlgorithm(limit.rule.rate).holdsSlots && getCharge(limit.rule, domain) === 'allowed';
}
