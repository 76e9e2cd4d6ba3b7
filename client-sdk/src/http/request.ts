import type { ClientAuthContext, ClientAuthFunction, MutableTokenRequest } from '../client-auth/methods.ts';
import type { ArrayFormat, Fetch, TokenMethod } from '../client-options.ts';
import { ConfigurationError } from '../errors.ts';
import type { Operation, RequestContext } from '../hooks.ts';
import { isObject, isPlainObject, strictJson } from '../objects.ts';
import type { ClientSettings } from '../settings.ts';
import { isJsonType } from './body.ts';
import type { HeadersInput, OutgoingRequest, RequestBody, RequestOptions, WireParams } from './options.ts';
import { assertSecure, jsonParams, oauthParams, queryString, toForm } from './url.ts';

/** A request to an endpoint of the authorization server. */
export type EndpointRequest = {
  readonly operation: Operation;
  /** Absolute, or relative to the site. */
  readonly endpoint: string;
  readonly params: WireParams;
  /** Default: the client's for token and revocation requests, else a form. */
  readonly tokenMethod?: TokenMethod | undefined;
  /** Whether the client authenticates. Default true. */
  readonly authenticate?: boolean;
  readonly options?: Omit<RequestOptions, 'query' | 'body'>;
};

/**
 * Writes the client's credentials into a request. @throws {ConfigurationError} if they would be
 * sent over plain http.
 */
export async function authenticateRequest(
  request: MutableTokenRequest,
  auth: ClientAuthFunction | undefined,
  { client, allowInsecure }: { readonly client: ClientAuthContext; readonly allowInsecure: boolean },
): Promise<void> {
  if (!request.headers.has('accept')) request.headers.set('accept', 'application/json');
  await auth?.(request, client);
  // The check follows authentication, which may change the URL.
  assertSecure(request.url, allowInsecure);
}

/**
 * Makes an authenticated request with its parameters in a form, in JSON if the headers say so, or
 * in the query.
 */
export async function prepareEndpointRequest(
  settings: ClientSettings,
  target: { readonly url: string; readonly request: EndpointRequest; readonly tokenMethod: TokenMethod },
  { auth, client }: { readonly auth: ClientAuthFunction; readonly client: ClientAuthContext },
): Promise<OutgoingRequest> {
  const { request, tokenMethod } = target;
  const { arrayFormat, allowInsecure } = settings;
  const params = oauthParams(request.params);
  const draft: MutableTokenRequest = {
    url: target.url,
    method: tokenMethod === 'get' ? 'GET' : 'POST',
    headers: mergeHeaders(settings, request.options?.headers),
    body: toForm(params, arrayFormat),
  };
  const isAuthenticated = request.authenticate !== false;
  await authenticateRequest(draft, isAuthenticated ? auth : undefined, { client, allowInsecure });
  if (tokenMethod === 'post') {
    const { headers, body } = draft;
    const isJsonBody = isJson(headers);
    return {
      ...draft,
      body: isJsonBody ? jsonParams(request.params, params, body) : encodeForm(body, headers),
    };
  }
  const query = queryString([...draft.body]);
  const url = query === '' ? draft.url : `${draft.url}${draft.url.includes('?') ? '&' : '?'}${query}`;
  return { ...draft, url, body: undefined };
}

/** The context of a request without client authentication. */
export function requestContext(
  operation: Operation,
  method: string,
  url: string,
  signal: AbortSignal | undefined,
): RequestContext {
  return { operation, grantType: undefined, clientAuth: undefined, method, url: withoutQuery(url), signal };
}

/** The URL as it may be shown: queries may hold tokens. */
export function withoutQuery(url: string): string {
  return url.split('?', 1)[0] ?? url;
}

/** A body that `fetch` accepts. */
export type EncodedBody = Exclude<RequestBody, WireParams | URLSearchParams>;

/**
 * Encodes a plain object as JSON if the headers say so, else as a form, and sets the content type.
 * Other bodies are returned unchanged. JSON keeps null, which a form leaves out.
 */
export function encodeBody(body: RequestBody, headers: Headers, format: ArrayFormat): EncodedBody {
  if (body instanceof URLSearchParams) return encodeForm(body, headers);
  if (!isParams(body)) return body;
  return isJson(headers) ? strictJson(body, 'body') : encodeForm(toForm(body, format), headers);
}

/** Whether a body is a plain object of parameters. */
export function isParams(body: RequestBody): body is WireParams {
  return typeof body === 'object' && body !== null && isPlainObject(body);
}

/** The text of a form; sets the content type unless there is one. */
export function encodeForm(form: URLSearchParams, headers: Headers): string {
  if (!headers.has('content-type')) headers.set('content-type', 'application/x-www-form-urlencoded');
  return form.toString();
}

function isJson(headers: Headers): boolean {
  return isJsonType(headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '');
}

/** The call's headers over those of the client; neither is changed. */
export function mergeHeaders({ requestInit }: ClientSettings, own: HeadersInput | undefined): Headers {
  const headers = safeHeaders(requestInit.headers);
  for (const [name, value] of safeHeaders(own)) headers.set(name, value);
  return headers;
}

/**
 * `new Headers`, whose error does not quote the value: the runtime's own shows it, and it may be a
 * token.
 * @throws {ConfigurationError}
 */
export function safeHeaders(input: HeadersInput | undefined): Headers {
  try {
    return new Headers(input);
  } catch {
    throw new ConfigurationError('a header has an invalid name or value; check it for line breaks');
  }
}

/** Sets a header. @throws {ConfigurationError} naming the header if its value cannot be sent. */
export function setHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    throw new ConfigurationError(`the header \`${name}\` has an invalid value; check it for line breaks`);
  }
}

/** A request ready for `fetch`. */
export type ReadyRequest = {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: EncodedBody;
};

/** The response to a request, the body unread. */
export type Reply = {
  readonly response: Response;
  readonly method: string;
  readonly url: string;
  readonly redirected: boolean;
};

/** How a request is passed to `fetch`. */
export type SendOptions = {
  readonly fetch: Fetch;
  /** Passed to every `fetch`; the request takes precedence. */
  readonly init: RequestInit;
};

/**
 * Sends a request without following redirects.
 * @throws {ConfigurationError} if `fetch` returns no Response.
 */
export async function sendOnce(
  { url, method, headers, body }: ReadyRequest,
  { fetch, init }: SendOptions,
): Promise<Response> {
  const isStream = body instanceof ReadableStream;
  // `fetch` requires half duplex for streams.
  const streaming = isStream ? { duplex: 'half' as const } : undefined;
  const sent = { ...init, method, headers, body: body ?? null, redirect: 'manual', ...streaming } as const;
  return checkedResponse(await fetch(url, sent));
}

/**
 * A response of any implementation of `fetch`.
 * @throws {ConfigurationError} if it is none.
 */
export function checkedResponse(response: unknown): Response {
  const isResponse = isObject(response) && typeof response.status === 'number' && isObject(response.headers);
  // `instanceof` would fail: there are several implementations.
  // Its other members are checked where they are used.
  if (isResponse) return response as object as Response;
  throw new ConfigurationError('`fetch` must return a Response');
}

/** Whether a response is a redirect, as far as the runtime shows it. */
export function isRedirect({ status, type }: Response): boolean {
  return (status >= 300 && status < 400) || type === 'opaqueredirect';
}

/** The global `fetch`, looked up for each call: instrumentation and tests may replace it. */
export const globalFetch: Fetch = (url, init) => globalThis.fetch(url, init);
