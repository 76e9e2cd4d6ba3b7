import { fromBinary } from '@bufbuild/protobuf';
import { DeltaDiscoveryRequestSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import type { Snapshot, SnapshotResource } from '../catalog/snapshot.ts';
import { readRejection } from '../status/limiter-groups.ts';
import { clientText, unexplained } from './limiters.ts';
import { maxRejectionLength } from './limits.ts';
import type { ResponseCache } from './responses.ts';
import type { Refusal, Verdict } from './sotw.ts';
import {
  type AdsProtocol,
  type AdsRequest,
  beginSubscription,
  changeSubscription,
  type DeltaDiff,
  diffResources,
  everything,
  isEmptySubscription,
  type KnownResources,
  namesOnly,
  pickNames,
  type Selection,
  type Subscription,
  select,
} from './subscription.ts';

/**
 * Where the incremental exchange of one type on one stream stands. It is followed in the three steps of the
 * state-of-the-world exchange: `receiveDelta`, `dueDelta`, `sentDelta`.
 */
export interface DeltaExchange {
  /** Undefined before the first request. */
  readonly subscription: Subscription | undefined;
  /** What the client has: what it brought along, then what it acknowledged. */
  readonly known: KnownResources;
  /** Names that the next response is to tell of, there or not, even if the client should know. */
  readonly owed: ReadonlySet<string>;
  /** A response is owed even if it is empty: it tells who wants everything that there is no more. */
  readonly answerOwed: boolean;
  /** The response that waits for its ACK or NACK. */
  readonly unanswered: SentDelta | undefined;
  /** Versions that the client has rejected, by name. Not sent again until there is another one. */
  readonly refused: ReadonlyMap<string, RefusedVersion>;
  /** Responses rejected since the last one that was accepted. */
  readonly rejections: number;
}

/** A version that a client has rejected. */
interface RefusedVersion {
  /** Empty when it rejected that the resource is gone. */
  readonly version: string;
  /** Why, in its own words. */
  readonly message: string;
}

/** What a response tells. */
export interface DeltaReply {
  /** What the client has once it has accepted it. */
  readonly selection: Selection;
  readonly diff: DeltaDiff;
}

interface SentDelta {
  readonly nonce: string;
  readonly reply: DeltaReply;
  /** What the client had when it was sent. */
  readonly known: KnownResources;
  /** What it was to tell of: owed again when it is rejected. */
  readonly owed: ReadonlySet<string>;
}

/** A request, as far as it matters here. */
export interface DeltaRequest {
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** Versions by name that the client has from an earlier stream; heeded in the first request only. */
  readonly initialVersions: ReadonlyMap<string, string>;
  /** Of the response that it answers; empty for none. */
  readonly nonce: string;
  /** Whether it has an `error_detail`. */
  readonly rejects: boolean;
  /** Message of the `error_detail`. */
  readonly message?: string;
}

/**
 * Rejections in a row after which a whole response counts as rejected, whatever the client blames: one that rejects
 * everything would otherwise be sent nearly everything once for each resource.
 */
const maxRejections = 16;

const noNames: ReadonlySet<string> = new Set();

/** Before the first request. */
export const newDeltaExchange: DeltaExchange = {
  subscription: undefined,
  known: new Map(),
  owed: noNames,
  answerOwed: false,
  unanswered: undefined,
  refused: new Map(),
  rejections: 0,
};

/**
 * Takes note of a request. It answers a response only by the nonce of the one that is unanswered; its changes of the
 * subscription count in any case, since the client will not say them again.
 */
export function receiveDelta(
  exchange: DeltaExchange,
  request: DeltaRequest,
): { readonly exchange: DeltaExchange; readonly verdict: Verdict } {
  if (exchange.subscription === undefined) {
    return { exchange: begin(exchange, request), verdict: { type: 'none' } };
  }
  const { unanswered } = exchange;
  if (unanswered === undefined || request.nonce !== unanswered.nonce) {
    return { exchange: resubscribe(exchange, exchange.subscription, request), verdict: { type: 'none' } };
  }
  const settled = request.rejects
    ? reject(exchange, unanswered, request.message ?? '')
    : accept(exchange, unanswered);
  return {
    exchange: resubscribe(settled, exchange.subscription, request),
    verdict: verdictOf(settled, unanswered.reply, request),
  };
}

/**
 * What is to be sent now. `diff` is a parameter because many streams ask for the same difference: it may remember.
 * A version counts as sent once it is sent: one that was rejected is neither sent again nor holds up others. When it is
 * replaced or taken back, something is sent even if the client has all it needs, so that its ACK ends the rejection.
 */
export function dueDelta(
  exchange: DeltaExchange,
  snapshot: Snapshot,
  diff: typeof diffResources = diffResources,
): DeltaReply | undefined {
  const { subscription, known, owed, answerOwed, unanswered, refused } = exchange;
  if (subscription === undefined || unanswered !== undefined || isEmptySubscription(subscription)) {
    return undefined;
  }
  const selection = select(snapshot, subscription);
  const { resources } = selection;
  const unsent = withoutRefused(diff(known, resources), refused);
  const reply = { selection, diff: withOwed(unsent, owed, { resources, refused }) };
  const hasChanges = reply.diff.changed.length > 0 || reply.diff.removed.length > 0;
  const isReplaced = [...refused].some(([name, { version }]) => versionOf(resources, name) !== version);
  return hasChanges || answerOwed || isReplaced ? reply : undefined;
}

/** Takes note that a reply was sent under this nonce. */
export function sentDelta(exchange: DeltaExchange, reply: DeltaReply, nonce: string): DeltaExchange {
  const { owed } = exchange;
  const { resources } = reply.selection;
  const sent = new Set([...reply.diff.changed.map(({ name }) => name), ...reply.diff.removed]);
  const stillRefused = [...exchange.refused].filter(
    ([name, { version }]) => !sent.has(name) && versionOf(resources, name) === version,
  );
  return {
    ...exchange,
    // A requested resource that was rejected is owed until it has another version.
    owed: owed.size === 0 ? noNames : new Set([...owed].filter((name) => !sent.has(name))),
    answerOwed: false,
    unanswered: { nonce, reply, known: exchange.known, owed },
    refused: new Map(stillRefused),
  };
}

/** What the client rejects at present; undefined when that is nothing. */
function refusalOf({ refused }: DeltaExchange): Refusal | undefined {
  if (refused.size === 0) return undefined;
  const messages = new Set([...refused.values()].map(({ message }) => message));
  const [only = ''] = messages;
  // Of different rejections each line names its resource.
  const lines = [...refused].map(([name, { message }]) =>
    message.startsWith(`${name}:`) ? message : `${name}: ${message.replaceAll('\n', '; ')}`,
  );
  return { refused, message: messages.size === 1 ? only : lines.join('\n') };
}

function begin(
  exchange: DeltaExchange,
  { subscribe, unsubscribe, initialVersions }: DeltaRequest,
): DeltaExchange {
  const subscription = beginSubscription(subscribe, unsubscribe);
  // Who brings nothing has the same nothing as the others: what makes a snapshot of it is derived once.
  const brought =
    initialVersions.size === 0
      ? exchange.known
      : new Map([...initialVersions].map(([name, version]) => [name, { version }]));
  return {
    ...exchange,
    subscription,
    known: knownUnder(subscription, brought),
    // Of a name that it has no version of, the client is told even that there is no such resource.
    owed: new Set([...subscription.names].filter((name) => !brought.has(name))),
    answerOwed: true,
  };
}

function accept(exchange: DeltaExchange, sent: SentDelta): DeltaExchange {
  return { ...exchange, known: knownAfter(exchange, sent), unanswered: undefined, rejections: 0 };
}

/** What a client has that accepted a response. */
function knownAfter(
  { known, refused }: DeltaExchange,
  { reply: { selection, diff }, known: before }: SentDelta,
): KnownResources {
  // Shared with all others that have everything, so that what is derived from it is derived once.
  if (known === before && refused.size === 0) return selection.resources;
  const next = new Map(known);
  for (const name of diff.removed) next.delete(name);
  for (const resource of diff.changed) next.set(resource.name, resource);
  return next;
}

/** A client rejects a response as a whole. The resources that it does not blame are due again, without the others. */
function reject(exchange: DeltaExchange, { reply, owed }: SentDelta, message: string): DeltaExchange {
  const { changed, removed } = reply.diff;
  const sent = new Map<string, string>([
    ...changed.map(({ name, version }): [string, string] => [name, version]),
    ...removed.map((name): [string, string] => [name, '']),
  ]);
  const rejections = exchange.rejections + 1;
  const { blamed } = readRejection({ refused: sent, message });
  const isWhole = blamed.size === 0 || rejections > maxRejections;
  const rejected = [...sent].flatMap(([name, version]): [string, RefusedVersion][] =>
    isWhole || blamed.has(name) ? [[name, { version, message: blamed.get(name) ?? message }]] : [],
  );
  const refused = new Map([...exchange.refused, ...rejected]);
  return {
    ...exchange,
    owed: new Set([...exchange.owed, ...owed]),
    unanswered: undefined,
    refused,
    rejections,
  };
}

function verdictOf(settled: DeltaExchange, { selection }: DeltaReply, request: DeltaRequest): Verdict {
  const { snapshot } = selection;
  const refusal = refusalOf(settled);
  if (!request.rejects) return { type: 'accepted', snapshot, has: settled.known, refusal };
  const nothing = { refused: new Map(), message: request.message ?? '' };
  return { type: 'rejected', snapshot, refusal: refusal ?? nothing };
}

function resubscribe(
  exchange: DeltaExchange,
  previous: Subscription,
  { subscribe, unsubscribe }: DeltaRequest,
): DeltaExchange {
  const subscription = changeSubscription(previous, subscribe, unsubscribe);
  // A name subscribed to once more is sent once more: the client may have forgotten it. One unsubscribed from under a
  // wildcard is told of as well: the client cannot know whether the wildcard still gives it.
  const named = [...exchange.owed, ...subscribe, ...unsubscribe].filter((name) => name !== everything);
  const owed = new Set(subscription.wildcard ? named : named.filter((name) => subscription.names.has(name)));
  // Asked for once more, it is sent once more even if it was rejected.
  const asked = new Set([...subscribe, ...unsubscribe]);
  const refused = new Map(
    [...exchange.refused].filter(
      ([name]) => !asked.has(name) && (subscription.wildcard || subscription.names.has(name)),
    ),
  );
  return {
    ...exchange,
    subscription,
    known: knownUnder(subscription, exchange.known),
    owed,
    refused,
    answerOwed: exchange.answerOwed || (subscription.wildcard && !previous.wildcard),
  };
}

/** What a client still keeps: not what it has unsubscribed from. */
function knownUnder({ wildcard, names }: Subscription, known: KnownResources): KnownResources {
  return wildcard ? known : pickNames(known, names);
}

function withOwed(
  diff: DeltaDiff,
  owed: ReadonlySet<string>,
  { resources, refused }: { readonly resources: Selection['resources'] } & Pick<DeltaExchange, 'refused'>,
): DeltaDiff {
  if (owed.size === 0) return diff;
  const told = new Set([...diff.changed.map(({ name }) => name), ...diff.removed]);
  const isRefused = (name: string) => refused.get(name)?.version === versionOf(resources, name);
  const untold = [...owed].filter((name) => !told.has(name) && !isRefused(name));
  return {
    changed: [...diff.changed, ...untold.flatMap((name) => resources.get(name) ?? [])],
    removed: [...diff.removed, ...untold.filter((name) => !resources.has(name))],
  };
}

function withoutRefused(diff: DeltaDiff, refused: ReadonlyMap<string, RefusedVersion>): DeltaDiff {
  if (refused.size === 0) return diff;
  return {
    changed: diff.changed.filter(({ name, version }) => refused.get(name)?.version !== version),
    removed: diff.removed.filter((name) => refused.get(name)?.version !== ''),
  };
}

/** Empty when there is no such resource. */
const versionOf = (resources: ReadonlyMap<string, SnapshotResource>, name: string): string =>
  resources.get(name)?.version ?? '';

/** Path of the call. */
export const deltaAggregatedResourcesPath =
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources';

/** Makes the incremental protocol. */
export function createDeltaProtocol(
  cache: ResponseCache,
): AdsProtocol<DeltaExchange, AdsRequest & DeltaRequest, DeltaReply> {
  return {
    label: 'delta',
    newExchange: newDeltaExchange,
    decode(bytes) {
      const request = fromBinary(DeltaDiscoveryRequestSchema, bytes);
      return {
        typeUrl: request.typeUrl,
        nodeId: request.node?.id ?? '',
        subscribe: request.resourceNamesSubscribe,
        unsubscribe: request.resourceNamesUnsubscribe,
        initialVersions: new Map(Object.entries(request.initialResourceVersions)),
        nonce: request.responseNonce,
        message: clientText(request.errorDetail?.message || unexplained, maxRejectionLength),
        rejects: request.errorDetail !== undefined,
      };
    },
    namesOf: ({ subscribe, unsubscribe }) => [...subscribe, ...unsubscribe],
    receive: receiveDelta,
    wantedNames: ({ subscription }) => subscription && namesOnly(subscription),
    countNames: ({ subscription, owed }) => (subscription?.names.size ?? 0) + owed.size,
    due: (exchange, snapshot) => dueDelta(exchange, snapshot, cache.diff),
    sent: sentDelta,
    refusalOf,
    body: cache.deltaBody,
  };
}
