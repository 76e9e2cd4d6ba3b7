import { isParams } from '../client/encode-body.ts';
import type { RequestBody, RequestOptions } from '../client/request-options.ts';
import { safeHeaders, setHeader } from '../client/safe-headers.ts';
import type { WireParams } from '../client/wire-params.ts';
import { ConfigurationError } from '../errors/configuration-error.ts';
import type { TokenMode, TokenPlace } from './token-options.ts';

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
export function bodyWithToken(body: RequestBody, { paramName, token }: PlacedToken): RequestBody {
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
