import { applyReplaces, type Entry, type Match, matchEntries } from '@tollgate/rules/match';
import type { JsonObject } from '@tollgate/rules/rule-document';
import { type Rule, type RuleNode, type Unit, unitSeconds } from '@tollgate/rules/rule-set';
import { type Descriptor, type LimitOverride, unitOfWire } from './request.ts';

/** The limit that a descriptor is counted against. */
export interface LimitInForce {
  readonly kind: 'limited';
  readonly unit: Unit;
  readonly unitSeconds: number;
  readonly requestsPerUnit: number;
  readonly name: string;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly metadata?: JsonObject | undefined;
  /** The entries as they name the counter: a shared threshold puts its pattern in the place of the value. */
  readonly keyEntries: readonly Entry[];
  readonly metricPath: readonly string[];
  /** The rule whose counters can be looked up by identity; absent where the metric path depends on the request. */
  readonly staticRule?: Rule | undefined;
}

/** A rule that allows everything and counts nothing. */
interface Unlimited {
  readonly kind: 'unlimited';
  readonly metadata?: JsonObject | undefined;
}

/** What a descriptor comes to; undefined where no rule applies, or the one that did was replaced. */
export type Verdict = LimitInForce | Unlimited | undefined;

/**
 * Finds for each descriptor what limits it: its own override, else the matching rule unless another matching rule
 * of the same request replaces that.
 */
export function limitsInForce(domain: RuleNode, descriptors: readonly Descriptor[]): readonly Verdict[] {
  const matches = descriptors.map((descriptor) =>
    descriptor.limit === undefined ? matchEntries(domain, descriptor.entries) : undefined,
  );
  const replaced = applyReplaces(matches);
  return descriptors.map((descriptor, i) => {
    if (descriptor.limit !== undefined) {
      return overrideInForce(descriptor.entries, descriptor.limit);
    }
    const match = matches[i];
    return match === undefined || replaced[i] === true ? undefined : ruleInForce(match, descriptor.entries);
  });
}

function ruleInForce(match: Match, entries: readonly Entry[]): Verdict {
  const { rule } = match;
  if (rule.unlimited || rule.unit === undefined) {
    return { kind: 'unlimited', metadata: rule.metadata };
  }
  return {
    kind: 'limited',
    unit: rule.unit,
    unitSeconds: rule.unitSeconds,
    requestsPerUnit: rule.requestsPerUnit,
    name: rule.name,
    shadowMode: rule.shadowMode,
    quotaMode: rule.quotaMode,
    metadata: rule.metadata,
    keyEntries: match.keyEntries ?? entries,
    metricPath: match.metricPath,
    staticRule: match.dynamicMetric ? undefined : rule,
  };
}

function overrideInForce(entries: readonly Entry[], override: LimitOverride): Verdict {
  const unit = unitOfWire(override.unit);
  if (unit === undefined) {
    return undefined;
  }
  return {
    kind: 'limited',
    unit,
    unitSeconds: unitSeconds[unit],
    requestsPerUnit: override.requestsPerUnit,
    name: '',
    shadowMode: false,
    quotaMode: false,
    keyEntries: entries,
    metricPath: entries.map(({ key, value }) => (value === '' ? key : `${key}_${value}`)),
  };
}
