import type { RuleProblem } from '@tollgate/rules/problem';
import type { RuleSet } from '@tollgate/rules/rule-set';

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
