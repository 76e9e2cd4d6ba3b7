import { findPlaces } from './find-places.ts';
import type { RuleProblem } from './problem.ts';
import type { RuleDocument } from './rule-document.ts';
import type { RuleNode, RuleSet } from './rule-set.ts';
import { descriptorsPerStep, type Steps } from './steps.ts';
import { findUnknownReplaces } from './unknown-replaces.ts';

/** Most warnings kept of one load; one mistake in a template may repeat in every rule. */
export const maxWarnings = 100;

interface Finding {
  readonly path: string;
  readonly message: string;
}

/**
 * Rules that are accepted but cannot do what they seem to: those that an earlier wildcard hides for certain,
 * those that a request with another key reaches, because a level is found by `key_value` without a border between, and
 * those that replace a limit which the domain does not have.
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
  const places = findPlaces(documents, new Set(findings.map(({ path }) => path)));
  return findings.map(({ path, message }) => ({ source: '', ...places.get(path), path, message }));
}

function* checkLevel(parent: RuleNode, parentPath: string, findings: Finding[]): Steps<void> {
  const { children } = parent;
  if (children === undefined) return;
  const keys = new Set<string>();
  let seen = 0;
  for (const child of children.values()) {
    keys.add(keyOf(child));
    seen++;
    if (seen % descriptorsPerStep === 0) yield;
  }
  // Children keep the order of configuration, and so do wildcards among them.
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

/** `order` is the number of wildcards of the level that stand before the child. */
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

const keyOf = (node: RuleNode) => node.composite.slice(0, node.keyLength);
