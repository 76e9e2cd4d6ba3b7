/**
 * Pushed authorization requests (RFC 9126): parameters that the browser does not see.
 *
 * @module
 */

import type { AuthorizationTransaction } from './authorization.ts';
import { prepareAuthorization, type StartAuthorizationOptions } from './authorization.ts';
import type { AnyClient } from './client.ts';
import { ConfigurationError, ParseError } from './errors.ts';
import type { RequestOptions, WireParams } from './http/options.ts';

import { assertKnownOptions, type OptionNames } from './option-names.ts';

export type { AuthorizationTransaction } from './authorization.ts';

/** Options of the pushing request. */
export type PushOptions = Pick<RequestOptions, 'headers' | 'signal' | 'timeoutMs' | 'onRequest'>;

const pushOptionNames: OptionNames<PushOptions> = { headers: 1, signal: 1, timeoutMs: 1, onRequest: 1 };

/**
 * A pushed authorization request.
 *
 * @see RFC 9126 §2.2 https://www.rfc-editor.org/rfc/rfc9126#section-2.2
 */
export interface PushedAuthorizationRequest {
  readonly requestUri: string;
  /** Seconds until the server discards it. */
  readonly expiresIn: number;
  /** The URL to send the user's browser to, with the reference only. */
  readonly url: string;
}

/** A pushed authorization, and the transaction of its callback. */
export interface PushedAuthorization extends PushedAuthorizationRequest {
  /** Argument of `client.authCode.completeAuthorization`. */
  readonly transaction: AuthorizationTransaction;
}

/**
 * Pushes the parameters of an authorization request to the server, so that the browser can neither
 * see nor change them.
 *
 * @throws {ConfigurationError} if the client has no `pushedAuthorizationRequestEndpoint` or no
 * `clientId`
 * @throws {OAuthError} if the server refuses, whatever the client's `throwOnError`
 * @throws {ParseError} if the response has no `request_uri`
 * @throws {TransportError} if there is no response
 * @see RFC 9126 §2.1 https://www.rfc-editor.org/rfc/rfc9126#section-2.1
 */
export async function pushAuthorizationRequest(
  client: AnyClient,
  params: WireParams,
  options: PushOptions = {},
): Promise<PushedAuthorizationRequest> {
  assertKnownOptions('a pushed authorization request', options, pushOptionNames);
  const { clientId, redirectUri, pushedAuthorizationRequestEndpoint: endpoint } = client.settings;
  if (endpoint === undefined)
    throw new ConfigurationError("set the client's `pushedAuthorizationRequestEndpoint`");
  if (clientId === undefined) throw new ConfigurationError("set the client's `clientId`");
  if (params.request_uri !== undefined) {
    throw new ConfigurationError(
      '`request_uri` is returned by pushing; omit it from the parameters (RFC 9126 §2.1)',
    );
  }
  const response = await client.send({
    operation: 'pushed_authorization',
    endpoint,
    params: { response_type: 'code', client_id: clientId, redirect_uri: redirectUri, ...params },
    tokenMethod: 'post',
    options: { ...options, parse: 'json', keyCase: 'preserve', throwOnError: true },
  });
  const { requestUri, expiresIn } = readAnswer(response.parsed);
  return { requestUri, expiresIn, url: referenceUrl(client, clientId, requestUri) };
}

/**
 * Starts the authorization code flow with a pushed request, with state, PKCE and nonce as by
 * `startAuthorization`.
 *
 * @throws as `pushAuthorizationRequest`, and {ConfigurationError} for parameters that cannot be
 * combined with it
 * @see RFC 9126 https://www.rfc-editor.org/rfc/rfc9126
 */
export async function startPushedAuthorization(
  client: AnyClient,
  params: WireParams = {},
  options: PushOptions & StartAuthorizationOptions = {},
): Promise<PushedAuthorization> {
  const { pkce, ...pushOptions } = options;
  const prepared = await prepareAuthorization(client.settings, params, pkce === undefined ? {} : { pkce });
  const pushed = await pushAuthorizationRequest(client, prepared.params, pushOptions);
  return { ...pushed, transaction: prepared.transaction };
}

/** Leaves out the parameters that were pushed. */
function referenceUrl(client: AnyClient, clientId: string, requestUri: string): string {
  return client.authorizationUrl({ client_id: clientId, request_uri: requestUri, redirect_uri: undefined });
}

function readAnswer(parsed: unknown): { readonly requestUri: string; readonly expiresIn: number } {
  if (typeof parsed !== 'object' || parsed === null || !('request_uri' in parsed)) throw noRequestUri();
  const { request_uri: requestUri } = parsed;
  const expiresIn = 'expires_in' in parsed ? Number(parsed.expires_in) : Number.NaN;
  if (typeof requestUri !== 'string' || requestUri === '') throw noRequestUri();
  if (!(expiresIn > 0))
    throw new ParseError('the pushed authorization response has no positive `expires_in`');
  return { requestUri, expiresIn };
}

function noRequestUri(): ParseError {
  return new ParseError('the pushed authorization response has no `request_uri`');
}
