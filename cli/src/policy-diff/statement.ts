/** The effect of a change on callers. */
export type Effect = 'stricter' | 'looser' | 'unknown';

/** A value of a policy, by what makes one of two values the stricter one. */
export type Value =
  /** The higher one of two levels is stricter. */
  | { readonly kind: 'level'; readonly level: number; readonly text: string }
  /** Callers need one of the items, so fewer are stricter. */
  | { readonly kind: 'any of'; readonly items: readonly string[] }
  /** All items hold, so more are stricter. */
  | { readonly kind: 'all of'; readonly items: readonly string[] }
  /** Fewer requests are stricter. */
  | { readonly kind: 'rate'; readonly rate: Rate; readonly text: string }
  /** Two values differ, and neither is stricter. */
  | { readonly kind: 'text'; readonly text: string };

interface Rate {
  /** Infinity: no limit. */
  readonly requests: number;
  readonly seconds: number;
}

/** Something that a policy says. */
export interface Statement {
  /** The policy, or the domain of limits. */
  readonly subject: string;
  /** The part of it: a rule, a limit. Empty: all of it. */
  readonly part: string;
  readonly name: string;
  readonly value: Value;
  /** The effect on callers of adding it. */
  readonly presence: Effect;
  /** The part that applies where this one does not exist. */
  readonly insteadOf?: string;
}

export function formatValue(value: Value): string {
  return 'items' in value ? value.items.join(', ') || 'none' : value.text;
}

/** The effect on callers of replacing a value; undefined if both are equal. */
export function compareValues(before: Value, after: Value): Effect | undefined {
  if (JSON.stringify(before) === JSON.stringify(after)) return undefined;
  if (before.kind === 'level' && after.kind === 'level') return byOrder(after.level - before.level);
  if (before.kind === 'any of' && after.kind === 'any of') return bySet(after.items, before.items);
  if (before.kind === 'all of' && after.kind === 'all of') return bySet(before.items, after.items);
  return before.kind === 'rate' && after.kind === 'rate' ? compareRates(before.rate, after.rate) : 'unknown';
}

/** Stricter, if the first has fewer items than the second, and no others. */
function bySet(narrow: readonly string[], wide: readonly string[]): Effect | undefined {
  const isNarrower = narrow.every((item) => wide.includes(item));
  const isWider = wide.every((item) => narrow.includes(item));
  if (isNarrower && isWider) return undefined;
  return isNarrower ? 'stricter' : isWider ? 'looser' : 'unknown';
}

/** A rate is stricter if it allows fewer requests at once, and in the long run. */
function compareRates(before: Rate, after: Rate): Effect {
  const atOnce = Math.sign(before.requests - after.requests);
  const inTheLongRun = Math.sign(before.requests / before.seconds - after.requests / after.seconds);
  if (Number.isNaN(atOnce) || atOnce * inTheLongRun < 0) return 'unknown';
  return byOrder(atOnce + inTheLongRun);
}

function byOrder(order: number): Effect {
  return order === 0 ? 'unknown' : order > 0 ? 'stricter' : 'looser';
}
