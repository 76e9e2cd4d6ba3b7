import type { RequestContext } from '../hooks.ts';
import type { KeyCase } from '../key-case.ts';
import type { OptionNames } from '../option-names.ts';
import type { Parse } from './body.ts';
import type { ApiResponse } from './response.ts';

/**
 * A parameter value. Null and undefined are not sent, except null in JSON; within an array or
 * object of a query or form they are an error. Numbers and booleans are sent as text.
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
 * Parameters under their wire names (snake_case), for a query, a form or a JSON body. For the
 * authorization server, arrays of scopes are joined, and objects (`claims`,
 * `authorization_details`) are sent as JSON.
 */
export type WireParams = { readonly [name: string]: WireValue };

/** A request before it is sent; `onRequest` may change it. */
export type OutgoingRequest = { url: string; method: string; readonly headers: Headers; body: RequestBody };

/**
 * The body of a request. A plain object is sent as JSON if the content type says so, else as a
 * form; other bodies are passed to `fetch` unchanged.
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

/** Headers in any form that `fetch` accepts. */
export type HeadersInput = NonNullable<ConstructorParameters<typeof Headers>[0]>;

/** Options for reading the response. */
export type ResponseOptions<Keys extends KeyCase = KeyCase> = {
  /** How the body is parsed. Default `'automatic'`: by content type. `false` leaves it as text. */
  readonly parse?: Parse;
  /**
   * Whether keys of a parsed object are converted to snake_case. Two keys that become the same one
   * are a ParseError. Default: the client's.
   */
  readonly keyCase?: Keys;
  /** Makes the result of a parsed object. Default: the client's. */
  readonly parsedFactory?: ParsedFactory;
};

/** Converts a parsed object, its keys already converted, into another shape. */
export type ParsedFactory = (parsed: Readonly<Record<string, unknown>>) => unknown;

/** Options of one request. */
export type RequestOptions<Keys extends KeyCase = KeyCase> = ResponseOptions<Keys> & {
  /** Added to the URL's query; replaces parameters of the same name. */
  readonly query?: WireParams | URLSearchParams;
  readonly body?: RequestBody;
  readonly headers?: HeadersInput;
  /** Whether a status of 400 and above throws. Default: the client's. */
  readonly throwOnError?: boolean;
  readonly signal?: AbortSignal;
  /**
   * Milliseconds until the response must be complete, redirects included; 0 means no limit.
   * Default: the client's.
   */
  readonly timeoutMs?: number;
  /** Whether a redirect is followed, returned, or an error. Default `'follow'`. */
  readonly redirect?: 'follow' | 'manual' | 'error';
  /** Default: the client's. */
  readonly maxRedirects?: number;
  /**
   * Called just before the request is sent, which it may change. What it throws ends the call, as
   * the cause of a ConfigurationError.
   */
  readonly onRequest?: (request: OutgoingRequest) => void | Promise<void>;
};

/** Options with which `parsed` has the type that the caller names: its keys are not converted. */
export type UnconvertedOptions = RequestOptions &
  ({ readonly keyCase: 'preserve' } | { readonly parsedFactory: ParsedFactory });

/**
 * Calls `attempt` until it accepts the outcome. Each attempt authenticates and signs again. An
 * attempt resolves with the response whatever its status, and rejects with a TransportError if
 * there is none; error statuses are converted to errors afterwards.
 */
export type RetryPolicy = (
  context: RequestContext,
  attempt: (attemptNumber: number) => Promise<ApiResponse>,
  onRetry: (event: { readonly attempt: number; readonly delayMs: number; readonly reason: string }) => void,
) => Promise<ApiResponse>;

/** The names of the options of a request. */
export const requestOptionNames: OptionNames<RequestOptions> = {
  ...{ parse: 1, keyCase: 1, parsedFactory: 1, query: 1, body: 1 },
  ...{ headers: 1, throwOnError: 1, signal: 1, timeoutMs: 1, redirect: 1 },
  ...{ maxRedirects: 1, onRequest: 1 },
};
