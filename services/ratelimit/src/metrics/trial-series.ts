import { sanitiseStatKey, trialDomainPrefix, trialRulePrefix, trialStats } from './names.ts';
import type { CounterSample } from './registry.ts';
import { otherSeries } from './rule-series.ts';

type TrialStatField = (typeof trialStats)[number][0];

/** Requests that were decided by the rules in force and by rules on trial. */
export type TrialCounts = Record<TrialStatField, number>;

/** Rules on trial that were loaded together. */
export interface TrialSet {
  /** Hash of the rules, the same in all processes. */
  readonly version: string;
  /** When they were loaded, in Unix milliseconds. */
  readonly sinceMs: number;
  readonly domains: number;
  readonly rules: number;
}

/** Counts of one rule on trial, or of a whole domain. */
export interface TrialSeries extends TrialCounts {
  readonly domain: string;
  /** Undefined for the requests of a domain as a whole. */
  readonly rule: string | undefined;
  /** Such as `10 per minute`; empty for a domain. */
  readonly limit: string;
}

interface TrialEntry extends TrialSeries {
  readonly statPrefix: string;
  flushed: TrialCounts;
}

const noRequests: TrialCounts = {
  requests: 0,
  wouldRefuse: 0,
  refused: 0,
  newlyRefused: 0,
  newlyAllowed: 0,
};

/** The bound equals that of dynamic rules. */
const maxTrialRules = 10_000;

/** Counts of one set of rules on trial; the next set starts at 0. */
export class TrialTable {
  readonly set: TrialSet;
  readonly #domains = new Map<string, TrialEntry>();
  readonly #rules = new Map<string, TrialEntry>();

  constructor(set: TrialSet) {
    this.set = set;
  }

  /** Domains of rules on trial only, so that their number is bounded. */
  domain(domain: string): TrialCounts {
    return this.#get(this.#domains, domain, { domain, rule: undefined, limit: '' });
  }

  /** `rule` is its path, which begins with the domain. */
  rule(domain: string, rule: string, limit: string): TrialCounts {
    if (this.#rules.has(rule) || this.#rules.size < maxTrialRules) {
      return this.#get(this.#rules, rule, { domain, rule, limit });
    }
    const other = `${domain}.${otherSeries}`;
    return this.#get(this.#rules, other, { domain, rule: other, limit: '' });
  }

  /** Series of domains come first. */
  *all(): Generator<TrialSeries & { readonly statPrefix: string }> {
    yield* this.#domains.values();
    yield* this.#rules.values();
  }

  /** Appends a sample for each counter that changed since the last call. */
  takeChanges(into: CounterSample[]): void {
    for (const entry of [...this.#domains.values(), ...this.#rules.values()]) {
      for (const [field, stat] of trialStats) {
        const value = entry[field];
        const delta = value - entry.flushed[field];
        if (delta === 0) continue;
        entry.flushed[field] = value;
        into.push({ name: `${entry.statPrefix}${stat}`, tags: undefined, value, delta });
      }
    }
  }

  #get(into: Map<string, TrialEntry>, key: string, labels: Omit<TrialSeries, TrialStatField>): TrialEntry {
    const known = into.get(key);
    if (known !== undefined) return known;
    const prefix = labels.rule === undefined ? trialDomainPrefix : trialRulePrefix;
    const statPrefix = `${prefix}${sanitiseStatKey(key)}.`;
    const entry = { ...labels, statPrefix, ...noRequests, flushed: { ...noRequests } };
    into.set(key, entry);
    return entry;
  }
}
