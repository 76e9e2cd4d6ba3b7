import { authenticate } from '../client-auth/authenticate.ts';
import type { ClientAuth, ClientAuthContext, MutableTokenRequest } from '../client-auth/client-auth.ts';
import { isJsonType } from '../response/parse-body.ts';
import type { TokenMethod } from './client-options.ts';
import type { ClientSettings } from './client-settings.ts';
import type { Operation } from './hooks.ts';
import { jsonParams } from './json-params.ts';
import { oauthParams } from './oauth-params.ts';
import { formOf, queryString } from './query-string.ts';
import type { OutgoingRequest, RequestOptions } from './request-options.ts';
import { safeHeaders } from './safe-headers.ts';
import { assertSecure } from './secure-transport.ts';
import type { WireParams } from './wire-params.ts';

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
export function mergedHeaders(settings: ClientSettings, own: RequestOptions['headers']): Headers {
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
