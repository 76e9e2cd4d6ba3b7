import type { Steps } from '@tollgate/kit/time';
import { findLocations, type RuleProblem } from './problem.ts';
import { type DescriptorSpec, descriptorsPerStep, type RuleDocument } from './rule-document.ts';
import type { Rule, RuleNode, RuleSet } from './rule-set.ts';

/** A rule and a name in its `replaces` that no limit has. */
interface UnknownReplaces {
  readonly rule: Rule;
  readonly name: string;
}

/**
 * The `replaces` entries of a domain that name none of its limits, up to `most`. Collects replaced
 * names rather than those of limits: few rules replace others, and then one walk is enough.
 */
function* findUnknownReplaces(root: RuleNode, most: number): Steps<readonly UnknownReplaces[]> {
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

/** Maximum number of warnings per load; a mistake in a template may repeat in every rule. */
export const maxWarnings = 100;

interface Finding {
  readonly path: string;
  readonly message: string;
}

/**
 * Rules that are valid but probably not as intended: rules that an earlier wildcard always hides,
 * rules that a request with another key reaches, because levels are found by `key_value` without a
 * delimiter, and rules that replace a limit that the domain does not have.
 */
export function* findWarnings(
  rules: RuleSet,
  documents: readonly RuleDocument[],
): Steps<readonly RuleProblem[]> {
  const findings: Finding[] = [];
  for (const [domain, root] of rules.domains) {
    yield* checkLevel(root, domain, findings);
    for (const { rule, name } of yield* findUnknownReplaces(root, maxWarnings - findings.length))
      findings.push({ path: rule.path, message: unknownReplaces(name, domain) });
  }
  if (findings.length === 0) return [];
  const locations = findLocations(documents, new Set(findings.map(({ path }) => path)));
  return findings.map(({ path, message }) => ({ source: '', ...locations.get(path), path, message }));
}

function* checkLevel(parent: RuleNode, parentPath: string, findings: Finding[]): Steps<void> {
  const { children } = parent;
  if (children === undefined) return;
  const keys = new Set<string>();
  let seen = 0;
  for (const child of children.values()) {
    keys.add(nodeKey(child));
    seen++;
    if (seen % descriptorsPerStep === 0) yield;
  }
  // Children, and wildcards among them, keep the order of configuration.
  let wildcardCount = 0;
  for (const child of children.values()) {
    if (findings.length >= maxWarnings) return;
    const path = `${parentPath}.${child.composite}`;
    const hidden = hiddenBy(parent, child, wildcardCount);
    if (hidden !== undefined) findings.push({ path, message: hidden });
    const collision = collisionWith(child, keys);
    if (collision !== undefined) findings.push({ path, message: collision });
    if (child.composite.includes('*')) wildcardCount++;
    if (child.children !== undefined) yield* checkLevel(child, path, findings);
    seen++;
    if (seen % descriptorsPerStep === 0) yield;
  }
}

/** `order` is the number of wildcards before the child on its level. */
function hiddenBy(parent: RuleNode, child: RuleNode, order: number): string | undefined {
  const { composite, keyLength } = child;
  const star = composite.indexOf('*');
  const isBare = composite.length === keyLength;
  if (parent.wildcards === undefined || (star === -1 && !isBare)) return undefined;
  // A bare key is looked up after every wildcard, a wildcard after those before it.
  const first = parent.wildcards.findCovering(star === -1 ? `${composite}_` : composite.slice(0, star));
  if (first === undefined || (star !== -1 && first.order >= order)) return undefined;
  return `descriptor '${composite}' can never match: the wildcard '${first.value.composite}' is tried first and takes all it would`;
}

function collisionWith(child: RuleNode, keys: ReadonlySet<string>): string | undefined {
  const { composite, keyLength } = child;
  for (let at = composite.indexOf('_'); at !== -1; at = composite.indexOf('_', at + 1)) {
    if (at === keyLength) continue;
    const key = composite.slice(0, at);
    if (!keys.has(key)) continue;
    return `descriptor '${composite}' also takes requests with key '${key}' and value '${composite.slice(at + 1)}'`;
  }
  return undefined;
}

const unknownReplaces = (name: string, domain: string) =>
  `replaces '${name}' has no effect: no limit of domain '${domain}' has that name; correct it, or name the limit meant`;

const nodeKey = (node: RuleNode) => node.composite.slice(0, node.keyLength);

/** Maximum number of reported exemptions. */
const maxExemptions = 100;

/**
 * Descriptors without a limit and without descriptors below them: requests that they match are not
 * limited. Intended, or a `rateLimit` is missing.
 */
export function findExemptions({ source, descriptors, locate }: RuleDocument): readonly RuleProblem[] {
  const found: RuleProblem[] = [];
  const visit = (specs: readonly DescriptorSpec[]): void => {
    for (const { key, at, rateLimit, descriptors: below = [] } of specs) {
      if (found.length === maxExemptions) return;
      if (below.length > 0) visit(below);
      else if (rateLimit === undefined) {
        const location = at === undefined ? undefined : locate?.(at);
        found.push({
          source,
          path: key,
          ...location,
          message: 'has neither rateLimit nor descriptors: requests that it matches are not limited',
        });
      }
    }
  };
  visit(descriptors);
  return found;
}
