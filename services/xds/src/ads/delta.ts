import { fromBinary } from '@bufbuild/protobuf';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { DeltaDiscoveryRequestSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { rateLimitConfigType, type Snapshot, type SnapshotResource } from '../catalog/snapshot.ts';
import { parseRejection } from './clients.ts';
import {
  type AdsExchange,
  type AdsProtocol,
  type AdsRequest,
  type Answer,
  beginSubscription,
  changeSubscription,
  diffResources,
  field,
  isEmptySubscription,
  type KnownResources,
  pickNames,
  type RejectedResources,
  type ResourceDiff,
  type Selection,
  type Subscription,
  select,
  toAdsRequest,
  wildcardName,
} from './exchange.ts';

/** State of an incremental exchange. */
export interface DeltaExchange extends AdsExchange {
  /** Resources of the client: its initial versions, then the acknowledged ones. */
  readonly known: KnownResources;
  /** Names that the next response must contain, even if the client should have them. */
  readonly owed: ReadonlySet<string>;
  /** A response is due even if it is empty: the answer to a new wildcard subscription. */
  readonly responseOwed: boolean;
  /** The response that waits for its ACK or NACK. */
  readonly unanswered: SentDelta | undefined;
  /** Versions that the client rejected, by name. They are not sent again. */
  readonly rejected: ReadonlyMap<string, RejectedVersion>;
  /** NACKs since the last ACK. */
  readonly nacks: number;
}

interface RejectedVersion {
  /** Empty when the client rejected the removal. */
  readonly version: string;
  readonly message: string;
}

/** Content of a response. */
export interface DeltaReply {
  /** Selection of the client once it has acknowledged the response. */
  readonly selection: Selection;
  readonly diff: ResourceDiff;
}

interface SentDelta {
  readonly nonce: string;
  readonly reply: DeltaReply;
  /** Resources of the client when the response was sent. */
  readonly known: KnownResources;
  /** Owed again after a NACK. */
  readonly owed: ReadonlySet<string>;
}

/** A request without type and node. */
export interface DeltaRequest extends Pick<AdsRequest, 'nonce' | 'rejects' | 'message'> {
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** Versions by name that the client brings from an earlier stream; first request only. */
  readonly initialVersions: ReadonlyMap<string, string>;
}

/**
 * NACKs in a row after which the whole response counts as rejected, whatever resources the message
 * names: a client that rejects everything would otherwise get one more response for each resource.
 */
const maxNacks = 16;

const noNames: ReadonlySet<string> = new Set();

export const newDeltaExchange: DeltaExchange = {
  subscription: undefined,
  known: new Map(),
  owed: noNames,
  responseOwed: false,
  unanswered: undefined,
  rejected: new Map(),
  nacks: 0,
};

/**
 * A request answers a response only with the nonce of the unanswered one. Its changes of the
 * subscription apply in any case, because the client does not repeat them.
 */
export function receiveDelta(
  exchange: DeltaExchange,
  request: DeltaRequest,
): { readonly exchange: DeltaExchange; readonly answer: Answer } {
  const { subscription, unanswered } = exchange;
  if (subscription === undefined) {
    return { exchange: begin(exchange, request), answer: { type: 'none' } };
  }
  if (unanswered === undefined || request.nonce !== unanswered.nonce) {
    return { exchange: resubscribe(exchange, subscription, request), answer: { type: 'none' } };
  }
  const answered = request.rejects
    ? reject(exchange, unanswered, request.message ?? '')
    : accept(exchange, unanswered);
  return {
    exchange: resubscribe(answered, subscription, request),
    answer: toAnswer(answered, unanswered.reply.selection.snapshot, request),
  };
}

/**
 * Difference to send now. `diff` is a parameter because many streams need the same difference, so
 * that it can be cached. A rejected version is not sent again and does not hold back others. When
 * it is withdrawn, the version before is sent again: the client may have put parts of the rejected
 * one into force, and its ACK clears the rejection.
 */
export function dueDelta(
  exchange: DeltaExchange,
  snapshot: Snapshot,
  diff: typeof diffResources = diffResources,
): DeltaReply | undefined {
  const { subscription, known, owed, responseOwed, unanswered, rejected } = exchange;
  if (subscription === undefined || unanswered !== undefined || isEmptySubscription(subscription)) {
    return undefined;
  }
  const selection = select(snapshot, subscription);
  const { resources } = selection;
  const unsent = withoutRejected(diff(known, resources), rejected);
  const withdrawn = [...rejected].flatMap(([name, { version }]) =>
    getVersion(resources, name) === version ? [] : [name],
  );
  const names = withdrawn.length === 0 ? owed : new Set([...owed, ...withdrawn]);
  const reply = { selection, diff: withOwed(unsent, names, { resources, rejected }) };
  const hasChanges = reply.diff.changed.length > 0 || reply.diff.removed.length > 0;
  return hasChanges || responseOwed ? reply : undefined;
}

export function sentDelta(exchange: DeltaExchange, reply: DeltaReply, nonce: string): DeltaExchange {
  const { owed } = exchange;
  const { resources } = reply.selection;
  const sent = new Set([...reply.diff.changed.map(({ name }) => name), ...reply.diff.removed]);
  const stillRejected = [...exchange.rejected].filter(
    ([name, { version }]) => !sent.has(name) && getVersion(resources, name) === version,
  );
  return {
    ...exchange,
    // A requested resource that was rejected stays owed until it has another version.
    owed: owed.size === 0 ? noNames : new Set([...owed].filter((name) => !sent.has(name))),
    responseOwed: false,
    unanswered: { nonce, reply, known: exchange.known, owed },
    rejected: new Map(stillRejected),
  };
}

/** Versions that the client rejects now; undefined for none. */
function getRejected({ rejected }: DeltaExchange): RejectedResources | undefined {
  if (rejected.size === 0) return undefined;
  const messages = new Set([...rejected.values()].map(({ message }) => message));
  const [only = ''] = messages;
  // Several different messages: each line starts with its resource.
  const lines = [...rejected].map(([name, { message }]) =>
    message.startsWith(`${name}:`) || message.startsWith(`${name}/`)
      ? message
      : `${name}: ${message.replaceAll('\n', '; ')}`,
  );
  return { resources: rejected, message: messages.size === 1 ? only : lines.join('\n') };
}

function begin(
  exchange: DeltaExchange,
  { subscribe, unsubscribe, initialVersions }: DeltaRequest,
): DeltaExchange {
  const subscription = beginSubscription(subscribe, unsubscribe);
  // Clients without initial versions share one empty map, so that their difference is cached.
  const initial =
    initialVersions.size === 0
      ? exchange.known
      : new Map([...initialVersions].map(([name, version]) => [name, { version }]));
  return {
    ...exchange,
    subscription,
    known: retainSubscribed(subscription, initial),
    // The client also has to learn that a resource which it names does not exist.
    owed: new Set([...subscription.names].filter((name) => !initial.has(name))),
    responseOwed: true,
  };
}

function accept(exchange: DeltaExchange, sent: SentDelta): DeltaExchange {
  return { ...exchange, known: applyResponse(exchange, sent), unanswered: undefined, nacks: 0 };
}

function applyResponse(
  { known, rejected }: DeltaExchange,
  { reply: { selection, diff }, known: before }: SentDelta,
): KnownResources {
  // The map of the snapshot, which all up-to-date clients share, so that values derived from it are
  // cached.
  if (known === before && rejected.size === 0) return selection.resources;
  const next = new Map(known);
  for (const name of diff.removed) next.delete(name);
  for (const resource of diff.changed) next.set(resource.name, resource);
  return next;
}

/**
 * A NACK rejects a whole response. Resources that its message does not name are due again, even if
 * they are now as before it: the client may have put parts of the response into force.
 */
function reject(exchange: DeltaExchange, { reply, owed }: SentDelta, message: string): DeltaExchange {
  const { changed, removed } = reply.diff;
  const sent = new Map<string, string>([
    ...changed.map(({ name, version }): [string, string] => [name, version]),
    ...removed.map((name): [string, string] => [name, '']),
  ]);
  const nacks = exchange.nacks + 1;
  const { blamed } = parseRejection({ resources: sent, message });
  const isWhole = blamed.size === 0 || nacks > maxNacks;
  const isRejected = (name: string) => isWhole || blamed.has(name);
  const rejected = [...sent].flatMap(([name, version]): [string, RejectedVersion][] =>
    isRejected(name) ? [[name, { version, message: blamed.get(name) ?? message }]] : [],
  );
  return {
    ...exchange,
    owed: new Set([...exchange.owed, ...owed, ...[...sent.keys()].filter((name) => !isRejected(name))]),
    unanswered: undefined,
    rejected: new Map([...exchange.rejected, ...rejected]),
    nacks,
  };
}

function toAnswer(answered: DeltaExchange, snapshot: Snapshot, request: DeltaRequest): Answer {
  const rejected = getRejected(answered);
  if (!request.rejects) return { type: 'ack', snapshot, accepted: answered.known, rejected };
  const nothing = { resources: new Map(), message: request.message ?? '' };
  return { type: 'nack', snapshot, rejected: rejected ?? nothing };
}

function resubscribe(
  exchange: DeltaExchange,
  previous: Subscription,
  { subscribe, unsubscribe }: DeltaRequest,
): DeltaExchange {
  const subscription = changeSubscription(previous, subscribe, unsubscribe);
  const isSubscribed = (name: string): boolean => subscription.wildcard || subscription.names.has(name);
  const named = [...subscribe, ...unsubscribe].filter((name) => name !== wildcardName);
  const requested = new Set(named);
  return {
    ...exchange,
    subscription,
    known: retainSubscribed(subscription, exchange.known),
    // A name subscribed to again is sent again, because the client may have dropped it. So is one
    // unsubscribed from under a wildcard: the client cannot know whether the wildcard still covers
    // it.
    owed: new Set([...exchange.owed, ...named].filter(isSubscribed)),
    // A resource requested again is sent again even if it was rejected.
    rejected: new Map([...exchange.rejected].filter(([name]) => !requested.has(name) && isSubscribed(name))),
    responseOwed: exchange.responseOwed || (subscription.wildcard && !previous.wildcard),
  };
}

function retainSubscribed({ wildcard, names }: Subscription, known: KnownResources): KnownResources {
  return wildcard ? known : pickNames(known, names);
}

function withOwed(
  diff: ResourceDiff,
  owed: ReadonlySet<string>,
  { resources, rejected }: Pick<Selection, 'resources'> & Pick<DeltaExchange, 'rejected'>,
): ResourceDiff {
  if (owed.size === 0) return diff;
  const included = new Set([...diff.changed.map(({ name }) => name), ...diff.removed]);
  const isRejected = (name: string) => rejected.get(name)?.version === getVersion(resources, name);
  const missing = [...owed].filter((name) => !included.has(name) && !isRejected(name));
  return {
    changed: [...diff.changed, ...missing.flatMap((name) => resources.get(name) ?? [])],
    removed: [...diff.removed, ...missing.filter((name) => !resources.has(name))],
  };
}

function withoutRejected(diff: ResourceDiff, rejected: ReadonlyMap<string, RejectedVersion>): ResourceDiff {
  if (rejected.size === 0) return diff;
  return {
    changed: diff.changed.filter(({ name, version }) => rejected.get(name)?.version !== version),
    removed: diff.removed.filter((name) => rejected.get(name)?.version !== ''),
  };
}

/** Empty when the resource does not exist. */
const getVersion = (resources: ReadonlyMap<string, SnapshotResource>, name: string): string =>
  resources.get(name)?.version ?? '';

/** Encodes an envoy.service.discovery.v3.DeltaDiscoveryResponse without its nonce. */
export function encodeDeltaDiscoveryResponse(
  systemVersionInfo: string,
  { changed, removed }: ResourceDiff,
  typeUrl: string = rateLimitConfigType,
): Uint8Array {
  const writer = field(new BinaryWriter(), 1).string(systemVersionInfo);
  for (const { name, version, any } of changed) {
    // An envoy.service.discovery.v3.Resource.
    const resource = field(field(new BinaryWriter(), 1).string(version), 2).bytes(any);
    field(writer, 2).bytes(field(resource, 3).string(name).finish());
  }
  field(writer, 4).string(typeUrl);
  for (const name of removed) field(writer, 6).string(name);
  return writer.finish();
}

export const deltaProtocol: AdsProtocol<DeltaExchange, AdsRequest & DeltaRequest, DeltaReply> = {
  label: 'delta',
  newExchange: newDeltaExchange,
  decode(bytes) {
    const request = fromBinary(DeltaDiscoveryRequestSchema, bytes);
    const { resourceNamesSubscribe: subscribe, resourceNamesUnsubscribe: unsubscribe } = request;
    const initialVersions = new Map(Object.entries(request.initialResourceVersions));
    const names = [...subscribe, ...unsubscribe];
    return { ...toAdsRequest(request), names, subscribe, unsubscribe, initialVersions };
  },
  receive: receiveDelta,
  due: (exchange, snapshot, cache) => dueDelta(exchange, snapshot, (known, next) => cache.diff(known, next)),
  sent: sentDelta,
  rejected: getRejected,
  body: ({ diff, selection }, cache) =>
    cache.deltaBody(diff, () =>
      encodeDeltaDiscoveryResponse(selection.snapshot.version, diff, cache.typeUrl),
    ),
};
