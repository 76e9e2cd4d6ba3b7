import { fromBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import {
  type DeltaDiscoveryRequest,
  type DiscoveryRequest,
  DiscoveryRequestSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { matchedRulesKey } from '@tollgate/rules/matched';
import { limiterClassKey } from '@tollgate/rules/resource-shape';
import { rateLimitConfigType, type Snapshot, type SnapshotResource } from '../catalog/snapshot.ts';
import { rejectionMessage } from './clients.ts';

/** Subscription of a client to one resource type on one stream. */
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
  /** Resources by name; for a wildcard the map of the snapshot itself, which is a cache key. */
  readonly resources: ReadonlyMap<string, SnapshotResource>;
}

/** Versions by name, as far as a client has them. */
export type KnownResources = ReadonlyMap<string, { readonly version: string }>;

export const wildcardName = '*';

/** Subscription before the first request of the type. */
export const noSubscription: Subscription = { wildcard: false, names: new Set(), explicit: false };

/**
 * The subscription after a state-of-the-world request, which has the complete list. An empty list
 * is a wildcard until the client has sent a name on this stream, and unsubscribes from everything
 * afterwards.
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
  // Hundreds of streams compare thousands of resources at once; the snapshot version covers all of
  // them.
  if (isWhole(one) && isWhole(other)) return one.snapshot.version === other.snapshot.version;
  if (one.resources.size !== other.resources.size) return false;
  return [...one.resources.values()].every(
    ({ name, version }) => other.resources.get(name)?.version === version,
  );
}

/** Whether a selection is the whole snapshot, which it shares with other streams. */
function isWhole({ snapshot, resources }: Selection): boolean {
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

/** Field of the metadata of a node with the names of policies that checks had. */
const seenPoliciesKey = 'policies_seen';

/** Common members of both kinds of discovery request. */
export interface AdsRequest {
  readonly typeUrl: string;
  /** Only the first request of a stream must have it. */
  readonly nodeId: string;
  /** Class of the limiter, in the metadata of the node; undefined for none. */
  readonly limiterClass: unknown;
  /** Rules that have matched, in the metadata of the node; undefined in other requests. */
  readonly matchedRules: unknown;
  /** Policies that checks had, in the metadata of the node; undefined in other requests. */
  readonly seenPolicies: unknown;
  /** All names in the request, to which bounds apply. */
  readonly names: readonly string[];
  /** Nonce of the response that it answers; empty for none. */
  readonly nonce: string;
  /** Whether it has an `error_detail`: that alone makes it a NACK, not a comparison of versions. */
  readonly rejects: boolean;
  /** Message of the `error_detail`. */
  readonly message?: string | undefined;
}

/** Converts both kinds of request, except for the names. */
export function toAdsRequest(request: DiscoveryRequest | DeltaDiscoveryRequest): Omit<AdsRequest, 'names'> {
  const { typeUrl, node, responseNonce: nonce, errorDetail } = request;
  return {
    typeUrl,
    nodeId: node?.id ?? '',
    limiterClass: node?.metadata?.[limiterClassKey],
    matchedRules: node?.metadata?.[matchedRulesKey],
    seenPolicies: node?.metadata?.[seenPoliciesKey],
    nonce,
    message: errorDetail && rejectionMessage(errorDetail.message),
    rejects: errorDetail !== undefined,
  };
}

/** Answer of a request to the previous response. */
export type Answer =
  /** Nothing: a new or changed subscription, or a stale request. */
  | { readonly type: 'none' }
  | {
      readonly type: 'ack';
      readonly snapshot: Snapshot;
      /** All resources that the client now has. */
      readonly accepted: KnownResources;
      /** Resources of earlier responses that it still rejects. */
      readonly rejected: RejectedResources | undefined;
    }
  | { readonly type: 'nack'; readonly snapshot: Snapshot; readonly rejected: RejectedResources };

/** Resources that a client rejects. */
export interface RejectedResources {
  /** Resources by name; the version is empty where the client rejects the removal of a resource. */
  readonly resources: KnownResources;
  /** The client's message. */
  readonly message: string;
}

/** The state of one resource type on one stream. */
export interface AdsExchange {
  /** Undefined before the first request. */
  readonly subscription: Subscription | undefined;
  /** Names that the next response must contain. */
  readonly owed?: ReadonlySet<string>;
}

/**
 * One variant of the protocol: its messages, and its state ("exchange") of one resource type on one
 * stream. A stream calls `receive` with each request, `due` to find out what to send, and `sent`
 * once it was sent. Nothing is queued: `due` is evaluated against the latest snapshot, and there is
 * at most one response without an answer.
 */
export interface AdsProtocol<Exchange extends AdsExchange, Request extends AdsRequest, Reply> {
  readonly label: 'sotw' | 'delta';
  readonly newExchange: Exchange;
  /** Throws the decoder's error when the bytes are not a request. */
  decode(bytes: Uint8Array): Request;
  receive(exchange: Exchange, request: Request): { readonly exchange: Exchange; readonly answer: Answer };
  due(exchange: Exchange, snapshot: Snapshot, cache: ResponseCache): Reply | undefined;
  sent(exchange: Exchange, reply: Reply, nonce: string): Exchange;
  /**
   * Resources of earlier responses that the client rejects and has not received a replacement for.
   */
  rejected(exchange: Exchange): RejectedResources | undefined;
  /** The encoded response, without a nonce. */
  body(reply: Reply, cache: ResponseCache): Uint8Array;
}

// Responses are encoded field by field, because all streams share the encoded resources and differ
// only in the nonce. The nonce comes first: the order of fields in protocol buffers is free.

/** Begins a field of text, bytes or a message. */
export const field = (writer: BinaryWriter, number: number): BinaryWriter =>
  writer.tag(number, WireType.LengthDelimited);

/** Encodes an envoy.service.discovery.v3.DiscoveryResponse without its nonce. */
export function encodeDiscoveryResponse(
  versionInfo: string,
  resources: Iterable<SnapshotResource>,
  typeUrl: string = rateLimitConfigType,
): Uint8Array {
  const writer = field(new BinaryWriter(), 1).string(versionInfo);
  for (const { any } of resources) field(writer, 2).bytes(any);
  return field(writer, 4).string(typeUrl).finish();
}

/** Encodes the nonce, which is field 5 of both responses. */
export function encodeNonce(nonce: string): Uint8Array {
  return field(new BinaryWriter(), 5).string(nonce).finish();
}

type Resources = ReadonlyMap<string, SnapshotResource>;

/**
 * Values derived from a snapshot, computed once for all streams that need the same. They live as
 * long as the snapshot, or the selection of the one stream that subscribes by name.
 */
export class ResponseCache {
  /** Type of the resources. */
  readonly typeUrl: string;
  readonly #versions = new WeakMap<KnownResources, ReadonlyMap<string, string>>();
  readonly #diffs = new WeakMap<KnownResources, WeakMap<Resources, ResourceDiff>>();
  readonly #deltaBodies = new WeakMap<ResourceDiff, Uint8Array>();
  #latestBody: { readonly resources: Resources; readonly body: Uint8Array } | undefined;

  constructor(typeUrl: string = rateLimitConfigType) {
    this.typeUrl = typeUrl;
  }

  /** Versions by name. */
  versions(resources: KnownResources): ReadonlyMap<string, string> {
    return getOrCreate(
      this.#versions,
      resources,
      () => new Map([...resources].map(([name, { version }]) => [name, version])),
    );
  }

  /** A state-of-the-world response without a nonce. Cached for the latest snapshot only. */
  sotwBody(selection: Selection): Uint8Array {
    const { snapshot, resources } = selection;
    const encode = () => encodeDiscoveryResponse(snapshot.version, resources.values(), this.typeUrl);
    if (!isWhole(selection)) return encode();
    if (this.#latestBody?.resources !== resources) this.#latestBody = { resources, body: encode() };
    return this.#latestBody.body;
  }

  diff(known: KnownResources, next: Resources): ResourceDiff {
    const fromKnown = getOrCreate(this.#diffs, known, () => new WeakMap<Resources, ResourceDiff>());
    return getOrCreate(fromKnown, next, () => diffResources(known, next));
  }

  /** An incremental response without a nonce. */
  deltaBody(diff: ResourceDiff, encode: () => Uint8Array): Uint8Array {
    return getOrCreate(this.#deltaBodies, diff, encode);
  }
}

function getOrCreate<Key extends object, Value extends object>(
  cache: WeakMap<Key, Value>,
  key: Key,
  create: () => Value,
): Value {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const created = create();
  cache.set(key, created);
  return created;
}

/** State of a state-of-the-world exchange. */
export interface SotwExchange extends AdsExchange {
  /** Nonce of the last response; undefined before it. */
  readonly nonce: string | undefined;
  /** Content of the last response; undefined when a response is due whatever its content. */
  readonly sent: Selection | undefined;
  /** The last response waits for its ACK or NACK. */
  readonly unanswered: boolean;
}

/** A request without type and node. Its names are the complete list; `*` is the wildcard. */
export type SotwRequest = Pick<AdsRequest, 'names' | 'nonce' | 'rejects' | 'message'>;

export const newSotwExchange: SotwExchange = {
  subscription: undefined,
  nonce: undefined,
  sent: undefined,
  unanswered: false,
};

/**
 * The first request of a stream only subscribes: nonce, version and error in it are those of an
 * earlier stream. A later one without the nonce of the last response is stale and ignored,
 * including its names: the client repeats them when it answers that response. Only the first answer
 * to a response counts; later ones change the subscription.
 */
export function receiveSotw(
  exchange: SotwExchange,
  { names, nonce, rejects, message = '' }: SotwRequest,
): { readonly exchange: SotwExchange; readonly answer: Answer } {
  const stale = exchange.nonce !== undefined && nonce !== exchange.nonce;
  if (stale) return { exchange, answer: { type: 'none' } };
  const subscription = replaceSubscription(exchange.subscription ?? noSubscription, names);
  const { sent, unanswered } = exchange;
  return {
    exchange: {
      ...exchange,
      subscription,
      unanswered: false,
      // A client that unsubscribes from everything may drop its resources: the next subscription
      // sends them again.
      sent: isEmptySubscription(subscription) ? undefined : sent,
    },
    answer: unanswered && sent !== undefined ? toAnswer(sent, rejects, message) : { type: 'none' },
  };
}

/**
 * The complete selection, unless it is what was sent last. So a rejected set is sent again only
 * when its content changes.
 */
export function dueSotw(
  { subscription, sent, unanswered }: SotwExchange,
  snapshot: Snapshot,
): Selection | undefined {
  if (subscription === undefined || unanswered || isEmptySubscription(subscription)) return undefined;
  const selection = select(snapshot, subscription);
  return sent !== undefined && isSameSelection(sent, selection) ? undefined : selection;
}

export function sentSotw(exchange: SotwExchange, selection: Selection, nonce: string): SotwExchange {
  return { ...exchange, sent: selection, nonce, unanswered: true };
}

function toAnswer({ snapshot, resources }: Selection, rejects: boolean, message: string): Answer {
  return rejects
    ? { type: 'nack', snapshot, rejected: { resources, message } }
    : { type: 'ack', snapshot, accepted: resources, rejected: undefined };
}

export const sotwProtocol: AdsProtocol<SotwExchange, AdsRequest, Selection> = {
  label: 'sotw',
  newExchange: newSotwExchange,
  decode(bytes) {
    const request = fromBinary(DiscoveryRequestSchema, bytes);
    return { ...toAdsRequest(request), names: request.resourceNames };
  },
  receive: receiveSotw,
  due: dueSotw,
  sent: sentSotw,
  rejected: () => undefined,
  body: (reply, cache) => cache.sotwBody(reply),
};
