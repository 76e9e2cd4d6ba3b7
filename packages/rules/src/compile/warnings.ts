import type { Steps } from '@tollgate/kit/time';
import { descriptorsPerStep, type RuleDocument } from '../definition/document.ts';
import { findLocations, type RuleProblem } from '../definition/problem.ts';
import { fileSpelling, type Spelling } from '../definition/spelling.ts';
import { isBare, type Rule, type RuleNode, type RuleSet, unitSeconds } from '../match/rule-set.ts';
import { formatPeriod } from '../match/windows.ts';

/** Maximum number of warnings per load; a mistake in a template may repeat in every rule. */
export const maxWarnings = 100;

interface Finding {
  readonly path: string;
  readonly message: string;
}

interface WarningOptions {
  /** Rules that replace others. */
  readonly replacing: readonly Rule[];
  readonly calendarMonths: boolean;
}

/**
 * Rules that are valid but probably not as intended: rules that an earlier wildcard always hides,
 * rules that a request with another key reaches, because levels are found by `key_value` without a
 * delimiter, rules that replace a limit that the domain does not have, limits that another one
 * above always undercuts, leases in atomic domains, and months that are not those of a calendar.
 */
export function* findWarnings(
  { domains }: RuleSet,
  documents: readonly RuleDocument[],
  { replacing, calendarMonths }: WarningOptions,
): Steps<readonly RuleProblem[]> {
  const findings: Finding[] = [];
  const replacingByDomain = Map.groupBy(replacing, ({ domain }) => domain);
  const spellings = new Map(documents.map(({ domain, spelling }) => [domain, spelling]));
  const replacedNames = new Set(replacing.flatMap(({ replaces }) => replaces));
  for (const [domain, root] of domains) {
    const spelling = spellings.get(domain) ?? fileSpelling;
    yield* checkLevel(root, domain, { findings, replacedNames, spelling });
    yield* checkReplaced(root, replacingByDomain.get(domain), findings);
    if (root.atomic === true) yield* checkLeases(root, findings);
    if (!calendarMonths) yield* checkMonths(root, spelling, findings);
  }
  if (findings.length === 0) return [];
  const locations = findLocations(documents, new Set(findings.map(({ path }) => path)));
  return findings.map(({ path, message }) => ({ source: '', ...locations.get(path), path, message }));
}

/** Finds names in `replaces` that no limit of the domain has. */
function* checkReplaced(
  root: RuleNode,
  replacing: readonly Rule[] | undefined,
  findings: Finding[],
): Steps<void> {
  if (replacing === undefined) return;
  const unknown = new Set(replacing.flatMap(({ replaces }) => replaces));
  yield* visitRules(root, ({ name }) => {
    unknown.delete(name);
  });
  for (const { path, domain, replaces } of replacing) {
    for (const name of replaces) {
      if (findings.length === maxWarnings || !unknown.has(name)) continue;
      const message = `replaces '${name}' has no effect: no limit of domain '${domain}' has that name; correct it, or name the limit meant`;
      findings.push({ path, message });
    }
  }
}

/** Finds leases where the store decides all limits of a request together. */
function* checkLeases(root: RuleNode, findings: Finding[]): Steps<void> {
  yield* visitRules(root, ({ path, lease }) => {
    if (lease === undefined || findings.length === maxWarnings) return;
    findings.push({ path, message: 'lease has no effect in a domain that is atomic: remove one of them' });
  });
}

/** Notes, once for each domain, that a month without a time zone is as long as any other. */
function* checkMonths(root: RuleNode, spelling: Spelling, findings: Finding[]): Steps<void> {
  let first: string | undefined;
  let others = 0;
  yield* visitRules(root, ({ path, unit, rate, windows }) => {
    if (unit !== 'month' || rate !== undefined || windows !== undefined) return;
    if (first === undefined) first = path;
    else others++;
  });
  if (first === undefined || findings.length === maxWarnings) return;
  const also = others === 0 ? '' : `, also in ${others} more of the domain`;
  const message = `unit ${spelling.month} is 30 days, counted from the epoch${also}: set ${spelling.time_zone} for months of the calendar, or period: 720h`;
  findings.push({ path: first, message });
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

interface LevelCheck {
  readonly findings: Finding[];
  /** Names that a rule of any domain replaces. */
  readonly replacedNames: ReadonlySet<string>;
  readonly spelling: Spelling;
}

function* checkLevel(parent: RuleNode, parentPath: string, check: LevelCheck): Steps<void> {
  const { findings } = check;
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
    const undercut = undercutBy(child, check);
    if (undercut !== undefined) findings.push({ path, message: undercut });
    if (child.composite.includes('*')) wildcardCount++;
    if (child.children !== undefined) yield* checkLevel(child, path, check);
    seen++;
    if (seen % descriptorsPerStep === 0) yield;
  }
}

/** `order` is the number of wildcards before the child on its level. */
function hiddenBy(parent: RuleNode, child: RuleNode, order: number): string | undefined {
  const { composite } = child;
  const star = composite.indexOf('*');
  if (parent.wildcards === undefined || (star === -1 && !isBare(child))) return undefined;
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

/**
 * A counter of a rule is part of the counter of each rule above it: that one is at least as high
 * when its window contains whole windows of the other, and a request sends both descriptors. With
 * other algorithms this cannot be proven. Limits that may be dropped from a request, or that do not
 * refuse on their own, undercut none.
 */
function undercutBy(
  { match, parent }: RuleNode,
  { replacedNames, spelling }: LevelCheck,
): string | undefined {
  if (match === undefined || !refusesByWindow(match.rule)) return undefined;
  const { rule } = match;
  for (let above = parent; above !== undefined; above = above.parent) {
    const upper = above.match?.rule;
    if (upper === undefined || !refusesByWindow(upper)) continue;
    if (upper.requestsPerUnit > rule.requestsPerUnit || !hasWholeWindows(upper, rule)) continue;
    if (upper.name !== '' && replacedNames.has(upper.name)) continue;
    const [lower, higher] = [formatLimit(rule, spelling), formatLimit(upper, spelling)];
    return `limit '${rule.path}' (${lower}) never refuses a request that '${upper.path}' (${higher}) allows, if both descriptors are sent: lower this limit, raise that one, or replace that one by its name`;
  }
  return undefined;
}

/** A month may be one of the calendar: only days are sure to be whole in it, and it in none. */
function hasWholeWindows(upper: Rule, lower: Rule): boolean {
  if (lower.unit === 'month') return upper.unit === 'month';
  return (upper.unit === 'month' ? unitSeconds.day : upper.unitSeconds) % lower.unitSeconds === 0;
}

/** Whether a rule refuses requests on its own, by a count in a fixed window. */
const refusesByWindow = ({ unlimited, rate, windows, shadowMode, quotaMode }: Rule): boolean =>
  !unlimited && rate === undefined && windows?.timeZone === undefined && !shadowMode && !quotaMode;

const formatLimit = ({ requestsPerUnit, unit, unitSeconds: seconds }: Rule, spelling: Spelling): string =>
  `${requestsPerUnit} per ${unit === undefined ? formatPeriod(seconds) : spelling[unit]}`;

const nodeKey = (node: RuleNode) => node.composite.slice(0, node.keyLength);
