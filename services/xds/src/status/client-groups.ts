import type { Steps } from '@tollgate/kit/time';
import { type Client, clientName, parseRejection } from '../ads/clients.ts';
import type { SnapshotResource } from '../catalog/snapshot.ts';

/** A domain and its version, for clients of a class or, without one, for all. */
export interface ServedDomain extends Pick<SnapshotResource, 'name' | 'version'> {
  readonly limiterClass?: string | undefined;
}

/** Clients with the same subscription, accepted versions and rejection. */
export interface ClientGroup {
  readonly size: number;
  /** Display name of one of them: the one that sorts first, because their order changes. */
  readonly example: string;
  /** Undefined for clients without a class. */
  readonly limiterClass?: string | undefined;
  /** Whether they say which rules have matched requests. */
  readonly reportsMatches?: boolean | undefined;
  /** Domains that they subscribe to by name; undefined for a wildcard. */
  readonly names: ReadonlySet<string> | undefined;
  /** Versions by domain; undefined when they have accepted nothing. */
  readonly accepted: Pick<ReadonlyMap<string, string>, 'get'> | undefined;
  readonly rejection: GroupRejection | undefined;
}

type GroupRejection = ReturnType<typeof parseRejection<ReadonlyMap<string, string>>>;

/** Clients of one snapshot share the maps of their versions, which identify a group. */
export function groupClients(clients: Iterable<Client>): readonly ClientGroup[] {
  const ids = new Map<unknown, number>();
  const identify = (map: unknown): number => {
    const id = ids.get(map) ?? ids.size;
    ids.set(map, id);
    return id;
  };
  const groups = new Map<string, ClientGroup>();
  for (const client of clients) {
    const { names, limiterClass, reportsMatches, accepted, rejection } = client;
    const maps = [names, accepted, rejection?.resources].map(identify);
    const key = `${maps.join(' ')} ${limiterClass ?? ''} ${reportsMatches} ${rejection?.message ?? ''}`;
    const example = clientName(client);
    const group = groups.get(key);
    if (group === undefined)
      groups.set(key, {
        size: 1,
        example,
        limiterClass,
        reportsMatches,
        names,
        accepted,
        rejection: rejection && parseRejection(rejection),
      });
    else
      groups.set(key, {
        ...group,
        size: group.size + 1,
        example: firstText(group.example, example),
      });
  }
  return [...groups.values()];
}

/** Clients by the domains that they subscribe to. */
export interface Subscribers {
  /** Clients in total. */
  readonly size: number;
  readonly hasRejections: boolean;
  /** Clients whose acknowledgements the domain waits for. */
  of(domain: ServedDomain): readonly ClientGroup[];
}

/** Whether clients of a class have other rules for a domain than clients without a class. */
type HasOwnRules = (limiterClass: string, domain: string) => boolean;

/**
 * Indexes groups by domain. Clients with subscriptions of their own are groups of their own:
 * checking hundreds of groups for each of thousands of domains would take most of a second.
 *
 * Rules without a class wait for clients without a class, so that others, of a class for
 * development or far away, hold up only their own. Where every client has a class, they wait for
 * all that get them.
 */
export function* indexSubscribers(
  groups: readonly ClientGroup[],
  hasOwnRules: HasOwnRules = () => false,
): Steps<Subscribers> {
  const byClass = new Map<string | undefined, GroupIndex>();
  for (const group of groups) {
    const index = byClass.get(group.limiterClass) ?? new GroupIndex();
    byClass.set(group.limiterClass, index.add(group));
    yield;
  }
  const common = byClass.get(undefined);
  const ofAllClasses = (name: string): readonly ClientGroup[] =>
    [...byClass].flatMap(([limiterClass = '', index]) =>
      hasOwnRules(limiterClass, name) ? [] : index.of(name),
    );
  return {
    size: groups.reduce((sum, { size }) => sum + size, 0),
    hasRejections: groups.some(({ rejection }) => rejection !== undefined),
    of({ name, limiterClass }) {
      if (limiterClass !== undefined) return byClass.get(limiterClass)?.of(name) ?? [];
      return common === undefined ? ofAllClasses(name) : common.of(name);
    },
  };
}

/** Groups of one class. */
class GroupIndex {
  readonly #wildcards: ClientGroup[] = [];
  readonly #byName = new Map<string, ClientGroup[]>();

  add(group: ClientGroup): this {
    if (group.names === undefined) this.#wildcards.push(group);
    for (const name of group.names ?? []) {
      const others = this.#byName.get(name);
      if (others === undefined) this.#byName.set(name, [group]);
      else others.push(group);
    }
    return this;
  }

  of(name: string): readonly ClientGroup[] {
    const named = this.#byName.get(name);
    return named === undefined ? this.#wildcards : [...this.#wildcards, ...named];
  }
}

/** The one of two texts that sorts first. */
export const firstText = (one: string | undefined, other: string): string =>
  one === undefined || other < one ? other : one;
