import type { Rule, RuleNode } from './rule-set.ts';
import { descriptorsPerStep, type Steps } from './steps.ts';

/** A rule and a name in its `replaces` that no limit has. */
export interface UnknownReplaces {
  readonly rule: Rule;
  readonly name: string;
}

/**
 * The `replaces` entries of a domain that name no limit of it, `most` at most. Keeps the names that are replaced, not
 * those that limits have: nearly no rule replaces anything, and then one walk is all.
 */
export function* findUnknownReplaces(root: RuleNode, most: number): Steps<readonly UnknownReplaces[]> {
  const unknown = new Set<string>();
  yield* visitRules(root, ({ replaces }) => {
    for (const name of replaces) unknown.add(name);
  });
  if (unknown.size === 0) return [];
  yield* visitRules(root, ({ name }) => {
    unknown.delete(name);
  });
  const found: UnknownReplaces[] = [];
  if (unknown.size === 0) return found;
  yield* visitRules(root, (rule) => {
    for (const name of rule.replaces)
      if (found.length < most && unknown.has(name)) found.push({ rule, name });
  });
  return found;
}

function* visitRules(parent: RuleNode, visit: (rule: Rule) => void): Steps<void> {
  let seen = 0;
  for (const child of parent.children?.values() ?? []) {
    if (child.match !== undefined) visit(child.match.rule);
    if (child.children !== undefined) yield* visitRules(child, visit);
    seen++;
    if (seen % descriptorsPerStep === 0) yield;
  }
}
