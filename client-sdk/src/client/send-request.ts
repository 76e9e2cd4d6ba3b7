import { ConfigurationError } from '../errors/configuration-error.ts';
import type { ApiResponse } from '../response/api-response.ts';
import type { ClientSettings } from './client-settings.ts';
import { mergedHeaders } from './endpoint-request.ts';
import { endpointUrl } from './endpoint-url.ts';
import { type Exchange, exchange } from './exchange.ts';
import type { Operation, RequestContext } from './hooks.ts';
import { withQuery } from './query-string.ts';
import type { RequestOptions } from './request-options.ts';

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
