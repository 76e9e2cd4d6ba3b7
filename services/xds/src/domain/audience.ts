import type { Steps } from '@tollgate/rules/steps';
import type { LimiterGroup } from './limiter-groups.ts';

/** Which limiters ask for which domain. */
export interface Audience {
  /** Limiters in all, whatever they ask for. */
  readonly size: number;
  /** Those that ask for the domain. */
  of(domain: string): readonly LimiterGroup[];
}

/**
 * Looks up once who asks for what. Limiters that ask for sets of their own are groups of their own, and to ask each of
 * hundreds about each of thousands of domains takes most of a second.
 */
export function* audienceOf(groups: readonly LimiterGroup[]): Steps<Audience> {
  const ofAll = groups.filter(({ names }) => names === undefined);
  const byName = new Map<string, LimiterGroup[]>();
  let size = 0;
  for (const group of groups) {
    size += group.size;
    for (const name of group.names ?? []) {
      const others = byName.get(name);
      if (others === undefined) byName.set(name, [...ofAll, group]);
      else others.push(group);
    }
    yield;
  }
  return { size, of: (domain) => byName.get(domain) ?? ofAll };
}
