import type { Match } from './match.ts';

/**
 * Which matches of one request are dropped because another match of it replaces them; true = treat as unmatched.
 * By name, over the whole request, in any order: a limit that is itself dropped still replaces (contract 1.2).
 */
export function applyReplaces(matches: readonly (Match | undefined)[]): readonly boolean[] {
  const replaced = new Set<string>();
  for (const match of matches) for (const name of match?.rule.replaces ?? []) replaced.add(name);
  return matches.map(
    (match) => match !== undefined && match.rule.name !== '' && replaced.has(match.rule.name),
  );
}
