import { createHash } from 'node:crypto';
import type { Logger } from '@tollgate/kit/logger';
import { compareText } from '@tollgate/kit/text';
import { runInSlices, type Steps } from '@tollgate/kit/time';
import { formatProblem } from '@tollgate/rules/problem';
import { descriptorsPerStep } from '@tollgate/rules/rule-document';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import type { StatsRegistry } from '../metrics/registry.ts';
import { maxLoggedProblems, type RuleLoad } from '../rules/rule-store.ts';
import type { Trial } from './trial.ts';

interface CandidatesOptions {
  readonly trial: Trial;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
  readonly nowMs: () => number;
}

/** A large set must not delay decisions. */
const sliceMs = 5;

/**
 * Puts loaded rules on trial. Unlike a RuleStore, it affects neither health nor the statistics of
 * rules in force.
 */
export class Candidates {
  readonly #options: CandidatesOptions;
  #applied: Promise<void> = Promise.resolve();

  constructor(options: CandidatesOptions) {
    this.#options = options;
  }

  /** Loads are applied in order. */
  apply(load: RuleLoad): void {
    this.#applied = this.#applied.then(() => (load.ok ? this.#activate(load) : this.#reject(load.problems)));
  }

  /** Resolves once all loads so far are applied. */
  applied(): Promise<void> {
    return this.#applied;
  }

  async #activate({ rules, warnings }: Extract<RuleLoad, { ok: true }>): Promise<void> {
    const { trial, stats, logger, nowMs } = this.#options;
    // A management server sends them with the rules, and nearly always there are none.
    if (rules.domains.size === 0 && stats.trial() === undefined) return;
    const version = await runInSlices(hashRules(rules), { sliceMs });
    const current = stats.trial();
    const { size: domains } = rules.domains;
    const set = { version, sinceMs: nowMs(), domains, rules: rules.ruleCount };
    // Counts go on when files change but not their rules.
    const counts = current?.set.version === version ? current : stats.startTrial(set);
    trial.loaded = domains === 0 ? undefined : { rules, counts };
    if (counts === current) return;
    for (const warning of warnings.slice(0, maxLoggedProblems)) {
      logger.warn({ problem: formatProblem(warning) }, 'candidate rule looks wrong');
    }
    if (domains > 0) logger.info({ domains, rules: rules.ruleCount, version }, 'candidate rules loaded');
    else if (current !== undefined) logger.info('no candidate rules any more');
  }

  #reject(problems: Extract<RuleLoad, { ok: false }>['problems']): void {
    const { trial, logger } = this.#options;
    for (const problem of problems.slice(0, maxLoggedProblems)) {
      logger.error({ problem: formatProblem(problem) }, 'candidate rules not loaded');
    }
    logger.error(
      { problems: problems.length },
      trial.loaded === undefined ? 'no rules on trial' : 'keeping the last valid candidate rules',
    );
  }
}

/** Equal for equal rules, in any process. */
function* hashRules({ domains }: RuleSet): Steps<string> {
  const hash = createHash('sha256');
  let nodes = 0;
  const visit = function* (node: RuleNode, depth: number): Steps<void> {
    const { composite, keyLength, sharesThreshold, valueToMetric, match, atomic, onStoreFailure } = node;
    const options = [keyLength, sharesThreshold, valueToMetric, atomic, onStoreFailure];
    hash.update(JSON.stringify([depth, composite, ...options, match?.rule]));
    nodes += 1;
    if (nodes % descriptorsPerStep === 0) yield;
    for (const child of node.children?.values() ?? []) yield* visit(child, depth + 1);
  };
  const roots = [...domains.values()].sort((a, b) => compareText(a.composite, b.composite));
  for (const root of roots) yield* visit(root, 0);
  return hash.digest('hex').slice(0, versionLength);
}

/** Hexadecimal digits: enough to tell a few versions apart, and short on a page. */
const versionLength = 12;
