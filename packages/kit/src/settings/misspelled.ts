import type { Environment, SettingsSpec } from './setting.ts';

/** A variable that is set, unknown, and looks like a known one. */
export type Misspelling = { readonly variable: string; readonly meant: string };

/**
 * Finds set variables that look like a setting of the spec but are none: one or two letters away from a known name.
 *
 * Short names lie close to unrelated variables (`PORT` is two letters from `PATH`), so a variable counts only when it begins
 * with one of `prefixes` or the known name is long: 8 letters for one edit, 12 for two.
 */
export function findMisspelled(
  spec: SettingsSpec,
  env: Environment,
  prefixes: readonly string[] = [],
): Misspelling[] {
  const known = Object.values(spec).flatMap((setting) => [setting.env, ...setting.aliases]);
  const names = new Set(known);
  return Object.keys(env)
    .filter((variable) => env[variable] !== undefined && !names.has(variable))
    .flatMap((variable) => {
      const ours = prefixes.some((prefix) => variable.startsWith(prefix));
      const meant = closest(variable, known, (name) =>
        ours || name.length >= 12 ? 2 : name.length >= 8 ? 1 : 0,
      );
      return meant === undefined ? [] : [{ variable, meant }];
    });
}

function closest(
  variable: string,
  known: readonly string[],
  reach: (name: string) => number,
): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(variable, name, reach(name));
    if (distance !== undefined && distance < (best?.distance ?? Infinity)) best = { name, distance };
  }
  return best?.name;
}

/** Levenshtein distance in upper case, or `undefined` when it is more than `most`. */
function editDistance(left: string, right: string, most: number): number | undefined {
  if (Math.abs(left.length - right.length) > most) return undefined;
  const target = [...right.toUpperCase()];
  let row = Array.from({ length: target.length + 1 }, (_, index) => index);
  for (const letter of left.toUpperCase()) {
    const next = [(row[0] ?? 0) + 1];
    for (const [index, other] of target.entries()) {
      const replaced = (row[index] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  const distance = row[target.length] ?? 0;
  return distance <= most ? distance : undefined;
}
