import { beforeStar, isRuntimeLevel, type Rule, type RuleNode, staticMetricText } from './rule-set.ts';

/** One key and value of a request descriptor. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** The rule that limits a descriptor. */
export interface Match {
  readonly rule: Rule;
  /**
   * Metric levels, without the domain and not sanitised; `rule.metricPath` itself unless
   * `dynamicMetric`.
   */
  readonly metricPath: readonly string[];
  /** `metricPath` has parts of the request in it, so its number is not bounded by the rules. */
  readonly dynamicMetric: boolean;
  /**
   * The entries for the cache key where share_threshold replaced a value by its pattern, else
   * undefined: the request's own entries go into the key. Undefined rather than a copy lets one
   * Match serve all requests of a rule.
   */
  readonly keyEntries: readonly Entry[] | undefined;
}

/**
 * Finds the rule for a descriptor: one hash look-up a level, whatever the number of rules. Every
 * entry must match a level and the last one must carry the limit; the first node found on a level
 * is final (contract 1.3, spec rules 1-4).
 */
export function matchEntries(domain: RuleNode, entries: readonly Entry[]): Match | undefined {
  let node = domain;
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i];
    const child = entry === undefined ? undefined : findChild(node, entry);
    if (child === undefined) return undefined;
    node = child;
  }
  const { match } = node;
  if (match === undefined || !(match.dynamicMetric || node.shares)) return match;
  return matchOfRequest(node, match, entries);
}

/**
 * The child of `node` that takes an entry: the exact `key_value`, else the first wildcard in
 * configuration order, else the bare `key`.
 */
export function findChild(node: RuleNode, entry: Entry): RuleNode | undefined {
  const { children, wildcards } = node;
  if (children === undefined) return undefined;
  const composite = `${entry.key}_${entry.value}`;
  return children.get(composite) ?? wildcards?.find(composite) ?? children.get(entry.key);
}

/**
 * The pattern as it follows the key of the request in the cache key. The border between key and
 * value is that of the request, which a rule may have elsewhere: the rule `path` = `a_*` takes the
 * entry `path_a` = `b`. With a `*` in the key the whole pattern follows.
 */
function sharedValue({ composite }: RuleNode, key: string): string {
  return composite.startsWith(`${key}_`) ? composite.slice(key.length + 1) : composite;
}

function matchOfRequest(leaf: RuleNode, match: Match, entries: readonly Entry[]): Match {
  const { rule } = match;
  const metricPath = match.dynamicMetric ? new Array<string>(entries.length) : undefined;
  const keyEntries = leaf.shares ? entries.slice() : undefined;
  let node: RuleNode | undefined = leaf;
  for (let i = entries.length - 1; i >= 0 && node !== undefined; i--, node = node.parent) {
    const entry = entries[i];
    if (entry === undefined) continue;
    if (metricPath !== undefined)
      metricPath[i] = metricText(node, entry, { detailed: rule.detailedMetric, shares: leaf.shares });
    if (keyEntries !== undefined && node.sharesThreshold)
      keyEntries[i] = { key: entry.key, value: sharedValue(node, entry.key) };
  }
  return { rule, metricPath: metricPath ?? rule.metricPath, dynamicMetric: match.dynamicMetric, keyEntries };
}

/**
 * The matches of one request that another match of it replaces; true = treat as unmatched. By name,
 * over the whole request, in any order: a limit that is itself dropped still replaces (contract
 * 1.2). An unlimited rule has no counter and stays unlimited when it is replaced.
 */
export function applyReplaces(matches: readonly (Match | undefined)[]): readonly boolean[] {
  let replaced: Set<string> | undefined;
  for (const match of matches) {
    // Few rules replace others, and this runs for every request.
    if (match === undefined || match.rule.replaces.length === 0) continue;
    replaced ??= new Set();
    for (const name of match.rule.replaces) replaced.add(name);
  }
  const names = replaced;
  if (names === undefined) return new Array<boolean>(matches.length).fill(false);
  return matches.map((match) => match !== undefined && isReplaced(match.rule, names));
}

function isReplaced({ name, unlimited }: Rule, names: ReadonlySet<string>): boolean {
  return name !== '' && !unlimited && names.has(name);
}

/** The rule that a metric is for. */
interface MetricRule {
  /** detailed_metric is set. */
  readonly detailed: boolean;
  /** One of its levels has share_threshold. */
  readonly shares: boolean;
}

/** Metric text of a level for one request (contract 1.9). */
function metricText(node: RuleNode, { key, value }: Entry, { detailed, shares }: MetricRule): string {
  if (node.sharesThreshold) return detailed ? beforeStar(node) : staticMetricText(node);
  if (!detailed && !isRuntimeLevel(node)) return node.composite;
  // The original does the same: an empty value leaves its underscore in detailed metrics, unless a
  // level is shared.
  const onlyKey = value === '' && (!detailed || shares);
  return onlyKey ? key : `${key}_${value}`;
}
