import { compareValues, type Effect, formatValue, type Statement } from './statement.ts';

/** A difference between two sets of policies. */
export interface Change {
  readonly subject: string;
  readonly part: string;
  /** Empty for all of a part. */
  readonly name: string;
  readonly change: 'added' | 'removed' | 'changed';
  readonly effect: Effect;
  readonly before?: string;
  readonly after?: string;
}

/** Statements by part. */
type Parts = ReadonlyMap<string, readonly Statement[]>;

/** The differences by policy. A policy, rule or limit that only one side has is one change. */
export function compareStatements(
  before: readonly Statement[],
  after: readonly Statement[],
): readonly Change[] {
  const old = Map.groupBy(before, ({ subject }) => subject);
  const next = Map.groupBy(after, ({ subject }) => subject);
  const subjects = new Set([...old.keys(), ...next.keys()]);
  return [...subjects].flatMap((subject) => {
    const [first, second] = [old.get(subject), next.get(subject)];
    if (first === undefined || second === undefined) return toWhole('', first, second, noBase);
    return compareParts(
      Map.groupBy(first, ({ part }) => part),
      Map.groupBy(second, ({ part }) => part),
    );
  });
}

function compareParts(before: Parts, after: Parts): readonly Change[] {
  const parts = new Set([...before.keys(), ...after.keys()]);
  return [...parts].flatMap((part) => {
    const [first, second] = [before.get(part), after.get(part)];
    if (first !== undefined && second !== undefined) return compareSame(first, second);
    // Without a rule, the default has applied, or applies now.
    const { insteadOf = '' } = (first ?? second)?.[0] ?? {};
    return toWhole(part, first, second, { before: before.get(insteadOf), after: after.get(insteadOf) });
  });
}

/** Compares two versions of a part. */
function compareSame(before: readonly Statement[], after: readonly Statement[]): readonly Change[] {
  const names = new Set([...before, ...after].map(({ name }) => name));
  return [...names].flatMap((name): readonly Change[] => {
    const [old, next] = [before, after].map((side) => side.find((one) => one.name === name));
    const { subject = '', part = '' } = old ?? next ?? {};
    const values = {
      ...(old && { before: formatValue(old.value) }),
      ...(next && { after: formatValue(next.value) }),
    };
    const place = { subject, part, name };
    if (old === undefined)
      return [{ ...place, change: 'added', effect: next?.presence ?? 'unknown', ...values }];
    if (next === undefined)
      return [{ ...place, change: 'removed', effect: opposite(old.presence), ...values }];
    const effect = compareValues(old.value, next.value);
    return effect === undefined ? [] : [{ ...place, change: 'changed', effect, ...values }];
  });
}

/** The part that applies where another one does not exist. */
interface Base {
  readonly before?: readonly Statement[] | undefined;
  readonly after?: readonly Statement[] | undefined;
}

const noBase: Base = {};

function toWhole(
  part: string,
  before: readonly Statement[] | undefined,
  after: readonly Statement[] | undefined,
  base: Base,
): readonly Change[] {
  const [one] = before ?? after ?? [];
  if (one === undefined) return [];
  const effects = compareSame(before ?? base.before ?? [], after ?? base.after ?? []).map(
    ({ effect }) => effect,
  );
  const place = { subject: one.subject, part, name: '', effect: combine(effects) };
  return before === undefined
    ? [{ ...place, change: 'added', after: summarize(after ?? [], part) }]
    : [{ ...place, change: 'removed', before: summarize(before, part) }];
}

/** A change that lets some callers pass must not hide behind one that stops others. */
function combine(effects: readonly Effect[]): Effect {
  return (['looser', 'stricter'] as const).find((effect) => effects.includes(effect)) ?? 'unknown';
}

function opposite(effect: Effect): Effect {
  if (effect === 'unknown') return effect;
  return effect === 'stricter' ? 'looser' : 'stricter';
}

function summarize(statements: readonly Statement[], part: string): string {
  return statements
    .map((one) => {
      const place =
        one.part === part ? one.name : [one.part, one.name].filter((text) => text !== '').join(', ');
      return `${place} ${formatValue(one.value)}`;
    })
    .join('; ');
}
