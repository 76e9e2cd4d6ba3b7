import type { Rule, RuleNode, RuleSet } from './rule-set.ts';

/** How rules are shown. */
export interface DumpOptions {
  /** What stands in the place of a limit that a rule does not have; by default unit UNKNOWN and the number it names. */
  readonly unlimited?: string;
}

/**
 * Every rule with a limit, one line each, sorted (contract 1.11, where the original's order is random):
 * `<domain.full.key>: unit=<UNIT> requests_per_unit=<n>, shadow_mode: <bool>, quota_mode: <bool>`. An unlimited rule
 * shows unit UNKNOWN and the number that it names without effect, unless `unlimited` has other words for it.
 */
export function dumpRules(rules: RuleSet, { unlimited }: DumpOptions = {}): string[] {
  const lines: string[] = [];
  for (const root of rules.domains.values()) addLines(root, unlimited, lines);
  return lines.sort(byCodeUnits);
}

function addLines(node: RuleNode, unlimited: string | undefined, lines: string[]): void {
  if (node.match !== undefined) lines.push(lineOf(node.match.rule, unlimited));
  for (const child of node.children?.values() ?? []) addLines(child, unlimited, lines);
}

function lineOf(rule: Rule, unlimited: string | undefined): string {
  const { path, unit, requestsPerUnit, shadowMode, quotaMode } = rule;
  const numbers = `unit=${unit?.toUpperCase() ?? 'UNKNOWN'} requests_per_unit=${requestsPerUnit}`;
  const limit = unit === undefined ? (unlimited ?? numbers) : numbers;
  return `${path}: ${limit}, shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}`;
}

const byCodeUnits = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
