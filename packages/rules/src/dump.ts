import type { Rule, RuleNode, RuleSet } from './rule-set.ts';

/**
 * Every rule with a limit, one line each, sorted (contract 1.11, where the original's order is random):
 * `<domain.full.key>: unit=<UNIT> requests_per_unit=<n>, shadow_mode: <bool>, quota_mode: <bool>`. An unlimited rule
 * shows unit UNKNOWN and 0 requests.
 */
export function dumpRules(rules: RuleSet): string[] {
  const lines: string[] = [];
  for (const root of rules.domains.values()) addLines(root, lines);
  return lines.sort(byCodeUnits);
}

function addLines(node: RuleNode, lines: string[]): void {
  if (node.match !== undefined) lines.push(lineOf(node.match.rule));
  for (const child of node.children?.values() ?? []) addLines(child, lines);
}

function lineOf({ path, unit, requestsPerUnit, shadowMode, quotaMode }: Rule): string {
  const limit = `unit=${(unit ?? 'unknown').toUpperCase()} requests_per_unit=${requestsPerUnit}`;
  return `${path}: ${limit}, shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}`;
}

const byCodeUnits = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
