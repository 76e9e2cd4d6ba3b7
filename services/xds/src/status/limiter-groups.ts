import type { Steps } from '@tollgate/kit/steps';
import { parseRejection } from '../ads/exchange.ts';
import { type Limiter, limiterName } from '../ads/limiters.ts';

/** Limiters with the same subscription, accepted versions and rejection. There are few groups, however many limiters. */
export interface LimiterGroup {
  readonly size: number;
  /** Display name of one of them. */
  readonly example: string;
  /** Domains that they subscribe to by name; undefined for a wildcard. */
  readonly names: ReadonlySet<string> | undefined;
  /** Versions by domain; undefined when they have accepted nothing. */
  readonly accepted: Pick<ReadonlyMap<string, string>, 'get'> | undefined;
  readonly rejection: GroupRejection | undefined;
}

type GroupRejection = ReturnType<typeof parseRejection<ReadonlyMap<string, string>>>;

/** Limiters of one snapshot share the maps of their versions, so that groups are found by the identity of the maps. */
export function groupLimiters(limiters: Iterable<Limiter>): readonly LimiterGroup[] {
  const ids = new Map<unknown, number>();
  const identify = (map: unknown): number => {
    const id = ids.get(map) ?? ids.size;
    ids.set(map, id);
    return id;
  };
  const groups = new Map<string, LimiterGroup>();
  for (const limiter of limiters) {
    const { names, accepted, rejection } = limiter;
    const maps = [names, accepted, rejection?.resources].map(identify);
    const key = `${maps.join(' ')} ${rejection?.message ?? ''}`;
    const group = groups.get(key) ?? {
      size: 0,
      example: limiterName(limiter),
      names,
      accepted,
      rejection: rejection && parseRejection(rejection),
    };
    groups.set(key, { ...group, size: group.size + 1 });
  }
  return [...groups.values()];
}

/** Limiters by the domains that they subscribe to. */
export interface Subscribers {
  /** Limiters in total. */
  readonly size: number;
  of(domain: string): readonly LimiterGroup[];
}

/**
 * Indexes groups by domain. Limiters with subscriptions of their own are groups of their own: checking hundreds of groups
 * for each of thousands of domains would take most of a second.
 */
export function* indexSubscribers(groups: readonly LimiterGroup[]): Steps<Subscribers> {
  const wildcards = groups.filter(({ names }) => names === undefined);
  const byName = new Map<string, LimiterGroup[]>();
  let size = 0;
  for (const group of groups) {
    size += group.size;
    for (const name of group.names ?? []) {
      const others = byName.get(name);
      if (others === undefined) byName.set(name, [...wildcards, group]);
      else others.push(group);
    }
    yield;
  }
  return { size, of: (domain) => byName.get(domain) ?? wildcards };
}
