import type { Logger } from '@tollgate/kit/logger';
import { type CommonSnapshot, countDomains } from './catalog/snapshot.ts';
import type { SourceProblem } from './catalog/source.ts';
import type { ValidationResult } from './catalog/validation-result.ts';

/** Lines per turn: a broken template causes one per object, and the debug page shows all. */
const maxLines = 100;

/** Logs each result and problem once, until it changes. */
export class PipelineLog {
  readonly #logger: Logger;
  /** Messages of objects that are not accepted, by id. */
  readonly #notAccepted = new Map<string, string>();
  #problems = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  results(results: readonly ValidationResult[]): void {
    const changed = results.filter((result) => this.#hasChanged(result));
    for (const result of changed.slice(0, maxLines)) this.#logResult(result);
    const left = changed.length - maxLines;
    if (left > 0) this.#logger.warn({ objects: left }, 'more objects changed, see the debug page');
  }

  deleted(ids: readonly string[]): void {
    for (const id of ids) this.#notAccepted.delete(id);
  }

  problems(problems: readonly SourceProblem[]): void {
    const lines = problems.map(({ source, message }) => `${source}: ${message}`);
    const added = lines.filter((line) => !this.#problems.has(line));
    this.#problems = new Set(lines);
    for (const problem of added.slice(0, maxLines)) this.#logger.warn({ problem }, 'invalid source content');
  }

  served(snapshot: CommonSnapshot, before: CommonSnapshot | undefined, rules: number): void {
    const fields = { domains: countDomains(snapshot), rules, version: snapshot.version };
    const isLifted = countDomains(snapshot) === 0 && before !== undefined && countDomains(before) > 0;
    if (isLifted) this.#logger.warn(fields, 'no rules left, limiters lift all limits');
    else this.#logger.info(fields, 'rules served');
  }

  emptyHeldBack(served: CommonSnapshot | undefined): void {
    this.#logger.warn(
      { domains: served === undefined ? 0 : countDomains(served) },
      'no rules left, limiters keep their limits because of XDS_ALLOW_EMPTY=false',
    );
  }

  #hasChanged({ id, accepted }: ValidationResult): boolean {
    if (accepted.status === 'True') return this.#notAccepted.delete(id);
    if (this.#notAccepted.get(id) === accepted.message) return false;
    this.#notAccepted.set(id, accepted.message);
    return true;
  }

  #logResult({ id, label, generation, accepted }: ValidationResult): void {
    const fields = { object: id, ...(label === id ? undefined : { file: label }), generation };
    if (accepted.status === 'True') this.#logger.info(fields, 'object accepted again');
    else
      this.#logger.warn(
        { ...fields, reason: accepted.reason, problem: accepted.message },
        'object not accepted',
      );
  }
}
