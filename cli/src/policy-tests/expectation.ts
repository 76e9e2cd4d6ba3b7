import type { LimitOutcome } from '../policies/limit-simulator.ts';
import type { Outcome } from '../policies/simulator.ts';
import type { Expectation } from './format.ts';

/** A difference of a decision from its expectation. */
export interface Difference {
  readonly what: string;
  readonly expected: string;
  readonly got: string;
}

const decisionFields = ['allowed', 'status', 'reason', 'policy', 'rule'] as const;

export function compareDecision(expect: Expectation, outcome: Outcome): readonly Difference[] {
  return decisionFields.flatMap((what) => compare(what, expect[what], outcome[what]));
}

/** Compares the limits, with the counters after a request. */
export function compareLimits(
  { limits = {}, remaining, onlyLimits = false }: Expectation,
  outcome: Outcome,
): readonly Difference[] {
  const left = outcome.limits.flatMap((limit) => limit.remaining ?? []);
  const others = outcome.limits.filter(({ name }) => !Object.hasOwn(limits, name)).map(({ name }) => name);
  return [
    ...compare('remaining', remaining, left.length === 0 ? undefined : Math.min(...left)),
    ...Object.entries(limits).flatMap(([name, expected]) => {
      const limit = outcome.limits.find((one) => one.name === name);
      return compareLimit(`limit ${name}`, expected, limit);
    }),
    ...(onlyLimits && others.length > 0
      ? [{ what: 'limits', expected: 'no others', got: others.join(', ') }]
      : []),
  ];
}

function compareLimit(
  what: string,
  expected: NonNullable<Expectation['limits']>[string],
  limit: LimitOutcome | undefined,
): readonly Difference[] {
  if (limit === undefined) return [{ what, expected: 'applies', got: 'does not apply' }];
  return (['state', 'requests', 'remaining'] as const).flatMap((field) =>
    compare(`${what}, ${field}`, expected[field], limit[field]),
  );
}

function compare(what: string, expected: unknown, got: unknown): readonly Difference[] {
  if (expected === undefined || expected === got) return [];
  return [{ what, expected: String(expected), got: String(got ?? 'none') }];
}
