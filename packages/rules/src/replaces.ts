import type { Match } from './match.ts';
import type { Rule } from './rule-set.ts';

/**
 * Which matches of one request are dropped because another match of it replaces them; true = treat as unmatched.
 * By name, over the whole request, in any order: a limit that is itself dropped still replaces (contract 1.2).
 * An unlimited rule has no counter to spare and stays unlimited when it is replaced.
 */
export function applyReplaces(matches: readonly (Match | undefined)[]): readonly boolean[] {
  let replaced: Set<string> | undefined;
  for (const match of matches) {
    // Nearly no rule replaces anything, and this is done for every request.
    if (match === undefined || match.rule.replaces.length === 0) continue;
    replaced ??= new Set();
    for (const name of match.rule.replaces) replaced.add(name);
  }
  const names = replaced;
  if (names === undefined) return new Array<boolean>(matches.length).fill(false);
  return matches.map((match) => match !== undefined && isReplaced(match.rule, names));
}

function isReplaced({ name, unlimited }: Rule, names: ReadonlySet<string>): boolean {
  return name !== '' && !unlimited && names.has(name);
}
