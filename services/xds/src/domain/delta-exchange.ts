import { type DeltaDiff, diffResources, type KnownResources, sameDiff } from './delta-diff.ts';
import type { Snapshot, SnapshotResource } from './snapshot.ts';
import { type Verdict, verdictOf } from './sotw-exchange.ts';
import {
  beginSubscription,
  changeSubscription,
  everything,
  isEmptySubscription,
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
  /** The response that was rejected, until another is sent. */
  readonly refused: DeltaReply | undefined;
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
}

const noNames: ReadonlySet<string> = new Set();

/** Before the first request. */
export const newDeltaExchange: DeltaExchange = {
  subscription: undefined,
  known: new Map(),
  owed: noNames,
  answerOwed: false,
  unanswered: undefined,
  refused: undefined,
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
  const settled = request.rejects ? reject(exchange, unanswered) : accept(exchange, unanswered);
  return {
    exchange: resubscribe(settled, exchange.subscription, request),
    verdict: verdictOf(request.rejects, unanswered.reply.selection),
  };
}

/**
 * What is to be sent now. `diff` is a parameter because many streams ask for the same difference: it may remember.
 * What was rejected is not sent again until it differs; then something is sent even if the client now has all it needs,
 * so that its ACK tells that it is content.
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
  const reply = { selection, diff: withOwed(diff(known, selection.resources), owed, selection.resources) };
  if (refused !== undefined) return sameDiff(refused.diff, reply.diff) ? undefined : reply;
  const news = reply.diff.changed.length > 0 || reply.diff.removed.length > 0;
  return news || answerOwed ? reply : undefined;
}

/** Takes note that a reply was sent under this nonce. */
export function sentDelta(exchange: DeltaExchange, reply: DeltaReply, nonce: string): DeltaExchange {
  return {
    ...exchange,
    owed: noNames,
    answerOwed: false,
    unanswered: { nonce, reply, known: exchange.known, owed: exchange.owed },
    refused: undefined,
  };
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
  return { ...exchange, known: knownAfter(exchange.known, sent), unanswered: undefined };
}

/** What a client has that accepted a response: all of its selection, unless it dropped some while that was on the way. */
function knownAfter(
  known: KnownResources,
  { reply: { selection, diff }, known: before }: SentDelta,
): KnownResources {
  if (known === before) return selection.resources;
  const told = new Set(diff.changed.map(({ name }) => name));
  return new Map([...selection.resources].filter(([name]) => told.has(name) || known.has(name)));
}

function reject(exchange: DeltaExchange, { reply, owed }: SentDelta): DeltaExchange {
  return { ...exchange, owed: new Set([...exchange.owed, ...owed]), unanswered: undefined, refused: reply };
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
  return {
    ...exchange,
    subscription,
    known: knownUnder(subscription, exchange.known),
    owed,
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
  resources: ReadonlyMap<string, SnapshotResource>,
): DeltaDiff {
  if (owed.size === 0) return diff;
  const told = new Set([...diff.changed.map(({ name }) => name), ...diff.removed]);
  const untold = [...owed].filter((name) => !told.has(name));
  return {
    changed: [...diff.changed, ...untold.flatMap((name) => resources.get(name) ?? [])],
    removed: [...diff.removed, ...untold.filter((name) => !resources.has(name))],
  };
}
