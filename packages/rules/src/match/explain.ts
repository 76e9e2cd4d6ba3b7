import { applyReplaces, type Entry, findChild, type Match, matchEntries } from './match.ts';
import { explainMiss } from './near-misses.ts';
import {
  type AlgorithmOptions,
  type Charge,
  getMaxDebt,
  type Lease,
  type Rule,
  type RuleNode,
  type RuleSet,
  type StoreFailurePolicy,
  type Unit,
} from './rule-set.ts';

/** The part of a request that rules match. */
export interface ExplainRequest {
  readonly domain: string;
  readonly descriptors: readonly { readonly entries: readonly Entry[] }[];
}

/** How the rules match a request. Plain data, ready for JSON. */
export interface Explanation {
  readonly domain: string;
  /** False when the domain has no rules, so that nothing is limited. */
  readonly domainFound: boolean;
  readonly descriptors: readonly DescriptorExplanation[];
}

/** How the rules match one descriptor. */
export interface DescriptorExplanation {
  readonly entries: readonly Entry[];
  /** `replaced` and `no_limit` are both OK without counting. */
  readonly outcome: 'limited' | 'unlimited' | 'replaced' | 'no_limit';
  /**
   * The matched levels of the tree: all those of a matching rule, or those before the first miss.
   */
  readonly levels: readonly LevelExplanation[];
  readonly rule?: RuleSummary;
  /** Paths of the rules that replace this one. */
  readonly replacedBy?: readonly string[];
  /** Why no rule limits it, and why the most similar rules do not match. */
  readonly reasons: readonly string[];
}

/** One entry and the node that matched it. */
interface LevelExplanation {
  readonly entry: Entry;
  /** `key` or `key_value` as configured. */
  readonly node: string;
  readonly by: 'key and value' | 'wildcard' | 'key';
}

/** A rule in an explanation. */
interface RuleSummary {
  readonly path: string;
  readonly unit?: Unit;
  /** Length of the windows, instead of `unit`. */
  readonly periodSeconds?: number;
  /** Windows follow the calendar of this zone. */
  readonly timeZone?: string;
  readonly requestsPerUnit?: number;
  /** Absent for fixed windows. */
  readonly rate?: Pick<AlgorithmOptions, 'algorithm' | 'burst'>;
  readonly lease?: Lease;
  /** Absent for the default. */
  readonly charge?: Charge;
  /** Hits that may be counted beyond the limit. */
  readonly maxDebt?: number;
  /** Absent when the setting of the limiter decides. */
  readonly onStoreFailure?: StoreFailurePolicy;
  /** Present in a domain that is atomic. */
  readonly atomic?: true;
  readonly name?: string;
  readonly replaces?: readonly string[];
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** Levels of the metric of this request, after the domain. */
  readonly metricPath: readonly string[];
  /** The entries in the cache key, where share_threshold made them differ from the request's. */
  readonly keyEntries?: readonly Entry[];
}

/**
 * Explains which rule matches each descriptor of a request, what replaces it, and why similar rules
 * do not match.
 */
export function explain(rules: RuleSet, request: ExplainRequest): Explanation {
  const { domain, descriptors } = request;
  const root = rules.domains.get(domain);
  if (root === undefined) {
    const reason = `no rules for domain '${domain}'`;
    const unmatched = descriptors.map(({ entries }) => noLimit(entries, [], [reason]));
    return { domain, domainFound: false, descriptors: unmatched };
  }
  const matches = descriptors.map(({ entries }) => matchEntries(root, entries));
  const dropped = applyReplaces(matches);
  const explained = descriptors.map(({ entries }, index) => {
    const match = matches[index];
    const { levels, last } = walk(root, entries);
    if (match === undefined)
      return noLimit(entries, levels, explainMiss(root, entries, { matched: levels.length, last }));
    const replacedBy = dropped[index] === true ? findReplacers(match, matches) : undefined;
    const rule = summarize(match, root);
    return limited({ entries, levels, match, rule, replacedBy });
  });
  return { domain, domainFound: true, descriptors: explained };
}

function noLimit(
  entries: readonly Entry[],
  levels: readonly LevelExplanation[],
  reasons: readonly string[],
): DescriptorExplanation {
  return { entries, outcome: 'no_limit', levels, reasons };
}

interface Limited {
  readonly entries: readonly Entry[];
  readonly levels: readonly LevelExplanation[];
  readonly match: Match;
  readonly rule: RuleSummary;
  readonly replacedBy: readonly string[] | undefined;
}

function limited({ entries, levels, match, rule, replacedBy }: Limited): DescriptorExplanation {
  if (replacedBy !== undefined)
    return {
      entries,
      outcome: 'replaced',
      levels,
      rule,
      replacedBy,
      reasons: [`replaced by ${replacedBy.join(', ')}`],
    };
  return { entries, outcome: match.rule.unlimited ? 'unlimited' : 'limited', levels, rule, reasons: [] };
}

function summarize({ rule, metricPath, keyEntries }: Match, root: RuleNode): RuleSummary {
  const { path, requestsPerUnit, unlimited, rate, lease, charge, name, replaces, shadowMode, quotaMode } =
    rule;
  const maxDebt = rate && getMaxDebt(rate);
  const onStoreFailure = unlimited ? undefined : (rule.onStoreFailure ?? root.onStoreFailure);
  return {
    path,
    ...(unlimited ? undefined : { ...describeWindow(rule), requestsPerUnit }),
    ...(rate && { rate: { algorithm: rate.algorithm, burst: rate.burst } }),
    ...(lease === undefined ? undefined : { lease }),
    ...(charge === undefined ? undefined : { charge }),
    ...(maxDebt === undefined ? undefined : { maxDebt }),
    ...(onStoreFailure === undefined ? undefined : { onStoreFailure }),
    ...(root.atomic === true && !unlimited ? { atomic: true } : undefined),
    ...(name === '' ? undefined : { name }),
    ...(replaces.length === 0 ? undefined : { replaces }),
    shadowMode,
    quotaMode,
    metricPath,
    ...(keyEntries === undefined ? undefined : { keyEntries }),
  };
}

function describeWindow({
  unit,
  unitSeconds,
  windows,
}: Rule): Pick<RuleSummary, 'unit' | 'periodSeconds' | 'timeZone'> {
  if (unit === undefined) return { periodSeconds: unitSeconds };
  return windows?.timeZone === undefined ? { unit } : { unit, timeZone: windows.timeZone };
}

function findReplacers({ rule }: Match, matches: readonly (Match | undefined)[]): readonly string[] {
  const paths = new Set<string>();
  for (const other of matches) if (other?.rule.replaces.includes(rule.name)) paths.add(other.rule.path);
  return [...paths];
}

/** The nodes that take the entries, one after the other, until one is not taken. */
function walk(root: RuleNode, entries: readonly Entry[]): { levels: LevelExplanation[]; last: RuleNode } {
  const levels: LevelExplanation[] = [];
  let last = root;
  for (const entry of entries) {
    const node = findChild(last, entry);
    if (node === undefined) break;
    levels.push({ entry, node: node.composite, by: howMatched(node, entry) });
    last = node;
  }
  return { levels, last };
}

function howMatched({ composite }: RuleNode, { key, value }: Entry): LevelExplanation['by'] {
  if (composite === `${key}_${value}`) return 'key and value';
  return composite === key ? 'key' : 'wildcard';
}

/** An explanation as indented lines; `describe` adds a line to a descriptor, by its index. */
export function formatExplanation(
  { domain, descriptors }: Explanation,
  describe: (index: number) => string | undefined = () => undefined,
): string {
  const lines = [`domain ${domain}`];
  for (const [index, descriptor] of descriptors.entries()) {
    lines.push(...descriptorLines(descriptor));
    const note = describe(index);
    if (note !== undefined) lines.push(`    ${note}`);
  }
  return lines.join('\n');
}

function descriptorLines({ entries, levels, outcome, rule, reasons }: DescriptorExplanation): string[] {
  const name = entries.map(({ key, value }) => `${key}=${value}`).join(', ');
  const lines = [`  (${name}): ${rule === undefined ? 'no limit' : `${outcome}${limitText(rule, outcome)}`}`];
  for (const { entry, node, by } of levels)
    lines.push(`    ${entry.key}=${entry.value} matched '${node}' by ${by}`);
  if (rule !== undefined) lines.push(`    rule ${rule.path}${flagText(rule)}`);
  for (const reason of reasons) lines.push(`    ${reason}`);
  return lines;
}

function limitText(
  { unit, periodSeconds, timeZone, requestsPerUnit, rate }: RuleSummary,
  outcome: DescriptorExplanation['outcome'],
): string {
  if (requestsPerUnit === undefined) return '';
  const length = unit ?? `${periodSeconds} s`;
  const zone = timeZone === undefined ? '' : ` of ${timeZone}`;
  const time =
    rate?.algorithm === 'concurrency'
      ? `at once, expiring after ${unit === undefined ? length : `1 ${unit}`}`
      : `per ${length}${zone}`;
  const limit = `${requestsPerUnit} ${time}`;
  return outcome === 'replaced' ? `, would be ${limit}` : ` to ${limit}`;
}

function flagText({
  rate,
  lease,
  charge,
  maxDebt,
  onStoreFailure,
  atomic,
  name,
  replaces,
  shadowMode,
  quotaMode,
}: RuleSummary): string {
  const flags = [
    rate?.algorithm === 'token_bucket' ? `token_bucket, burst ${rate.burst}` : (rate?.algorithm ?? ''),
    lease === undefined ? '' : `leases of ${lease.hits} hits`,
    charge === undefined ? '' : `charges ${charge}${maxDebt === undefined ? '' : `, debt up to ${maxDebt}`}`,
    onStoreFailure === undefined ? '' : `on store failure ${onStoreFailure}`,
    atomic === true ? 'all or nothing' : '',
    name === undefined ? '' : `name ${name}`,
    replaces === undefined ? '' : `replaces ${replaces.join(', ')}`,
    shadowMode ? 'shadow mode' : '',
    quotaMode ? 'quota mode' : '',
  ].filter((flag) => flag !== '');
  return flags.length === 0 ? '' : ` (${flags.join('; ')})`;
}
