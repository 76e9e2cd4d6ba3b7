import { ConfigurationError } from '../errors.ts';
import { exchangeRaw } from '../http/exchange.ts';
import type { RequestBody, RequestOptions, WireParams } from '../http/options.ts';
import { withQuery } from '../http/params.ts';
import { isParams, requestContext, safeHeaders, setHeader } from '../http/request.ts';
import { assertAllowed, resolveUrl } from '../http/url.ts';
import type { ClientSettings } from '../settings.ts';
import type { TokenMode, TokenPlace } from './options.ts';

/** What is needed to put a token into a request. */
export type PlacedToken = {
  readonly token: string;
  readonly paramName: string;
  readonly authorization: string;
};

/**
 * The place of the token for a verb.
 * @throws {ConfigurationError} when the mode is none.
 */
export function resolvePlace(mode: TokenMode, method: string): TokenPlace {
  const place =
    typeof mode === 'function'
      ? mode(method.toLowerCase())
      : typeof mode === 'object'
        ? placeOf(mode, method)
        : mode;
  if (place === 'header' || place === 'query' || place === 'body') return place;
  throw new ConfigurationError(
    `\`mode\` must be 'header', 'query' or 'body', by verb or for all; got ${JSON.stringify(place)}`,
  );
}

/** Verbs are found in either case. */
function placeOf(mode: Readonly<Record<string, TokenPlace>>, method: string): TokenPlace {
  return mode[method.toLowerCase()] ?? mode[method.toUpperCase()] ?? 'header';
}

/** Options with the token in them; those given are not changed. The token wins over a header of the caller's own. */
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

/** The body with the token among its parameters. */
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
 * The body of a Request, for another one. Elsewhere it is passed on as the stream it is. Browsers have no streams to
 * upload, or only over HTTP/2 (Chromium), or do not show the body at all (Firefox): there it is read, out of a copy.
 */
async function readRequestBody(request: Request): Promise<ReadableStream | ArrayBuffer | null> {
  // A global of pages and their workers, and of no other runtime.
  if (!('isSecureContext' in globalThis)) return request.body;
  const bytes = await request.clone().arrayBuffer();
  // GET refuses even an empty one.
  return bytes.byteLength > 0 ? bytes : null;
}

/** The arguments of `fetch`. */
export type FetchArguments = {
  readonly input: string | URL | Request;
  readonly init: RequestInit | undefined;
};

/** Calls `fetch` with a token in the request. Neither a Request nor an init given is changed. */
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
  // What `fetch` takes as a body, RequestBody takes too, but for shapes that only other runtimes have.
  const given = (init.body ?? (request && (await bodyOf(request))) ?? undefined) as RequestBody;
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

/** Firefox shows `undefined` whatever there is. */
async function bodyOf(request: Request) {
  if (request.body === null) return null;
  return await readRequestBody(request);
}
