import type { Snapshot, SnapshotResource } from '../catalog/snapshot.ts';

/** What a client subscribes to, of one resource type on one stream. */
export interface Subscription {
  /** All resources, including future ones. */
  readonly wildcard: boolean;
  /** Resources subscribed to by name. */
  readonly names: ReadonlySet<string>;
  /** Whether the client has ever sent a name: from then on an empty list means no resources. */
  readonly explicit: boolean;
}

/** The resources of a snapshot that a subscription selects. */
export interface Selection {
  readonly snapshot: Snapshot;
  /** By name. For a wildcard it is the map of the snapshot itself, so that derived values can be cached by it. */
  readonly resources: ReadonlyMap<string, SnapshotResource>;
}

/** Versions by name, as far as a client has them. */
export type KnownResources = ReadonlyMap<string, { readonly version: string }>;

export const wildcardName = '*';

/** Before the first request of the type. */
export const noSubscription: Subscription = { wildcard: false, names: new Set(), explicit: false };

/**
 * The subscription after a state-of-the-world request, which has the complete list. An empty list is a wildcard
 * until the client has sent a name on this stream, and unsubscribes from everything afterwards.
 */
export function replaceSubscription(previous: Subscription, names: readonly string[]): Subscription {
  const explicit = previous.explicit || names.length > 0;
  return { wildcard: !explicit || names.includes(wildcardName), names: withoutWildcard(names), explicit };
}

/** The subscription after the first delta request of a type: without names it is a wildcard. */
export function beginSubscription(
  subscribe: readonly string[],
  unsubscribe: readonly string[],
): Subscription {
  if (subscribe.length === 0) return { ...noSubscription, wildcard: true };
  return changeSubscription(noSubscription, subscribe, unsubscribe);
}

/** The subscription after a later delta request. */
export function changeSubscription(
  previous: Subscription,
  subscribe: readonly string[],
  unsubscribe: readonly string[],
): Subscription {
  if (subscribe.length === 0 && unsubscribe.length === 0) return previous;
  const names = withoutWildcard([...previous.names, ...subscribe]);
  for (const name of unsubscribe) names.delete(name);
  const wildcard =
    !unsubscribe.includes(wildcardName) && (previous.wildcard || subscribe.includes(wildcardName));
  return { wildcard, names, explicit: true };
}

export function isEmptySubscription({ wildcard, names }: Subscription): boolean {
  return !wildcard && names.size === 0;
}

/** Undefined for a wildcard. A name without a resource selects nothing. */
export function subscribedNames(subscription: Subscription | undefined): ReadonlySet<string> | undefined {
  return subscription?.wildcard === false ? subscription.names : undefined;
}

export function select(snapshot: Snapshot, { wildcard, names }: Subscription): Selection {
  const resources = wildcard ? snapshot.resources : pickNames(snapshot.resources, names);
  return { snapshot, resources };
}

export function pickNames<T>(
  entries: ReadonlyMap<string, T>,
  names: ReadonlySet<string>,
): ReadonlyMap<string, T> {
  const picked = new Map<string, T>();
  for (const name of names) {
    const entry = entries.get(name);
    if (entry !== undefined) picked.set(name, entry);
  }
  return picked;
}

/** Whether two selections have the same names in the same versions. */
export function isSameSelection(one: Selection, other: Selection): boolean {
  // Hundreds of streams compare thousands of resources at once; the snapshot version covers all of them.
  if (isWhole(one) && isWhole(other)) return one.snapshot.version === other.snapshot.version;
  if (one.resources.size !== other.resources.size) return false;
  return [...one.resources.values()].every(
    ({ name, version }) => other.resources.get(name)?.version === version,
  );
}

/** Whether a selection is the whole snapshot, which it shares with other streams. */
export function isWhole({ snapshot, resources }: Selection): boolean {
  return resources === snapshot.resources;
}

/** The difference between two sets of resources. */
export interface ResourceDiff {
  /** New, or of another version. */
  readonly changed: readonly SnapshotResource[];
  readonly removed: readonly string[];
}

export function diffResources(
  known: KnownResources,
  next: ReadonlyMap<string, SnapshotResource>,
): ResourceDiff {
  if (known === next) return { changed: [], removed: [] };
  return {
    changed: [...next.values()].filter(({ name, version }) => known.get(name)?.version !== version),
    removed: [...known.keys()].filter((name) => !next.has(name)),
  };
}

function withoutWildcard(names: readonly string[]): Set<string> {
  const named = new Set(names);
  named.delete(wildcardName);
  return named;
}
