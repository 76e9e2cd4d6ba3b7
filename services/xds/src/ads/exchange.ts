import type { Snapshot } from '../catalog/snapshot.ts';
import type { ResponseCache } from './responses.ts';
import type { KnownResources } from './subscription.ts';

/** What both kinds of discovery request have in common. */
export interface AdsRequest {
  readonly typeUrl: string;
  /** Only the first request of a stream must have it. */
  readonly nodeId: string;
  /** Of the response that it answers; empty for none. */
  readonly nonce: string;
  /** Whether it has an `error_detail`: that alone makes it a NACK, not a comparison of versions. */
  readonly rejects: boolean;
  /** Message of the `error_detail`. */
  readonly message?: string;
}

/** What a request says about the previous response. */
export type Answer =
  /** Nothing: a new or changed subscription, or a stale request. */
  | { readonly type: 'none' }
  | {
      readonly type: 'ack';
      readonly snapshot: Snapshot;
      /** All resources that the client now has. */
      readonly accepted: KnownResources;
      /** What it still rejects of earlier responses. */
      readonly rejected: RejectedResources | undefined;
    }
  | { readonly type: 'nack'; readonly snapshot: Snapshot; readonly rejected: RejectedResources };

/** What a client rejects. */
export interface RejectedResources {
  /** By name; the version is empty where the client rejects the removal of a resource. */
  readonly resources: KnownResources;
  /** The client's message. */
  readonly message: string;
}

/**
 * One variant of the protocol: its messages, and its state ("exchange") of one resource type on one stream. A stream
 * calls `receive` with each request, `due` to find out what to send, and `sent` once it was sent. Nothing is queued:
 * `due` is evaluated against the latest snapshot, and there is at most one response without an answer.
 */
export interface AdsProtocol<Exchange, Request extends AdsRequest, Reply> {
  readonly label: 'sotw' | 'delta';
  readonly newExchange: Exchange;
  /** Throws the decoder's error when the bytes are not a request. */
  decode(bytes: Uint8Array): Request;
  /** Names in the request, to which bounds apply. */
  requestNames(request: Request): readonly string[];
  receive(exchange: Exchange, request: Request): { readonly exchange: Exchange; readonly answer: Answer };
  /** Undefined for a wildcard. */
  subscribedNames(exchange: Exchange): ReadonlySet<string> | undefined;
  /** Number of names that the exchange stores. */
  countNames(exchange: Exchange): number;
  due(exchange: Exchange, snapshot: Snapshot, cache: ResponseCache): Reply | undefined;
  sent(exchange: Exchange, reply: Reply, nonce: string): Exchange;
  /** What the client rejects of earlier responses and has not received a replacement for. */
  rejected(exchange: Exchange): RejectedResources | undefined;
  /** The encoded response, without a nonce. */
  body(reply: Reply, cache: ResponseCache): Uint8Array;
}

/** Finds the resources that a rejection is about: our limiters start each line of the message with a domain. */
export function parseRejection<Resources extends ReadonlyMap<string, unknown>>(rejection: {
  readonly resources: Resources;
  readonly message: string;
}) {
  const { resources, message } = rejection;
  const blamed = new Map<string, string>();
  for (const line of message.split('\n')) {
    const name = parseResourceName(line, resources);
    if (name === undefined) continue;
    const previous = blamed.get(name);
    blamed.set(name, previous === undefined ? line : `${previous}\n${line}`);
  }
  return {
    resources,
    message,
    /** Lines of the message by resource; empty when it names none, which blames all resources. */
    blamed: blamed as ReadonlyMap<string, string>,
  };
}

/** The resource that a line starts with, `<name>: …`; the longest one, because names may contain colons. */
function parseResourceName(line: string, resources: ReadonlyMap<string, unknown>): string | undefined {
  let found: string | undefined;
  for (let colon = line.indexOf(':'); colon !== -1; colon = line.indexOf(':', colon + 1)) {
    const start = line.slice(0, colon);
    if (resources.has(start)) found = start;
  }
  return found;
}
