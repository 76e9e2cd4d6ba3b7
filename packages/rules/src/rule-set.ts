import type { Match } from './match.ts';
import type { JsonObject } from './rule-document.ts';
import type { Unit } from './unit.ts';
import type { WildcardIndex } from './wildcard-index.ts';

/** All rules in force. Immutable: a reload builds a new one. */
export interface RuleSet {
  /** Root node of each domain. */
  readonly domains: ReadonlyMap<string, RuleNode>;
  /** Number of rules that carry a limit (unlimited ones included). */
  readonly ruleCount: number;
}

/** A limit and what to do with it. */
export interface Rule {
  /** `domain.full.composite.key`, each level as configured. */
  readonly path: string;
  readonly domain: string;
  /** Absent when unlimited. */
  readonly unit?: Unit | undefined;
  /** Length of the window in seconds; 0 when unlimited. */
  readonly unitSeconds: number;
  /** uint32; 0 refuses every request. Without effect when unlimited. */
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  /** Empty when the limit has no name. */
  readonly name: string;
  /** Names of the limits dropped from a request that this rule matches. */
  readonly replaces: readonly string[];
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** The metric has the runtime value on every level. */
  readonly detailedMetric: boolean;
  readonly metadata?: JsonObject | undefined;
  /** Metric levels as configured, without the domain and not sanitised. */
  readonly metricPath: readonly string[];
}

/** One level of the tree: a domain, or a descriptor entry below it. */
export interface RuleNode {
  /** `key` or `key_value` as configured, which is what the parent finds it by; the domain for a root. */
  readonly composite: string;
  /** Length of the key inside `composite`. */
  readonly keyLength: number;
  /** Undefined for the root of a domain. */
  readonly parent: RuleNode | undefined;
  /** By composite, wildcards included. Undefined when there are none, which most nodes are. */
  readonly children: ReadonlyMap<string, RuleNode> | undefined;
  /** Those of `children` with a `*`. */
  readonly wildcards: WildcardIndex<RuleNode> | undefined;
  /** What a request that ends here gets; undefined without a limit. Shared by all such requests. */
  readonly match: Match | undefined;
  /** share_threshold was set: the pattern goes into the cache key in place of the value of the request. */
  readonly sharesThreshold: boolean;
  /** value_to_metric was set. */
  readonly valueToMetric: boolean;
  /** This level or one above it has `sharesThreshold`. */
  readonly shares: boolean;
}
