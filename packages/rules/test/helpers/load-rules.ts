import { type Entry, type Match, matchEntries } from '@tollgate/rules/match';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { loadRuleFiles } from '../../src/read/load-rule-files.ts';

/** Loads rules that are known to be good. */
export function loadRules(text: string): RuleSet {
  const result = loadRuleFiles([{ source: 'rules.yaml', text }], { mergeDomains: false });
  if (!result.ok) throw new Error(`the rules of the test are wrong: ${JSON.stringify(result.problems)}`);
  return result.rules;
}

/** The root of domain `d`. */
export function loadDomain(text: string): RuleNode {
  const root = loadRules(text).domains.get('d');
  if (root === undefined) throw new Error('the rules of the test have no domain d');
  return root;
}

/** Entries from pairs: `[['key', 'value']]`. */
export const entriesOf = (pairs: readonly (readonly [string, string])[]): Entry[] =>
  pairs.map(([key, value]) => ({ key, value }));

/** The match of a descriptor given as pairs. */
export const matchOf = (
  root: RuleNode,
  ...pairs: readonly (readonly [string, string])[]
): Match | undefined => matchEntries(root, entriesOf(pairs));
