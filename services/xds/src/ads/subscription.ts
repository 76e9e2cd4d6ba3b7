import type { Snapshot, SnapshotResource } from '../catalog/snapshot.ts';
import type { ProtocolLabel } from '../metrics.ts';
import type { Refusal, Verdict } from './sotw.ts';

/** What a client wants of one type, on one stream. */
export interface Subscription {
  /** All resources, those to come included. */
  readonly wildcard: boolean;
  /** Resources asked for by name. */
  readonly names: ReadonlySet<string>;
  /** Whether the client has ever named something: from then on an empty list means nothing, and no more everything. */
  readonly explicit: boolean;
}

/** The resources of a snapshot that a subscription selects. */
export interface Selection {
  readonly snapshot: Snapshot;
  /** By name; the very map of the snapshot for a wildcard, so that what is derived from it is derived once. */
  readonly resources: ReadonlyMap<string, SnapshotResource>;
}

/** The name that stands for all resources of a type. */
export const everything = '*';

/** Before the first request of the type. */
export const noSubscription: Subscription = { wildcard: false, names: new Set(), explicit: false };

/**
 * The subscription after a state-of-the-world request, which names the complete set. An empty list stands for everything
 * until the client has named something on this stream, and for nothing afterwards.
 */
export function replaceSubscription(previous: Subscription, names: readonly string[]): Subscription {
  const explicit = previous.explicit || names.length > 0;
  return { wildcard: !explicit || names.includes(everything), names: withoutEverything(names), explicit };
}

/** The subscription that the first delta request of a type makes: without names, of everything. */
export function beginSubscription(
  subscribe: readonly string[],
  unsubscribe: readonly string[],
): Subscription {
  if (subscribe.length === 0) return { ...noSubscription, wildcard: true };
  return changeSubscription(noSubscription, subscribe, unsubscribe);
}

/** The subscription after a later delta request, which names what is added and what is dropped. */
export function changeSubscription(
  previous: Subscription,
  subscribe: readonly string[],
  unsubscribe: readonly string[],
): Subscription {
  if (subscribe.length === 0 && unsubscribe.length === 0) return previous;
  const names = withoutEverything([...previous.names, ...subscribe]);
  for (const name of unsubscribe) names.delete(name);
  const wildcard = !unsubscribe.includes(everything) && (previous.wildcard || subscribe.includes(everything));
  return { wildcard, names, explicit: true };
}

/** Says whether a subscription selects nothing, whatever there is. */
export function isEmptySubscription({ wildcard, names }: Subscription): boolean {
  return !wildcard && names.size === 0;
}

/** The names that a subscription is limited to; undefined when it is of everything. */
export function namesOnly({ wildcard, names }: Subscription): ReadonlySet<string> | undefined {
  return wildcard ? undefined : names;
}

/** The resources that a subscription selects. A name of which there is no resource selects nothing. */
export function select(snapshot: Snapshot, { wildcard, names }: Subscription): Selection {
  const resources = wildcard ? snapshot.resources : pickNames(snapshot.resources, names);
  return { snapshot, resources };
}

/** The entries of a map that have one of these names. */
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

/** Says whether two selections have the same names in the same versions. */
export function sameSelection(one: Selection, other: Selection): boolean {
  // Hundreds of streams ask this of thousands of resources at once; the version of a snapshot says it of all of them.
  if (isWhole(one) && isWhole(other)) return one.snapshot.version === other.snapshot.version;
  if (one.resources.size !== other.resources.size) return false;
  return [...one.resources.values()].every(
    ({ name, version }) => other.resources.get(name)?.version === version,
  );
}

/** Says whether a selection is all that its snapshot has, and shares it with others. */
export function isWhole({ snapshot, resources }: Selection): boolean {
  return resources === snapshot.resources;
}

function withoutEverything(names: readonly string[]): Set<string> {
  const named = new Set(names);
  named.delete(everything);
  return named;
}

/** What both kinds of request have in common. */
export interface AdsRequest {
  readonly typeUrl: string;
  /** Empty when the request does not say; only the first of a stream has to. */
  readonly nodeId: string;
}

/** One of the two ways to talk: its messages, and the exchange that they drive. */
export interface AdsProtocol<Exchange, Request extends AdsRequest, Reply> {
  readonly label: ProtocolLabel;
  readonly newExchange: Exchange;
  /** Throws whatever the decoder throws when the bytes are no request. */
  decode(bytes: Uint8Array): Request;
  /** Names that the request has: for the bounds on them. */
  namesOf(request: Request): readonly string[];
  receive(exchange: Exchange, request: Request): { readonly exchange: Exchange; readonly verdict: Verdict };
  /** Names that the client asks for; undefined when it asks for all. */
  wantedNames(exchange: Exchange): ReadonlySet<string> | undefined;
  /** Names that the exchange has to remember. */
  countNames(exchange: Exchange): number;
  due(exchange: Exchange, snapshot: Snapshot): Reply | undefined;
  sent(exchange: Exchange, reply: Reply, nonce: string): Exchange;
  /** What the client rejects of earlier responses and has not been sent a replacement for. */
  refusalOf(exchange: Exchange): Refusal | undefined;
  /** The encoded response, without a nonce. */
  body(reply: Reply): Uint8Array;
}

/** Resources by name, as far as a client has them. */
export type KnownResources = ReadonlyMap<string, { readonly version: string }>;

/** What makes one set of resources of another. */
export interface DeltaDiff {
  /** New, or of another version. */
  readonly changed: readonly SnapshotResource[];
  /** Names that are there no more. */
  readonly removed: readonly string[];
}

/** What makes `next` of what a client has. */
export function diffResources(known: KnownResources, next: ReadonlyMap<string, SnapshotResource>): DeltaDiff {
  if (known === next) return { changed: [], removed: [] };
  return {
    changed: [...next.values()].filter(({ name, version }) => known.get(name)?.version !== version),
    removed: [...known.keys()].filter((name) => !next.has(name)),
  };
}
