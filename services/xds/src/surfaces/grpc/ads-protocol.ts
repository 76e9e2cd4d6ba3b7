import type { Snapshot } from '../../domain/snapshot.ts';
import type { Refusal, Verdict } from '../../domain/sotw-exchange.ts';
import type { ProtocolLabel } from '../../metrics/xds-metrics.ts';

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
