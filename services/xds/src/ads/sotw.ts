import { fromBinary } from '@bufbuild/protobuf';
import { DiscoveryRequestSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import type { Snapshot } from '../catalog/snapshot.ts';
import { clientText, unexplained } from './limiters.ts';
import { maxRejectionLength } from './limits.ts';
import type { ResponseCache } from './responses.ts';
import {
  type AdsProtocol,
  type AdsRequest,
  isEmptySubscription,
  type KnownResources,
  namesOnly,
  noSubscription,
  replaceSubscription,
  type Selection,
  type Subscription,
  sameSelection,
  select,
} from './subscription.ts';

/**
 * Where the state-of-the-world exchange of one type on one stream stands. It is followed in three steps: `receiveSotw`
 * takes note of a request, `dueSotw` says what is to be sent now, `sentSotw` takes note that it was. Nothing is queued:
 * what is due is always of the latest snapshot, and there is one unanswered response at most.
 */
export interface SotwExchange {
  /** Undefined before the first request. */
  readonly subscription: Subscription | undefined;
  /** Nonce of the last response; undefined before it. */
  readonly nonce: string | undefined;
  /** What the last response held, acknowledged or not; undefined when the client is owed one whatever it holds. */
  readonly sent: Selection | undefined;
  /** The last response waits for its ACK or NACK. */
  readonly unanswered: boolean;
}

/** A request, as far as it matters here. */
export interface SotwRequest {
  /** The complete set; `*` is everything. */
  readonly names: readonly string[];
  /** Of the response that it answers; empty for none. */
  readonly nonce: string;
  /** Whether it has an `error_detail`: that, and no comparison of versions, makes it a NACK. */
  readonly rejects: boolean;
  /** Message of the `error_detail`. */
  readonly message?: string;
}

/** What a request says of the response before it. */
export type Verdict =
  /** It answers none: a new or changed subscription, or a stale request. */
  | { readonly type: 'none' }
  | {
      readonly type: 'accepted';
      readonly snapshot: Snapshot;
      /** All that the client has in force. */
      readonly has: KnownResources;
      /** What it still rejects of earlier responses. */
      readonly refusal: Refusal | undefined;
    }
  | { readonly type: 'rejected'; readonly snapshot: Snapshot; readonly refusal: Refusal };

/** What a client rejects. */
export interface Refusal {
  /** By name; a version is empty where it rejects that the resource is gone. */
  readonly refused: KnownResources;
  /** Its own words. */
  readonly message: string;
}

const noVerdict: Verdict = { type: 'none' };

/** Before the first request. */
export const newSotwExchange: SotwExchange = {
  subscription: undefined,
  nonce: undefined,
  sent: undefined,
  unanswered: false,
};

/**
 * Takes note of a request.
 *
 * The first of a stream subscribes and does no more, whatever nonce, version or error it carries over from an earlier
 * stream. A later one that does not carry the nonce of the last response is stale and ignored, names included; the client
 * says it again when it answers that response. Only the first answer to a response counts: what comes after it with the
 * same nonce changes the subscription, and says nothing of what was accepted.
 */
export function receiveSotw(
  exchange: SotwExchange,
  { names, nonce, rejects, message = '' }: SotwRequest,
): { readonly exchange: SotwExchange; readonly verdict: Verdict } {
  const stale = exchange.nonce !== undefined && nonce !== exchange.nonce;
  if (stale) return { exchange, verdict: noVerdict };
  const subscription = replaceSubscription(exchange.subscription ?? noSubscription, names);
  const { sent, unanswered } = exchange;
  return {
    exchange: {
      ...exchange,
      subscription,
      unanswered: false,
      // Who wants nothing may forget what it has; when it wants something again, it is sent it.
      sent: isEmptySubscription(subscription) ? undefined : sent,
    },
    verdict: unanswered && sent !== undefined ? verdictOf(sent, { rejects, message }) : noVerdict,
  };
}

/**
 * What is to be sent now: the complete selection, when it is not what was sent last. So a rejected set is not sent again
 * until its content differs, and a client that has everything is left alone.
 */
export function dueSotw(
  { subscription, sent, unanswered }: SotwExchange,
  snapshot: Snapshot,
): Selection | undefined {
  if (subscription === undefined || unanswered || isEmptySubscription(subscription)) return undefined;
  const selection = select(snapshot, subscription);
  const known = sent !== undefined && sameSelection(sent, selection);
  return known ? undefined : selection;
}

/** Takes note that a selection was sent under this nonce. */
export function sentSotw(exchange: SotwExchange, selection: Selection, nonce: string): SotwExchange {
  return { ...exchange, sent: selection, nonce, unanswered: true };
}

function verdictOf(
  { snapshot, resources }: Selection,
  { rejects, message }: { readonly rejects: boolean; readonly message: string },
): Verdict {
  return rejects
    ? { type: 'rejected', snapshot, refusal: { refused: resources, message } }
    : { type: 'accepted', snapshot, has: resources, refusal: undefined };
}

/** Path of the call. */
export const streamAggregatedResourcesPath =
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

/** Makes the state-of-the-world protocol. */
export function createSotwProtocol(
  cache: ResponseCache,
): AdsProtocol<SotwExchange, AdsRequest & SotwRequest, Selection> {
  return {
    label: 'sotw',
    newExchange: newSotwExchange,
    decode(bytes) {
      const { typeUrl, node, resourceNames, responseNonce, errorDetail } = fromBinary(
        DiscoveryRequestSchema,
        bytes,
      );
      return {
        typeUrl,
        nodeId: node?.id ?? '',
        names: resourceNames,
        nonce: responseNonce,
        message: clientText(errorDetail?.message || unexplained, maxRejectionLength),
        rejects: errorDetail !== undefined,
      };
    },
    namesOf: ({ names }) => names,
    receive: receiveSotw,
    wantedNames: ({ subscription }) => subscription && namesOnly(subscription),
    countNames: ({ subscription }) => subscription?.names.size ?? 0,
    due: dueSotw,
    sent: sentSotw,
    refusalOf: () => undefined,
    body: cache.sotwBody,
  };
}
