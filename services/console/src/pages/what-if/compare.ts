import { matchEntries } from '@tollgate/rules/match';
import type { Rule, RuleNode } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import { isCut } from '../limits/descriptor.ts';
import type { Hour, HourKey } from '../limits/hour.ts';
import { limitText } from '../limits/page.ts';
import { type Estimate, estimate } from './estimate.ts';

/** Outcomes for a key. The changes that need a person come first. */
export const results = {
  refused: 'would be refused',
  more: 'refused more',
  unlimited: 'no longer limited',
  freed: 'freed',
  less: 'refused less',
  unknown: 'not known',
  unchanged: 'unchanged',
} as const;

export type Result = keyof typeof results;

/** A key under the limits in force, and under those of the candidate. */
export interface ComparedKey {
  readonly key: HourKey;
  readonly hits: number;
  /** Whether there may have been more hits, so that all numbers are lower bounds. */
  readonly mayMiss: boolean;
  /** Hits that were refused. */
  readonly refused: number;
  /** Undefined where no rule of the candidate matches. */
  readonly rule: Rule | undefined;
  readonly limit: string;
  /** Undefined where it cannot be estimated. */
  readonly estimate: Estimate | undefined;
  readonly result: Result;
  /** Why the result is not that of the numbers. */
  readonly reason?: string;
}

export interface ComparedRules {
  readonly domains: ReadonlyMap<string, RuleNode>;
  /**
   * Domains that other objects may have a part of, with the rules in force of the objects of the
   * candidate, if there are any. The candidate has all other domains as a whole.
   */
  readonly live: ReadonlyMap<string, RuleNode | undefined>;
}

export interface Comparison {
  readonly keys: readonly ComparedKey[];
  /** Keys of the domains that other objects limit. */
  readonly others: number;
}

/** Compares the keys of the domains of the candidate. */
export function compareKeys({ domains, live }: ComparedRules, hour: Hour): Comparison {
  let others = 0;
  const keys = hour.keys.flatMap((key): readonly ComparedKey[] => {
    const root = domains.get(key.domain);
    if (root === undefined) return [];
    const rule = matchEntries(root, key.entries)?.rule;
    if (rule === undefined && isOfOther(live, key)) {
      others += 1;
      return [];
    }
    return [compareKey(key, rule, hour)];
  });
  const order = Object.keys(results);
  const byResult = (a: ComparedKey, b: ComparedKey) =>
    order.indexOf(a.result) - order.indexOf(b.result) || b.hits - a.hits;
  return { keys: keys.sort(byResult), others };
}

/** Whether another object of the domain limits the key, and the candidate never did. */
function isOfOther(live: ComparedRules['live'], { domain, entries }: HourKey): boolean {
  if (!live.has(domain)) return false;
  const root = live.get(domain);
  return root === undefined || matchEntries(root, entries) === undefined;
}

function compareKey(key: HourKey, rule: Rule | undefined, hour: Hour): ComparedKey {
  const refused = sum(key.refused);
  const missed = sum(key.missed);
  const made = { key, rule, hits: sum(key.hits), refused, mayMiss: missed > 0 };
  if (rule === undefined || rule.unlimited) {
    const limit = rule === undefined ? 'none' : 'unlimited';
    return { ...made, limit, estimate: undefined, result: 'unlimited' };
  }
  const limit = describeRule(rule);
  const kept = findKept(key);
  if (kept !== undefined) return { ...made, limit, estimate: undefined, result: 'unchanged', reason: kept };
  if (isCut(key))
    return { ...made, limit, estimate: undefined, result: 'unknown', reason: 'its text is too long' };
  const firstMinute = hour.sinceMs / 60_000;
  const found = estimate(rule, { firstMinute, hits: key.hits, peakSecond: key.peakSecond });
  if (isSame(key, rule)) return { ...made, limit, estimate: found, result: 'unchanged' };
  const evaluated = evaluate(rule, refused, found);
  if (missed === 0) return { ...made, limit, estimate: found, ...evaluated };
  const add = (numbers: readonly number[]) => numbers.map((one, index) => one + (key.missed[index] ?? 0));
  const most = estimate(rule, { firstMinute, hits: add(key.hits), peakSecond: add(key.peakSecond) });
  const others = [
    evaluate(rule, refused, most),
    evaluate(rule, refused + missed, found),
    evaluate(rule, refused + missed, most),
  ];
  const isKnown = others.every(({ result }) => result === evaluated.result);
  const unknown = { result: 'unknown', reason: `up to ${missed} hits are missing` } as const;
  return { ...made, limit, estimate: found, ...(isKnown ? evaluated : unknown) };
}

/** Limits that no rule changes. */
function findKept({ fromRequest, override }: HourKey): string | undefined {
  if (override !== undefined) return 'the override stays';
  return fromRequest ? 'the request has a limit of its own' : undefined;
}

function evaluate(
  { quotaMode, shadowMode }: Rule,
  before: number,
  found: Estimate | undefined,
): Pick<ComparedKey, 'result' | 'reason'> {
  if (found === undefined)
    return {
      result: 'unknown',
      reason: quotaMode ? 'quotas refuse together' : 'concurrency is not recorded',
    };
  const after = shadowMode ? 0 : found.refused;
  const reason = shadowMode ? { reason: 'shadow mode refuses nothing' } : {};
  if (after > 0 && before === 0) return { result: 'refused' };
  if (after === 0 && before > 0) return { result: 'freed', ...reason };
  if (after === before) return { result: 'unchanged', ...reason };
  return { result: after > before ? 'more' : 'less' };
}

function isSame(key: HourKey, rule: Rule): boolean {
  return (
    limitText(key) === describeRule(rule) &&
    key.shadowMode === rule.shadowMode &&
    key.algorithm === getAlgorithm(rule)
  );
}

function describeRule(rule: Rule): string {
  const algorithm = getAlgorithm(rule);
  return limitText({
    algorithm,
    requestsPerUnit: rule.requestsPerUnit,
    unit: rule.unit ?? formatPeriod(rule.unitSeconds),
    ...(algorithm === 'token_bucket' && rule.rate !== undefined && { burst: rule.rate.burst }),
  });
}

function getAlgorithm({ rate }: Rule): HourKey['algorithm'] {
  return rate?.algorithm ?? 'fixed_window';
}

/** Keys of a rule by their result. */
export interface RuleSummary {
  /** Path of the rule; undefined for keys without one. */
  readonly path: string | undefined;
  readonly limit: string;
  readonly keys: number;
  readonly counts: ReadonlyMap<Result, number>;
}

/** The rules of the candidate with limits, and the keys of each. */
export function summarize(
  domains: ReadonlyMap<string, RuleNode>,
  keys: readonly ComparedKey[],
): readonly RuleSummary[] {
  const byPath = Map.groupBy(keys, ({ rule }) => rule?.path);
  const rules = [...domains.values()].flatMap((root) => [...limitedRules(root)]);
  const unmatched = byPath.get(undefined);
  return [
    ...rules.map((rule) =>
      toSummary(rule.path, rule.unlimited ? 'unlimited' : describeRule(rule), byPath.get(rule.path) ?? []),
    ),
    ...(unmatched === undefined ? [] : [toSummary(undefined, 'none', unmatched)]),
  ];
}

function toSummary(path: string | undefined, limit: string, keys: readonly ComparedKey[]): RuleSummary {
  const counts = new Map<Result, number>();
  for (const { result } of keys) counts.set(result, (counts.get(result) ?? 0) + 1);
  return { path, limit, keys: keys.length, counts };
}

function* limitedRules(node: RuleNode): Generator<Rule> {
  if (node.match !== undefined) yield node.match.rule;
  for (const child of node.children?.values() ?? []) yield* limitedRules(child);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
