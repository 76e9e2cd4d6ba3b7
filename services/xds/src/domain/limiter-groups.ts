import type { LimiterClient, Rejection } from './limiter-client.ts';

/** Limiters that have accepted the same and reject the same: there are few such groups, however many limiters. */
export interface LimiterGroup {
  readonly size: number;
  /** What people call one of them. */
  readonly example: string;
  readonly accepted: ReadonlyMap<string, string> | undefined;
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
 * Groups limiters by the very maps of what they have accepted and refused, which limiters of one snapshot share, and by
 * what they say.
 */
export function groupLimiters(clients: Iterable<LimiterClient>): readonly LimiterGroup[] {
  const numbers = new Map<unknown, number>();
  const numberOf = (map: unknown): number => {
    const known = numbers.get(map) ?? numbers.size;
    numbers.set(map, known);
    return known;
  };
  const groups = new Map<string, LimiterGroup>();
  for (const { nodeId, peer, accepted, rejection } of clients) {
    const key = `${numberOf(accepted)} ${numberOf(rejection?.refused)} ${rejection?.message ?? ''}`;
    const known = groups.get(key);
    groups.set(
      key,
      known === undefined
        ? { size: 1, example: nodeId || peer, accepted, rejection: rejection && readRejection(rejection) }
        : { ...known, size: known.size + 1 },
    );
  }
  return [...groups.values()];
}

function readRejection({ refused, message }: Rejection): GroupRejection {
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
