import type { Steps } from '@tollgate/kit/steps';
import { type LimiterClient, limiterName, type Rejection } from '../ads/limiters.ts';

/** Limiters that ask for the same, have accepted the same and reject the same: there are few such groups, however many limiters. */
export interface LimiterGroup {
  readonly size: number;
  /** What people call one of them. */
  readonly example: string;
  /** Domains that they ask for; undefined when they ask for all. */
  readonly names: ReadonlySet<string> | undefined;
  /** Versions by domain; undefined when they have accepted nothing. */
  readonly accepted: Pick<ReadonlyMap<string, string>, 'get'> | undefined;
  readonly rejection: GroupRejection | undefined;
}

/** A rejection, and what it is about. */
export interface GroupRejection {
  readonly refused: ReadonlyMap<string, string>;
  readonly message: string;
  /** The limiter's words on each domain that it names; empty when it names none, which blames all it was sent anew. */
  readonly blamed: ReadonlyMap<string, string>;
}

/**
 * Groups limiters by the very maps of what they have accepted and refused, which limiters of one snapshot share, by what
 * they ask for, and by what they say.
 */
export function groupLimiters(clients: Iterable<LimiterClient>): readonly LimiterGroup[] {
  const numbers = new Map<unknown, number>();
  const numberOf = (set: unknown): number => {
    const known = numbers.get(set) ?? numbers.size;
    numbers.set(set, known);
    return known;
  };
  const groups = new Map<string, LimiterGroup>();
  for (const client of clients) {
    const { names, accepted, rejection } = client;
    const sets = [names, accepted, rejection?.refused].map(numberOf);
    const key = `${sets.join(' ')} ${rejection?.message ?? ''}`;
    const known = groups.get(key);
    groups.set(
      key,
      known === undefined
        ? {
            size: 1,
            example: limiterName(client),
            names,
            accepted,
            rejection: rejection && readRejection(rejection),
          }
        : { ...known, size: known.size + 1 },
    );
  }
  return [...groups.values()];
}

/** Finds out which domains a rejection is about: a limiter begins each line with the name of one. */
export function readRejection({ refused, message }: Pick<Rejection, 'refused' | 'message'>): GroupRejection {
  const blamed = new Map<string, string>();
  for (const line of message.split('\n')) {
    const domain = domainOf(line, refused);
    if (domain === undefined) continue;
    const said = blamed.get(domain);
    blamed.set(domain, said === undefined ? line : `${said}\n${line}`);
  }
  return { refused, message, blamed };
}

/** The domain that a line begins with, `<domain>: …`; the longest, for a domain may have colons in it. */
function domainOf(line: string, refused: ReadonlyMap<string, string>): string | undefined {
  let found: string | undefined;
  for (let colon = line.indexOf(':'); colon !== -1; colon = line.indexOf(':', colon + 1)) {
    const start = line.slice(0, colon);
    if (refused.has(start)) found = start;
  }
  return found;
}

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
