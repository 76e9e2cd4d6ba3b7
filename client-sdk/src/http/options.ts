import type { RequestContext } from '../hooks.ts';
import type { KeyCase } from '../keys.ts';
import type { Parse } from './body.ts';
import type { ApiResponse } from './response.ts';

/**
 * A value of a parameter. Null and undefined are not sent, but in JSON, which has null; within an array or object a query or form
 * cannot say them, which is an error. Numbers and booleans are sent as text.
 */
export type WireValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly WireValue[]
  | { readonly [key: string]: WireValue };

/**
 * Parameters under their names on the wire (snake_case), for a query, a form or a JSON body. To the authorization server an array of
 * scopes goes joined, and objects (`claims`, `authorization_details`) as JSON.
 */
export type WireParams = { readonly [name: string]: WireValue };

/** A request as it goes out; `onRequest` may change it. */
export type OutgoingRequest = { url: string; method: string; readonly headers: Headers; body: RequestBody };

/**
 * What a request may carry. A plain object is sent as a form, or as JSON when the content type says so; the rest goes to `fetch` as it is.
 */
export type RequestBody =
  | WireParams
  | string
  | URLSearchParams
  | FormData
  | Blob
  | ArrayBuffer
  | Uint8Array<ArrayBuffer>
  | ReadableStream
  | null
  | undefined;

/** Headers in any form that `fetch` takes. */
export type HeadersInput = NonNullable<ConstructorParameters<typeof Headers>[0]>;

/** Options of the response to a request. */
export type ResponseOptions = {
  /** How the body is read. Default `'automatic'`: by content type. `false` leaves it as text. */
  readonly parse?: Parse;
  /** Whether keys of a parsed object are turned into snake_case. Default: the client's. */
  readonly keyCase?: KeyCase;
  /** Makes the result of a parsed object. Default: the client's. */
  readonly parsedFactory?: ParsedFactory;
};

/** Makes the caller's own shape from a parsed object (keys already converted). */
export type ParsedFactory = (parsed: Readonly<Record<string, unknown>>) => unknown;

/** Options of one request. */
export type RequestOptions = ResponseOptions & {
  /** Added to the URL's query; replaces keys that are there. */
  readonly query?: WireParams | URLSearchParams;
  readonly body?: RequestBody;
  readonly headers?: HeadersInput;
  /** Whether a status of 400 and above throws. Default: the client's. */
  readonly throwOnError?: boolean;
  readonly signal?: AbortSignal;
  /** Milliseconds until the whole answer must be there, redirects included; 0 means no end. Default: the client's. */
  readonly timeoutMs?: number;
  /** What a redirect does: followed, returned, or an error. Default `'follow'`. */
  readonly redirect?: 'follow' | 'manual' | 'error';
  /** Default: the client's. */
  readonly maxRedirects?: number;
  /** Sees and may change the request just before it is sent. What it throws ends the call, as the cause of a ConfigurationError. */
  readonly onRequest?: (request: OutgoingRequest) => void | Promise<void>;
};

/**
 * Calls `attempt` until its outcome is to be kept. Each attempt authenticates the client and signs anew. An attempt resolves with
 * the response whatever its status, and rejects with a TransportError when none came; turning a status into an error comes later.
 */
export type RetryPolicy = (
  context: RequestContext,
  attempt: (attemptNumber: number) => Promise<ApiResponse>,
  onRetry: (event: { readonly attempt: number; readonly delayMs: number; readonly reason: string }) => void,
) => Promise<ApiResponse>;
