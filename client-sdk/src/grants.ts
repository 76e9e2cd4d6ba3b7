/**
 * Grants as functions, for programs whose size matters: a bundler drops what is not imported.
 * `Client` does more: it follows redirects, retries, validates ID tokens, tolerates responses that
 * deviate from the specification, and calls hooks.
 *
 * @module
 */

import type { ClientAuthFunction } from './client-auth/methods.ts';
import type { Fetch } from './client-options.ts';
import { checkedClock, epochSeconds } from './clock.ts';
import { readBody } from './http/body.ts';
import type { HeadersInput, WireParams } from './http/options.ts';
import { isProven } from './http/proofs.ts';
import { authenticateRequest, checkedResponse, encodeForm, safeHeaders } from './http/request.ts';
import { ApiResponse } from './http/response.ts';
import { responseError } from './http/response-error.ts';
import { oauthParams, resolveUrl, toForm } from './http/url.ts';
import type { JsonObject } from './key-case.ts';
import { isObject } from './objects.ts';
import { assertKnownOptions, type OptionNames } from './option-names.ts';
import { Deadline } from './timers.ts';
import { Expiry } from './tokens/expiry.ts';
import { tokenTypeProblem } from './tokens/read-response.ts';

export { clientAssertion, clientSecretJwt, privateKeyJwt } from './client-auth/assertion.ts';
export type {
  BasicEncoding,
  ClientAssertionOptions,
  ClientAuthContext,
  ClientAuthFunction,
  ClientSecretJwtOptions,
  MutableTokenRequest,
  PrivateKeyJwtOptions,
} from './client-auth/methods.ts';
export { clientSecretBasic, clientSecretPost, publicClient } from './client-auth/methods.ts';
export type { WireParams, WireValue } from './http/options.ts';

/**
 * A client and the authorization server that it is registered at. Plain data that the functions do
 * not change.
 */
export type GrantClient = {
  readonly clientId: string;
  /**
   * How the client authenticates: `clientSecretBasic(secret)`, `privateKeyJwt({ … })`,
   * `publicClient` or a function of your own.
   */
  readonly auth: ClientAuthFunction;
  /** Absolute URL. */
  readonly tokenEndpoint: string;
  /** Absolute URL. @see RFC 7009 */
  readonly revocationEndpoint?: string;
  /** The server's issuer identifier, used as the audience of signed client assertions. */
  readonly issuer?: string;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /** Milliseconds until the response must be complete; 0 means no limit. Default 10,000. */
  readonly timeoutMs?: number;
  /** Bytes of a response body that are read. Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /**
   * Whether credentials may be sent over plain http to hosts other than this machine. Default
   * false.
   */
  readonly allowInsecure?: boolean;
  /** Epoch seconds, by the server's clock. Default from `Date`. */
  readonly now?: () => number;
};

/** Options of one request. */
export type GrantOptions = {
  readonly headers?: HeadersInput;
  readonly signal?: AbortSignal;
};

/** A successful token response. Plain data that holds secrets: do not log it. */
export type TokenSet = {
  readonly accessToken: string;
  /** `Bearer` if the server sent none. */
  readonly tokenType: string;
  /** Epoch seconds; undefined if the token does not expire or the server did not say. */
  readonly expiresAt: number | undefined;
  readonly refreshToken: string | undefined;
  readonly scope: string | undefined;
  /**
   * The ID token is not validated: use `createIdTokenValidator` of `./id-token` before you rely on
   * its claims.
   */
  readonly idToken: string | undefined;
  /** All fields as they were received; `AccessToken.fromHash` accepts them. */
  readonly fields: Readonly<JsonObject>;
};

const clientNames: OptionNames<GrantClient> = {
  ...{ clientId: 1, auth: 1, tokenEndpoint: 1, revocationEndpoint: 1, issuer: 1 },
  ...{ fetch: 1, timeoutMs: 1, maxBodyBytes: 1, allowInsecure: 1, now: 1 },
};
const grantOptionNames: OptionNames<GrantOptions> = { headers: 1, signal: 1 };

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_BODY_BYTES = 1_048_576;

/** The deadlines of responses whose body has not been read. */
const deadlines = new WeakMap<Response, Deadline>();

/**
 * Gets a token for the client itself.
 *
 * @example
 * ```ts
 * const client = {
 *   tokenEndpoint: 'https://as.example/token',
 *   clientId: 'app',
 *   auth: clientSecretBasic(clientSecret),
 * };
 * const { accessToken } = await clientCredentialsGrant(client, { scope: 'orders:read' });
 * ```
 * @throws {TokenResponseError} if the server refuses or its response has no token
 * @throws {TransportError} if there is no response
 * @see RFC 6749 §4.4 https://www.rfc-editor.org/rfc/rfc6749#section-4.4
 */
export async function clientCredentialsGrant(
  client: GrantClient,
  params: WireParams = {},
  options: GrantOptions = {},
): Promise<TokenSet> {
  return await grant(client, { ...params, grant_type: 'client_credentials' }, options);
}

/**
 * Exchanges an authorization code. The caller has checked the callback's `state` and `iss`; with
 * PKCE, `code_verifier` is the verifier of the challenge.
 *
 * @throws as {@link clientCredentialsGrant}
 * @see RFC 6749 §4.1.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.3
 */
export async function authorizationCodeGrant(
  client: GrantClient,
  params: WireParams & {
    readonly code: string;
    readonly redirect_uri?: string;
    readonly code_verifier?: string;
  },
  options: GrantOptions = {},
): Promise<TokenSet> {
  return await grant(client, { ...params, grant_type: 'authorization_code' }, options);
}

/**
 * Gets a new token for a refresh token. If the response has no refresh token, the one sent stays
 * valid.
 *
 * @throws as {@link clientCredentialsGrant}
 * @see RFC 6749 §6 https://www.rfc-editor.org/rfc/rfc6749#section-6
 */
export async function refreshTokenGrant(
  client: GrantClient,
  params: WireParams & { readonly refresh_token: string },
  options: GrantOptions = {},
): Promise<TokenSet> {
  const tokens = await grant(client, { ...params, grant_type: 'refresh_token' }, options);
  return { ...tokens, refreshToken: tokens.refreshToken ?? params.refresh_token };
}

/**
 * Exchanges a signed assertion for a token.
 *
 * @throws as {@link clientCredentialsGrant}
 * @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1
 */
export async function jwtBearerGrant(
  client: GrantClient,
  params: WireParams & { readonly assertion: string },
  options: GrantOptions = {},
): Promise<TokenSet> {
  const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  return await grant(client, { ...params, grant_type: grantType }, options);
}

/**
 * Sends a token request of any grant. Redirects are not followed.
 *
 * @throws {TransportError} if there is no response
 * @throws {ConfigurationError} if the endpoint is plain http, or the client cannot authenticate
 * @see RFC 6749 §3.2 https://www.rfc-editor.org/rfc/rfc6749#section-3.2
 */
export async function tokenRequest(
  client: GrantClient,
  params: WireParams & { readonly grant_type: string },
  options: GrantOptions = {},
): Promise<Response> {
  return await post(client, client.tokenEndpoint, { params, options });
}

/**
 * Reads the response to a token request.
 *
 * @throws {TokenResponseError} if the server refused, or the response has no token of a supported
 * type
 * @throws {TransportError} if the body cannot be read
 * @see RFC 6749 §5 https://www.rfc-editor.org/rfc/rfc6749#section-5
 */
export async function processTokenResponse(client: GrantClient, response: Response): Promise<TokenSet> {
  const received = await receive(client, response, 'token');
  const fields = parseFields(received);
  const { access_token: accessToken, token_type: tokenType } = fields;
  const isToken = typeof accessToken === 'string' && accessToken !== '';
  const message = isToken
    ? tokenTypeProblem(tokenType, {}, isProven(response))
    : 'the token response has no `access_token`';
  if (!isToken || message !== undefined)
    throw responseError(received, { operation: 'token', nowMs: currentTime(client) * 1000, message });
  const { expires_in: expiresIn, expires_at: expiresAt } = fields;
  return {
    accessToken,
    tokenType: optionalText(tokenType) ?? 'Bearer',
    expiresAt: new Expiry({ expiresIn, expiresAt }, () => currentTime(client)).expiresAt,
    refreshToken: optionalText(fields.refresh_token),
    scope: optionalText(fields.scope),
    idToken: optionalText(fields.id_token),
    // Parsed from JSON or a form.
    fields: fields as JsonObject,
  };
}

/**
 * Sends a revocation request.
 *
 * @throws as {@link tokenRequest}
 * @see RFC 7009 §2.1 https://www.rfc-editor.org/rfc/rfc7009#section-2.1
 */
export async function revocationRequest(
  client: GrantClient & { readonly revocationEndpoint: string },
  params: WireParams & { readonly token: string },
  options: GrantOptions = {},
): Promise<Response> {
  return await post(client, client.revocationEndpoint, { params, options });
}

/**
 * Reads the response to a revocation request.
 *
 * @throws {RevocationError} if the server refused: the token must be considered valid
 * @throws {TransportError} if the body cannot be read
 * @see RFC 7009 §2.2 https://www.rfc-editor.org/rfc/rfc7009#section-2.2
 */
export async function processRevocationResponse(client: GrantClient, response: Response): Promise<void> {
  await receive(client, response, 'revocation');
}

async function grant(
  client: GrantClient,
  params: WireParams & { readonly grant_type: string },
  options: GrantOptions,
): Promise<TokenSet> {
  return await processTokenResponse(client, await tokenRequest(client, params, options));
}

async function post(
  client: GrantClient,
  endpoint: string,
  { params, options }: { readonly params: WireParams; readonly options: GrantOptions },
): Promise<Response> {
  assertKnownOptions('a GrantClient', client, clientNames);
  assertKnownOptions('a grant', options, grantOptionNames);
  const { clientId, issuer, fetch, timeoutMs = DEFAULT_TIMEOUT_MS, allowInsecure = false } = client;
  const headers = safeHeaders(options.headers);
  const request = {
    url: resolveUrl(undefined, endpoint),
    method: 'POST',
    headers,
    body: toForm(oauthParams(params), 'brackets'),
  };
  const tokenEndpoint = resolveUrl(undefined, client.tokenEndpoint);
  const context = { clientId, issuer, tokenEndpoint, now: () => currentTime(client) };
  await authenticateRequest(request, client.auth, { client: context, allowInsecure });
  const init = { method: request.method, headers, body: encodeForm(request.body, headers) };
  const deadline = new Deadline(timeoutMs, options.signal);
  try {
    deadline.signal.throwIfAborted();
    const send = fetch ?? globalThis.fetch;
    const sending = send(request.url, { ...init, redirect: 'manual', signal: deadline.signal });
    const response = checkedResponse(await deadline.race(sending));
    deadlines.set(response, deadline);
    return response;
  } catch (error) {
    deadline.end();
    throw deadline.toError(error);
  }
}

async function receive(
  client: GrantClient,
  response: Response,
  operation: 'token' | 'revocation',
): Promise<ApiResponse> {
  assertKnownOptions('a GrantClient', client, clientNames);
  const { timeoutMs = DEFAULT_TIMEOUT_MS, maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = client;
  const { status, headers, url, ok } = response;
  const deadline = deadlines.get(response) ?? new Deadline(timeoutMs, undefined);
  let body: string;
  try {
    body = await deadline.race(readBody(response, maxBodyBytes));
  } catch (error) {
    throw deadline.toError(error);
  } finally {
    deadline.end();
  }
  const received = new ApiResponse(
    { status, headers, body, url, redirected: false },
    { keyCase: 'preserve' },
  );
  if (!ok) throw responseError(received, { operation, nowMs: currentTime(client) * 1000 });
  return received;
}

function parseFields(response: ApiResponse): Readonly<Record<string, unknown>> {
  const { parsed } = response;
  return isObject(parsed) ? parsed : {};
}

function optionalText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function currentTime({ now }: GrantClient): number {
  return now === undefined ? epochSeconds() : checkedClock(now)();
}
