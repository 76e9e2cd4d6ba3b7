import { fromBinary } from '@bufbuild/protobuf';
import { DiscoveryRequestSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import type { Snapshot } from '../catalog/snapshot.ts';
import type { AdsProtocol, AdsRequest, Answer } from './exchange.ts';
import {
  isEmptySubscription,
  isSameSelection,
  noSubscription,
  replaceSubscription,
  type Selection,
  type Subscription,
  select,
  subscribedNames,
} from './exchange.ts';
import { rejectionMessage } from './limiters.ts';

/** State of a state-of-the-world exchange. */
export interface SotwExchange {
  /** Undefined before the first request. */
  readonly subscription: Subscription | undefined;
  /** Of the last response; undefined before it. */
  readonly nonce: string | undefined;
  /** Content of the last response; undefined when a response is due whatever its content. */
  readonly sent: Selection | undefined;
  /** The last response waits for its ACK or NACK. */
  readonly unanswered: boolean;
}

/** A request without type and node. */
export interface SotwRequest extends Pick<AdsRequest, 'nonce' | 'rejects' | 'message'> {
  /** The complete list; `*` is the wildcard. */
  readonly names: readonly string[];
}

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

export const sotwProtocol: AdsProtocol<SotwExchange, AdsRequest & SotwRequest, Selection> = {
  label: 'sotw',
  newExchange: newSotwExchange,
  decode(bytes) {
    const request = fromBinary(DiscoveryRequestSchema, bytes);
    return {
      typeUrl: request.typeUrl,
      nodeId: request.node?.id ?? '',
      names: request.resourceNames,
      nonce: request.responseNonce,
      message: rejectionMessage(request.errorDetail?.message),
      rejects: request.errorDetail !== undefined,
    };
  },
  requestNames: ({ names }) => names,
  receive: receiveSotw,
  subscribedNames: ({ subscription }) => subscribedNames(subscription),
  countNames: ({ subscription }) => subscription?.names.size ?? 0,
  due: dueSotw,
  sent: sentSotw,
  rejected: () => undefined,
  body: (reply, cache) => cache.sotwBody(reply),
};
