import { ConfigurationError } from '../errors.ts';
import { exchangeRaw } from '../http/exchange.ts';
import type { RequestBody, RequestOptions, WireParams } from '../http/options.ts';
import { isParams, requestContext, safeHeaders, setHeader } from '../http/request.ts';
import { assertAllowed, resolveUrl, withQuery } from '../http/url.ts';
import type { ClientSettings } from '../settings.ts';
import type { TokenMode, TokenPlace } from './options.ts';

/** A token to be added to a request. */
export type PlacedToken = {
  readonly token: string;
  readonly paramName: string;
  readonly authorization: string;
};

/**
 * Where the token is sent for a verb.
 * @throws {ConfigurationError} if the mode is invalid.
 */
export function resolvePlace(mode: TokenMode, method: string): TokenPlace {
  const place =
    typeof mode === 'function'
      ? mode(method.toLowerCase())
      : typeof mode === 'object'
        ? getPlace(mode, method)
        : mode;
  if (place === 'header' || place === 'query' || place === 'body') return place;
  throw new ConfigurationError(
    `\`mode\` must be 'header', 'query' or 'body', by verb or for all; got ${JSON.stringify(place)}`,
  );
}

/** Finds the method in either case. */
function getPlace(mode: Readonly<Record<string, TokenPlace>>, method: string): TokenPlace {
  return mode[method.toLowerCase()] ?? mode[method.toUpperCase()] ?? 'header';
}

/** A copy of the options with the token, which takes precedence over the caller's header. */
export function placeToken(options: RequestOptions, place: TokenPlace, placed: PlacedToken): RequestOptions {
  if (place === 'query') return { ...options, query: withParam(options.query, placed) };
  if (place === 'body') return { ...options, body: bodyWithToken(options.body, placed) };
  const headers = safeHeaders(options.headers);
  setHeader(headers, 'authorization', placed.authorization);
  return { ...options, headers };
}

function withParam(
  query: RequestOptions['query'],
  { paramName, token }: PlacedToken,
): WireParams | URLSearchParams {
  if (!(query instanceof URLSearchParams)) return { ...query, [paramName]: token };
  const copy = new URLSearchParams(query);
  copy.set(paramName, token);
  return copy;
}

/** The body with the token as a parameter. */
function bodyWithToken(body: RequestBody, { paramName, token }: PlacedToken): RequestBody {
  if (body === undefined || body === null) return { [paramName]: token };
  if (body instanceof URLSearchParams) {
    const copy = new URLSearchParams(body);
    copy.set(paramName, token);
    return copy;
  }
  if (typeof body === 'string') {
    const pair = new URLSearchParams([[paramName, token]]).toString();
    return body === '' ? pair : `${body}&${pair}`;
  }
  if (isParams(body)) return { ...body, [paramName]: token };
  throw new ConfigurationError(
    "`mode` 'body' needs a form: an object, URLSearchParams or form text; use mode 'header' for other bodies",
  );
}

/**
 * The body of a Request, to be sent in another one. It is passed on as a stream, except in
 * browsers, which cannot upload streams, or only over HTTP/2 (Chromium), or do not expose the body
 * (Firefox): there a copy is read.
 */
async function readRequestBody(request: Request): Promise<ReadableStream | ArrayBuffer | null> {
  // A global of pages and workers only.
  if (!('isSecureContext' in globalThis)) return request.body;
  const bytes = await request.clone().arrayBuffer();
  // GET must not have even an empty body.
  return bytes.byteLength > 0 ? bytes : null;
}

/** The arguments of `fetch`. */
export type FetchArguments = {
  readonly input: string | URL | Request;
  readonly init: RequestInit | undefined;
};

/** Calls `fetch` with a token in the request. Neither the Request nor its init is changed. */
export async function fetchWithToken(
  settings: ClientSettings,
  mode: TokenMode,
  placed: PlacedToken,
  args: FetchArguments,
): Promise<Response> {
  const { input, init = {} } = args;
  const request = input instanceof Request ? input : undefined;
  const base = resolveUrl(settings.site, request?.url ?? String(input));
  assertAllowed(base, settings);
  const method = (init.method ?? request?.method ?? 'GET').toUpperCase();
  const place = resolvePlace(mode, method);
  const headers = safeHeaders(init.headers ?? request?.headers ?? settings.requestInit.headers);
  if (place === 'header') setHeader(headers, 'authorization', placed.authorization);
  const url =
    place === 'query' ? withQuery(base, { [placed.paramName]: placed.token }, settings.arrayFormat) : base;
  // A body of `fetch` is a RequestBody, except for types of other runtimes.
  const given = (init.body ?? (request && (await getBody(request))) ?? undefined) as RequestBody;
  const body = place === 'body' ? bodyWithToken(given, placed) : given;
  const { redirect = request?.redirect ?? 'follow' } = init;
  return await exchangeRaw(settings, {
    context: requestContext('resource', method, url, init.signal ?? request?.signal ?? undefined),
    options: { redirect },
    init,
    prepare: () => ({ url, method, headers, body }),
    isBoundToOrigin: false,
  });
}

/** In Firefox it is always undefined. */
async function getBody(request: Request) {
  if (request.body === null) return null;
  return await readRequestBody(request);
}
