import { applyReplaces, type Entry, type Match, matchEntries } from '@tollgate/rules/match';
import type { Lease, Rate, Rule, RuleNode } from '@tollgate/rules/rule-set';
import { type Unit, unitSeconds } from '@tollgate/rules/rule-set';
import type { Windows } from '@tollgate/rules/windows';
import { getAlgorithm } from '../algorithms/registry.ts';
import { type Descriptor, type LimitOverride, unitFromWire } from './wire/request.ts';

/** A limit of a descriptor. */
export interface Limit {
  readonly kind: 'limited';
  /** For a limit that the request brings, its values in the form of a rule. */
  readonly rule: Rule;
  /** Whether the request brings the limit. */
  readonly isOwn: boolean;
  /** Fixed windows other than those of the unit. */
  readonly windows: Windows | undefined;
  /** The entries in the counter key; share_threshold replaces a value by its pattern. */
  readonly keyEntries: readonly Entry[];
  readonly metricPath: readonly string[];
  /** `metricPath` has parts of the request. */
  readonly dynamicMetric: boolean;
}

/** A rule that allows everything and has no counter. */
interface Unlimited {
  readonly kind: 'unlimited';
  readonly rule: Rule;
}

/** Undefined where no rule matches, or the one that does was replaced. */
export type DescriptorLimit = Limit | Unlimited | undefined;

/**
 * Finds the rule of each descriptor; undefined where none matches, another match replaces it, or
 * the descriptor has an override.
 */
export function findMatches(
  domain: RuleNode,
  descriptors: readonly Descriptor[],
): readonly (Match | undefined)[] {
  const matches = descriptors.map(({ limit, entries }) =>
    limit === undefined ? markMatched(matchEntries(domain, entries)) : undefined,
  );
  const replaced = applyReplaces(matches);
  return replaced.includes(true) ? matches.map((match, i) => (replaced[i] ? undefined : match)) : matches;
}

/** The xDS server finds misspelled rules by this. */
function markMatched(match: Match | undefined): Match | undefined {
  if (match?.rule.matched === false) match.rule.matched = true;
  return match;
}

/** Finds the limit of each descriptor: its own (the override), else that of its rule. */
export function findLimits(
  domain: RuleNode,
  descriptors: readonly Descriptor[],
  calendarMonths?: Windows,
): readonly DescriptorLimit[] {
  const matches = findMatches(domain, descriptors);
  return descriptors.map((descriptor, i) => {
    if (descriptor.limit !== undefined) {
      const match = markMatched(matchEntries(domain, descriptor.entries));
      return fromOverride(descriptor.entries, descriptor.limit, { match, calendarMonths });
    }
    const match = matches[i];
    return match && fromMatch(match, descriptor.entries, calendarMonths);
  });
}

export function fromMatch(
  match: Match,
  entries: readonly Entry[],
  calendarMonths?: Windows,
): DescriptorLimit {
  const { rule, keyEntries = entries, metricPath, dynamicMetric } = match;
  if (rule.unlimited) return { kind: 'unlimited', rule };
  const windows = rule.windows ?? (calendarMonths && monthWindows(rule, calendarMonths));
  return { kind: 'limited', rule, isOwn: false, windows, keyEntries, metricPath, dynamicMetric };
}

function monthWindows({ unit, rate }: Pick<Rule, 'unit' | 'rate'>, calendarMonths: Windows) {
  return unit === 'month' && rate === undefined ? calendarMonths : undefined;
}

interface OverrideOptions {
  /** Undefined where no rule matches. */
  readonly match: Match | undefined;
  readonly calendarMonths: Windows | undefined;
}

/**
 * The limit that a descriptor has itself says how much is allowed. The rule that matches says how
 * it is counted and what happens beyond it. Where the rule counts as in envoyproxy/ratelimit, so
 * does the override, with the key that it has there; its series is that of the original always.
 */
function fromOverride(
  entries: readonly Entry[],
  { requestsPerUnit, unit: wireUnit }: LimitOverride,
  { match, calendarMonths }: OverrideOptions,
): DescriptorLimit {
  const unit = unitFromWire(wireUnit);
  if (unit === undefined) return undefined;
  const rule = match?.rule ?? noRule;
  const rate = rule.rate && toOwnRate(rule.rate, requestsPerUnit, unit);
  const calendar = rule.windows?.ofUnit(unit);
  return {
    kind: 'limited',
    rule: {
      ...rule,
      ...(rate !== undefined && getAlgorithm(rate).holdsSlots
        ? { unitSeconds: rate.periodSeconds }
        : { unit, unitSeconds: unitSeconds[unit] }),
      requestsPerUnit,
      capacity: rate?.burst ?? requestsPerUnit,
      unlimited: false,
      rate,
      lease: rule.lease && toOwnLease(rule.lease, requestsPerUnit),
      name: '',
    },
    isOwn: true,
    windows: calendar ?? (calendarMonths && monthWindows({ unit, rate }, calendarMonths)),
    keyEntries: rate === undefined && calendar === undefined ? entries : (match?.keyEntries ?? entries),
    metricPath: toSeriesName(entries),
    dynamicMetric: true,
  };
}

/** A rule that says nothing, where none matches. */
const noRule: Rule = {
  path: '',
  domain: '',
  unitSeconds: 0,
  requestsPerUnit: 0,
  capacity: 0,
  unlimited: false,
  name: '',
  replaces: [],
  shadowMode: false,
  quotaMode: false,
  detailedMetric: false,
  metricPath: [],
  matched: false,
};

/** The period of a concurrency limit is the life of a slot, and not a part of the limit. */
function toOwnRate(rate: Rate, requests: number, unit: Unit): Rate {
  const own = withRequests(rate, requests);
  return getAlgorithm(rate).holdsSlots ? own : { ...own, periodSeconds: unitSeconds[unit] };
}

/** Undefined where it would have no effect. */
function toOwnLease(lease: Lease, limit: number): Lease | undefined {
  const hits = Math.ceil((limit * lease.hits) / lease.limit);
  return hits < 2 ? undefined : { hits, limit };
}

/** Rules have the same bound. */
const maxBurst = 2 ** 32 - 1;

/**
 * The rate with another limit. The burst of a token bucket changes in proportion: the rule says
 * which part of the limit may come at once.
 */
export function withRequests(rate: Rate, requests: number): Rate {
  const { limit, burst } = rate;
  const isPart = getAlgorithm(rate).hasBurst && limit > 0;
  return {
    ...rate,
    limit: requests,
    burst: isPart ? Math.min(Math.ceil((requests * burst) / limit), maxBurst) : requests,
  };
}

/**
 * The levels that name the series of an override, as in envoyproxy/ratelimit, which writes a dot
 * only after a text: it leaves out empty entries at the start, but for a name of nothing else.
 */
function toSeriesName(entries: readonly Entry[]): readonly string[] {
  const levels = entries.map(({ key, value }) => (value === '' ? key : `${key}_${value}`));
  const first = levels.findIndex((level) => level !== '');
  return first === -1 ? [''] : levels.slice(first);
}
