import type { ClientSettings } from '../client/client-settings.ts';
import { endpointUrl } from '../client/endpoint-url.ts';
import { exchangeRaw } from '../client/exchange.ts';
import { withQuery } from '../client/query-string.ts';
import type { RequestBody } from '../client/request-options.ts';
import { safeHeaders, setHeader } from '../client/safe-headers.ts';
import { requestContext } from '../client/send-request.ts';
import { assertAllowed } from './allowed-origin.ts';
import { bodyWithToken, type PlacedToken, resolvePlace } from './place-token.ts';
import { readRequestBody } from './read-request-body.ts';
import type { TokenMode } from './token-options.ts';

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
  const base = endpointUrl(settings.site, request?.url ?? String(input));
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
