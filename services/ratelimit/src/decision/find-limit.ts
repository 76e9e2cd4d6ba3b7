import type { JsonObject } from '@tollgate/kit/json';
import { applyReplaces, type Entry, type Match, matchEntries } from '@tollgate/rules/match';
import type { Charge, Lease, Rate, Rule, RuleNode, StoreFailurePolicy } from '@tollgate/rules/rule-set';
import { type Unit, unitSeconds } from '@tollgate/rules/rule-set';
import type { Windows } from '@tollgate/rules/windows';
import type { Algorithm } from '../algorithms/algorithm.ts';
import { getAlgorithm } from '../algorithms/registry.ts';
import { type Descriptor, type LimitOverride, unitFromWire } from './wire/request.ts';

export interface Limit {
  readonly kind: 'limited';
  /** Undefined with a period. */
  readonly unit: Unit | undefined;
  readonly unitSeconds: number;
  /** Fixed windows other than those of the unit. */
  readonly windows?: Windows | undefined;
  readonly requestsPerUnit: number;
  /** Requests that may come at once; `requestsPerUnit` of fixed windows. */
  readonly capacity: number;
  readonly algorithm: Algorithm;
  /** Undefined for fixed windows. */
  readonly rate?: Rate | undefined;
  readonly lease?: Lease | undefined;
  /** As configured; see `getCharge` for the default. */
  readonly charge?: Charge | undefined;
  readonly name: string;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** Policy of the rule itself. */
  readonly onStoreFailure?: StoreFailurePolicy | undefined;
  readonly metadata?: JsonObject | undefined;
  /** The entries in the counter key; share_threshold replaces a value by its pattern. */
  readonly keyEntries: readonly Entry[];
  readonly metricPath: readonly string[];
  /** The rule; undefined where the request brings its limit. */
  readonly rule: Rule | undefined;
  /** `metricPath` has parts of the request. */
  readonly dynamicMetric: boolean;
}

/** A rule that allows everything and has no counter. */
interface Unlimited {
  readonly kind: 'unlimited';
  readonly metadata?: JsonObject | undefined;
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
    limit === undefined ? matchEntries(domain, entries) : undefined,
  );
  const replaced = applyReplaces(matches);
  return replaced.includes(true) ? matches.map((match, i) => (replaced[i] ? undefined : match)) : matches;
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
      const match = matchEntries(domain, descriptor.entries);
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
  const { rule } = match;
  if (rule.unlimited) {
    return { kind: 'unlimited', metadata: rule.metadata };
  }
  return {
    kind: 'limited',
    unit: rule.unit,
    unitSeconds: rule.unitSeconds,
    windows: rule.windows ?? (calendarMonths && monthWindows(rule, calendarMonths)),
    requestsPerUnit: rule.requestsPerUnit,
    capacity: rule.rate?.burst ?? rule.requestsPerUnit,
    algorithm: getAlgorithm(rule.rate),
    rate: rule.rate,
    lease: rule.lease,
    charge: rule.charge,
    name: rule.name,
    shadowMode: rule.shadowMode,
    quotaMode: rule.quotaMode,
    onStoreFailure: rule.onStoreFailure,
    metadata: rule.metadata,
    keyEntries: match.keyEntries ?? entries,
    metricPath: match.metricPath,
    rule,
    dynamicMetric: match.dynamicMetric,
  };
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
  const rule = match?.rule;
  const rate = rule?.rate && toOwnRate(rule.rate, requestsPerUnit, unit);
  const algorithm = getAlgorithm(rate);
  const calendar = rule?.windows?.ofUnit(unit);
  return {
    kind: 'limited',
    ...(rate !== undefined && algorithm.holdsSlots
      ? { unit: rule?.unit, unitSeconds: rate.periodSeconds }
      : { unit, unitSeconds: unitSeconds[unit] }),
    windows: calendar ?? (calendarMonths && monthWindows({ unit, rate }, calendarMonths)),
    requestsPerUnit,
    capacity: rate?.burst ?? requestsPerUnit,
    algorithm,
    rate,
    lease: rule?.lease && toOwnLease(rule.lease, requestsPerUnit),
    charge: rule?.charge,
    name: '',
    shadowMode: rule?.shadowMode ?? false,
    quotaMode: rule?.quotaMode ?? false,
    onStoreFailure: rule?.onStoreFailure,
    metadata: rule?.metadata,
    keyEntries: rate === undefined && calendar === undefined ? entries : (match?.keyEntries ?? entries),
    metricPath: toSeriesName(entries),
    rule: undefined,
    dynamicMetric: true,
  };
}

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

/** As in rules. */
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
