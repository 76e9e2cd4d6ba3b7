import {
  authenticate,
  type ClientAuth,
  type ClientAuthContext,
  type MutableTokenRequest,
} from '../client-auth.ts';
import type { ArrayFormat, TokenMethod } from '../client-options.ts';
import { ConfigurationError } from '../errors.ts';
import type { Operation, RequestContext } from '../hooks.ts';
import { isPlainObject, strictJson } from '../objects.ts';
import type { ClientSettings } from '../settings.ts';
import { isJsonType } from './body.ts';
import { type Exchange, exchange } from './exchange.ts';
import type { HeadersInput, OutgoingRequest, RequestBody, RequestOptions, WireParams } from './options.ts';
import { formOf, jsonParams, oauthParams, queryString, withQuery } from './params.ts';
import type { ApiResponse } from './response.ts';
import { assertSecure, endpointUrl } from './url.ts';

/**
 * `new Headers`, but what cannot be a header is an error that does not quote it: the runtime's own error shows the whole value, which
 * may be a token.
 * @throws {ConfigurationError}
 */
export function safeHeaders(input: HeadersInput | undefined): Headers {
  try {
    return new Headers(input);
  } catch {
    throw new ConfigurationError(
      'a header has a name or value that cannot be sent; is there a line break in it?',
    );
  }
}

/** Sets a header. @throws {ConfigurationError} naming the header, when its value cannot be sent. */
export function setHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    throw new ConfigurationError(
      `the header \`${name}\` cannot be sent; is there a line break in its value?`,
    );
  }
}

/** A request to an endpoint of the authorization server. */
export type EndpointRequest = {
  readonly operation: Operation;
  /** Absolute, or relative to the site. */
  readonly endpoint: string;
  readonly params: WireParams;
  /** Default: the client's for tokens and revocation, else a form. */
  readonly tokenMethod?: TokenMethod | undefined;
  /** Whether the client proves who it is. Default true. */
  readonly authenticate?: boolean;
  readonly options?: Omit<RequestOptions, 'query' | 'body'>;
};

/** What is known when such a request is made ready. */
export type EndpointPreparation = {
  readonly url: string;
  readonly request: EndpointRequest;
  readonly tokenMethod: TokenMethod;
  readonly auth: ClientAuth;
  readonly context: ClientAuthContext;
};

/** Makes the request: parameters as a form (or JSON, where the headers say so, or a query), credentials written in. */
export async function prepareEndpointRequest(
  settings: ClientSettings,
  preparation: EndpointPreparation,
): Promise<OutgoingRequest> {
  const { request, tokenMethod: method, auth, context, url } = preparation;
  const headers = mergedHeaders(settings, request.options?.headers);
  if (!headers.has('accept')) headers.set('accept', 'application/json');
  const params = oauthParams(request.params);
  const draft: MutableTokenRequest = {
    url,
    method: method === 'get' ? 'GET' : 'POST',
    headers,
    body: formOf(params, settings.arrayFormat),
  };
  const authenticating = request.authenticate === false ? undefined : authenticate(draft, context, auth);
  // Not awaited where there is nothing to wait for: most methods only write what is known.
  if (authenticating !== undefined) await authenticating;
  // After authentication, for that may change the URL.
  assertSecure(draft.url, settings.allowInsecure);
  if (method === 'post' && isJson(headers)) {
    return { ...draft, body: jsonParams(request.params, params, draft.body) };
  }
  return placeParams(draft, method);
}

/** Headers of the client under those of the call; neither is changed. */
function mergedHeaders(settings: ClientSettings, own: RequestOptions['headers']): Headers {
  const base = settings.requestInit.headers;
  if (base === undefined) return safeHeaders(own);
  const headers = safeHeaders(base);
  for (const [name, value] of safeHeaders(own)) headers.set(name, value);
  return headers;
}

function isJson(headers: Headers): boolean {
  const type = headers.get('content-type');
  return type !== null && isJsonType(type.split(';')[0]?.trim().toLowerCase() ?? '');
}

function placeParams(
  { url, method, headers, body }: MutableTokenRequest,
  place: TokenMethod,
): OutgoingRequest {
  if (place === 'post') {
    if (!headers.has('content-type')) headers.set('content-type', 'application/x-www-form-urlencoded');
    return { url, method, headers, body: body.toString() };
  }
  const query = queryString([...body]);
  const target = query === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${query}`;
  return { url: target, method, headers, body: undefined };
}

/** A request to anywhere, not yet made ready. */
export type PlainRequest = {
  readonly operation: Operation;
  readonly method: string;
  /** Absolute, or relative to the site. */
  readonly location: string;
  readonly options: RequestOptions;
};

/** Sends a request whose URL is relative to the site, and reads the response. */
export async function sendRequest<T>(
  settings: ClientSettings,
  request: PlainRequest,
): Promise<ApiResponse<T>> {
  const response = await exchange(settings, planRequest(settings, request));
  // The caller names the shape of what it asked for.
  return response as ApiResponse<T>;
}

function planRequest(
  settings: ClientSettings,
  { operation, method, location, options }: PlainRequest,
): Exchange {
  const verb = method.toUpperCase();
  const base = endpointUrl(settings.site, location);
  const url = options.query === undefined ? base : withQuery(base, options.query, settings.arrayFormat);
  if ((verb === 'GET' || verb === 'HEAD') && options.body !== undefined && options.body !== null) {
    throw new ConfigurationError(`${verb} cannot carry a body: use \`query\`, or another verb`);
  }
  return {
    context: requestContext(operation, verb, url, options.signal),
    options,
    prepare: () => ({
      url,
      method: verb,
      headers: mergedHeaders(settings, options.headers),
      body: options.body,
    }),
    isBoundToOrigin: false,
  };
}

/** The context of a request without client authentication. */
export function requestContext(
  operation: Operation,
  method: string,
  url: string,
  signal: AbortSignal | undefined,
): RequestContext {
  return {
    operation,
    grantType: undefined,
    clientAuth: undefined,
    method,
    url: url.split('?', 1)[0] ?? url,
    signal,
  };
}

/** A body that `fetch` takes. */
export type EncodedBody = Exclude<RequestBody, WireParams | URLSearchParams>;

const FORM = 'application/x-www-form-urlencoded';

/**
 * Turns a plain object into JSON where the headers say so and else into a form, and notes the content type; every other body stays.
 * JSON keeps null, which a form leaves out.
 */
export function encodeBody(body: RequestBody, headers: Headers, format: ArrayFormat): EncodedBody {
  if (body instanceof URLSearchParams) return asForm(body, headers);
  if (!isParams(body)) return body;
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  return isJsonType(type) ? strictJson(body, 'body') : asForm(formOf(body, format), headers);
}

/** Whether a body is a plain object of parameters. */
export function isParams(body: RequestBody): body is WireParams {
  if (typeof body !== 'object' || body === null) return false;
  return isPlainObject(body);
}

function asForm(form: URLSearchParams, headers: Headers): string {
  if (!headers.has('content-type')) headers.set('content-type', FORM);
  return form.toString();
}
