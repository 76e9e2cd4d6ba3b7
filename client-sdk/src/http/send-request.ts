import { ConfigurationError } from '../errors.ts';
import type { Operation } from '../hooks.ts';
import { assertKnownOptions } from '../option-names.ts';
import type { ClientSettings } from '../settings.ts';
import { exchange } from './exchange.ts';
import { type RequestOptions, requestOptionNames } from './options.ts';
import { mergeHeaders, requestContext } from './request.ts';
import type { ApiResponse } from './response.ts';
import { resolveUrl, withQuery } from './url.ts';

/** A request to any URL. */
export type PlainRequest = {
  readonly operation: Operation;
  readonly method: string;
  /** Absolute, or relative to the site. */
  readonly location: string;
  readonly options: RequestOptions;
};

/** Sends a request without client authentication and reads the response. */
export async function sendRequest(
  settings: ClientSettings,
  { operation, method, location, options }: PlainRequest,
): Promise<ApiResponse> {
  assertKnownOptions('a request', options, requestOptionNames);
  const verb = method.toUpperCase();
  const base = resolveUrl(settings.site, location);
  const url = options.query === undefined ? base : withQuery(base, options.query, settings.arrayFormat);
  if ((verb === 'GET' || verb === 'HEAD') && options.body !== undefined && options.body !== null) {
    throw new ConfigurationError(`${verb} cannot carry a body: use \`query\`, or another verb`);
  }
  return await exchange(settings, {
    context: requestContext(operation, verb, url, options.signal),
    options,
    prepare: () => ({
      url,
      method: verb,
      headers: mergeHeaders(settings, options.headers),
      body: options.body,
    }),
    isBoundToOrigin: false,
  });
}

/** Loads metadata or a key set, whose members have the names of the standard. */
export async function loadDocument(
  settings: ClientSettings,
  location: string,
  signal?: AbortSignal,
): Promise<unknown> {
  const headers = { accept: 'application/json' };
  const response = await sendRequest(settings, {
    operation: 'discovery',
    method: 'GET',
    location,
    options: { parse: 'json', keyCase: 'preserve', throwOnError: true, headers, ...(signal && { signal }) },
  });
  return response.parsed;
}
