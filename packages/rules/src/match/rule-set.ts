import type { JsonObject } from '@tollgate/kit/json';
import type { Algorithm, Charge, StoreFailurePolicy, Unit } from '../definition/values.ts';

export type { Charge, StoreFailurePolicy, Unit };

import type { Match } from './match.ts';
import type { WildcardIndex } from './wildcard-index.ts';
import type { Windows } from './windows.ts';

/**
 * Length of each unit in seconds. Windows are fixed and start at the epoch, so a month is always 30
 * days (2592000 s) and a year 365 days (31536000 s).
 */
export const unitSeconds: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

/** Options of a rule that does not count in fixed windows. */
export interface AlgorithmOptions {
  readonly algorithm: Exclude<Algorithm, 'fixed_window'>;
  /** Requests that may come at once: the size of a bucket, or the limit of the others. */
  readonly burst: number;
  /**
   * Hits that may be counted beyond the limit with `charge: always`: `burst` for as many as
   * `burst`. Undefined where a refused request takes nothing.
   */
  readonly maxDebt?: number | 'burst' | undefined;
}

/** Hits that a replica reserves at once, and then counts without the store. */
export interface Lease {
  readonly hits: number;
  /** `requestsPerUnit` of the rule. */
  readonly limit: number;
}

/** A limit that is not counted in fixed windows. */
export interface Rate extends AlgorithmOptions {
  /** Requests per period; 0 refuses all. */
  readonly limit: number;
  readonly periodSeconds: number;
}

/** All rules in force. Immutable: a reload builds a new one. */
export interface RuleSet {
  /** Root node of each domain. */
  readonly domains: ReadonlyMap<string, RuleNode>;
  /** Number of rules that carry a limit (unlimited ones included). */
  readonly ruleCount: number;
}

/** A limit and its options. */
export interface Rule {
  /** `domain.full.composite.key`, each level as configured. */
  readonly path: string;
  readonly domain: string;
  /** Absent when unlimited, and with a period. */
  readonly unit?: Unit | undefined;
  /** The period, or the length of the unit, in seconds; 0 when unlimited. */
  readonly unitSeconds: number;
  /** Fixed windows other than those of a unit. */
  readonly windows?: Windows | undefined;
  /** uint32; 0 refuses every request. Without effect when unlimited. */
  readonly requestsPerUnit: number;
  /** Requests that may come at once: the burst of a rate, or `requestsPerUnit`. */
  readonly capacity: number;
  readonly unlimited: boolean;
  /** Undefined for fixed windows. */
  readonly rate?: Rate | undefined;
  /** Undefined where each hit is counted in the store. */
  readonly lease?: Lease | undefined;
  /** The configured value; see `getCharge` for the default. */
  readonly charge?: Charge | undefined;
  /** Empty when the limit has no name. */
  readonly name: string;
  /** Policy of the limit itself; undefined for the policy of its domain. */
  readonly onStoreFailure?: StoreFailurePolicy | undefined;
  /** Names of the limits dropped from a request that this rule matches. */
  readonly replaces: readonly string[];
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** The metric has the runtime value on every level. */
  readonly detailedMetric: boolean;
  readonly metadata?: JsonObject | undefined;
  /** Metric levels as configured, without the domain and not sanitised. */
  readonly metricPath: readonly string[];
  /** Whether a request has matched it since it was loaded: the only part that changes. */
  matched: boolean;
}

/** One level of the tree: a domain, or a descriptor entry below it. */
export interface RuleNode {
  /** `key` or `key_value` as configured, its key in the parent; the domain for a root. */
  readonly composite: string;
  /** Length of the key inside `composite`. */
  readonly keyLength: number;
  /** Undefined for the root of a domain. */
  readonly parent: RuleNode | undefined;
  /** Children by composite, including wildcards. Undefined without children, as for most nodes. */
  readonly children: ReadonlyMap<string, RuleNode> | undefined;
  /** Items of `children` with a `*`. */
  readonly wildcards: WildcardIndex<RuleNode> | undefined;
  /**
   * Match of a request whose last entry is here; undefined without a limit. Shared by all such
   * requests.
   */
  readonly match: Match | undefined;
  /** share_threshold is set: the cache key has the pattern instead of the request's value. */
  readonly sharesThreshold: boolean;
  /** value_to_metric is set. */
  readonly valueToMetric: boolean;
  /** This level or one above it has `sharesThreshold`. */
  readonly shares: boolean;
  /** Policy, at the root, of the limits of the domain that have none. */
  readonly onStoreFailure?: StoreFailurePolicy | undefined;
  /** Whether, at the root, a request is counted by all of its limits, or by none. */
  readonly atomic?: boolean | undefined;
}

/** Which hits a limit counts, by default as envoyproxy/ratelimit does in fixed windows. */
export function getCharge(
  { charge, rate }: Pick<Rule, 'charge' | 'rate'>,
  { atomic }: Pick<RuleNode, 'atomic'>,
): Charge {
  return charge ?? (rate === undefined && atomic !== true ? 'always' : 'allowed');
}

/** The hits that may be counted beyond the limit; undefined where refused hits are not counted. */
export function getMaxDebt({ maxDebt, burst }: Pick<Rate, 'maxDebt' | 'burst'>): number | undefined {
  return maxDebt === 'burst' ? burst : maxDebt;
}

/** Whether a level has a key without a value. */
export const isBare = (node: RuleNode): boolean => node.composite.length === node.keyLength;

/**
 * Whether a level's metric text depends on the request: value_to_metric on a bare key or a
 * wildcard, not shared.
 */
export function isRuntimeLevel(node: RuleNode): boolean {
  return node.valueToMetric && !node.sharesThreshold && (isBare(node) || node.composite.includes('*'));
}

/**
 * Metric text of a level as configured. With share_threshold and value_to_metric it ends before the
 * `*`: the spec's reading, where the original keeps the `*` (contract sections 0 and 1.9).
 */
export function staticMetricText(node: RuleNode): string {
  return node.sharesThreshold && node.valueToMetric ? beforeStar(node) : node.composite;
}

/** A `*` in the key counts only when the value has none. */
export function beforeStar({ composite, keyLength }: RuleNode): string {
  const inValue = composite.indexOf('*', keyLength);
  return composite.slice(0, inValue === -1 ? composite.indexOf('*') : inValue);
}

/** Options of dumping rules. */
export interface DumpOptions {
  /** Text for an unlimited rule. Default: unit UNKNOWN and the configured number. */
  readonly unlimited?: string;
}

/**
 * Every rule with a limit, one line each, sorted (contract 1.11, where the original's order is
 * random): `<domain.full.key>: unit=<UNIT> requests_per_unit=<n>, shadow_mode: <bool>, quota_mode:
 * <bool>`, with `period=<n>s`, `time_zone`, `algorithm`, `burst`, `lease`, `charge` and `max_debt`
 * after the number where a rule has them. An unlimited rule has unit UNKNOWN and its number, which
 * has no effect, unless `unlimited` gives another text.
 */
export function dumpRules(rules: RuleSet, { unlimited }: DumpOptions = {}): string[] {
  const lines: string[] = [];
  for (const root of rules.domains.values()) addLines(root, { root, unlimited }, lines);
  return lines.sort(byCodeUnits);
}

interface RuleFormat {
  readonly root: RuleNode;
  readonly unlimited: string | undefined;
}

function addLines(node: RuleNode, format: RuleFormat, lines: string[]): void {
  if (node.match !== undefined) lines.push(formatRule(node.match.rule, format));
  for (const child of node.children?.values() ?? []) addLines(child, format, lines);
}

function formatRule(rule: Rule, { root, unlimited }: RuleFormat): string {
  const { path, unit, unitSeconds, windows, requestsPerUnit, rate, lease, shadowMode, quotaMode } = rule;
  const fields = [`unit=${unit?.toUpperCase() ?? 'UNKNOWN'}`, `requests_per_unit=${requestsPerUnit}`];
  if (unit === undefined && !rule.unlimited) fields.push(`period=${unitSeconds}s`);
  if (windows?.timeZone !== undefined) fields.push(`time_zone=${windows.timeZone}`);
  if (rate !== undefined) fields.push(`algorithm=${rate.algorithm}`, `burst=${rate.burst}`);
  if (lease !== undefined) fields.push(`lease=${lease.hits}`);
  if (rule.charge !== undefined) fields.push(`charge=${rule.charge}`);
  const maxDebt = rate && getMaxDebt(rate);
  if (maxDebt !== undefined) fields.push(`max_debt=${maxDebt}`);
  const policy = rule.unlimited ? undefined : (rule.onStoreFailure ?? root.onStoreFailure);
  if (policy !== undefined) fields.push(`on_store_failure=${policy}`);
  if (root.atomic === true && !rule.unlimited) fields.push('atomic=true');
  const limit = rule.unlimited ? (unlimited ?? fields.join(' ')) : fields.join(' ');
  return `${path}: ${limit}, shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}`;
}

const byCodeUnits = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
