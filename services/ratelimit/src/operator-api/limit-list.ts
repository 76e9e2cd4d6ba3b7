import { compareText } from '@tollgate/kit/text';
import type { Rule, RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { describeLimit } from '../decision/peek.ts';
import type { RuleStats, StatsRegistry } from '../metrics/registry.ts';

/** Hits of a replica since its start. */
interface HitCounts {
  readonly hits: number;
  readonly nearLimit: number;
  readonly overLimit: number;
}

/** A limit of the rules in force. */
type ListedLimit = ReturnType<typeof describeLimit> & {
  readonly domain: string;
  /** Path of the rule, which begins with its domain. */
  readonly path: string;
  readonly quotaMode: boolean;
  /** Absent without hits, and where the metrics of the rule have values of requests. */
  readonly counts?: HitCounts;
};

/**
 * A page of the limits of the rules in force, sorted by path. Rules without a limit are left out.
 * Only those of the page are described: decisions wait meanwhile.
 */
export function listLimits(
  rules: RuleSet | undefined,
  stats: StatsRegistry,
  { domain, ...query }: PageQuery & { readonly domain: string | undefined },
): { readonly limits: readonly ListedLimit[]; readonly next?: string } {
  const roots = [...(rules?.domains.values() ?? [])];
  const selected = roots.filter(({ composite }) => domain === undefined || composite === domain);
  const all = selected.flatMap((root) => [...limitedRules(root)]);
  const { page, ...next } = selectPage(all, ({ path }) => path, query);
  const keys = new Set(page.map((rule) => toKey(rule.domain, rule.metricPath)));
  const series = new Map<string, RuleStats>();
  for (const one of stats.rules()) {
    const key = toKey(one.domain, one.levels);
    if (keys.has(key)) series.set(key, one);
  }
  const limits = page.map((rule) => {
    const { path, metricPath, quotaMode } = rule;
    const counts = series.get(toKey(rule.domain, metricPath));
    return {
      domain: rule.domain,
      path,
      ...describeLimit({ rule, metricPath }),
      quotaMode,
      ...(counts && { counts: toCounts(counts) }),
    };
  });
  return { limits, ...next };
}

/** A domain of the rules in force, with the sums of its limits. */
interface ListedDomain extends HitCounts {
  readonly domain: string;
  readonly limits: number;
}

export function listDomains(rules: RuleSet | undefined, stats: StatsRegistry): readonly ListedDomain[] {
  const sums = new Map<string, { -readonly [Field in keyof HitCounts]: number }>();
  for (const one of stats.rules()) {
    const sum = sums.get(one.domain) ?? { hits: 0, nearLimit: 0, overLimit: 0 };
    sum.hits += one.totalHits;
    sum.nearLimit += one.nearLimit;
    sum.overLimit += one.overLimit;
    sums.set(one.domain, sum);
  }
  return [...(rules?.domains.values() ?? [])].map((root) => ({
    domain: root.composite,
    limits: [...limitedRules(root)].length,
    ...(sums.get(root.composite) ?? { hits: 0, nearLimit: 0, overLimit: 0 }),
  }));
}

function* limitedRules(node: RuleNode): Generator<Rule> {
  if (node.match?.rule.unlimited === false) yield node.match.rule;
  for (const child of node.children?.values() ?? []) yield* limitedRules(child);
}

function toCounts({ totalHits: hits, nearLimit, overLimit }: RuleStats): HitCounts {
  return { hits, nearLimit, overLimit };
}

function toKey(domain: string, levels: readonly string[]): string {
  return [domain, ...levels].join('\0');
}

/** The items of a domain, or all. */
export function selectDomain<T extends { readonly domain: string }>(
  items: readonly T[],
  domain: string | undefined,
): readonly T[] {
  return domain === undefined ? items : items.filter((item) => item.domain === domain);
}

interface PageQuery {
  readonly limit: number;
  /** Items whose name has this text. */
  readonly search: string | undefined;
  /** Name of the last item of the previous page. */
  readonly after: string | undefined;
}

/** A page of items in the order of their names, and the `after` of the next one. */
export function selectPage<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  { limit, search = '', after }: PageQuery,
): { readonly page: readonly T[]; readonly next?: string } {
  const found = items
    .filter((item) => {
      const name = nameOf(item);
      return name.includes(search) && (after === undefined || compareText(name, after) > 0);
    })
    .sort((a, b) => compareText(nameOf(a), nameOf(b)));
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return { page, ...(found.length > limit && last !== undefined && { next: nameOf(last) }) };
}
