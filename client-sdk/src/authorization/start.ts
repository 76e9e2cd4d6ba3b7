import { randomToken } from '../encoding.ts';
import { ConfigurationError } from '../errors.ts';
import type { WireParams, WireValue } from '../http/options.ts';
import { calculateCodeChallenge, generateCodeVerifier } from '../pkce.ts';

/**
 * What must be remembered between sending the user away and their return: plain JSON for the user's session, kept
 * where only that user's browser brings it back (a server-side session or an encrypted cookie). It holds secrets.
 */
export interface AuthorizationTransaction {
  /** Ties the callback to this session. @see RFC 6749 §10.12 https://www.rfc-editor.org/rfc/rfc6749#section-10.12 */
  readonly state: string;
  /** PKCE verifier. @see RFC 7636 §4.1 https://www.rfc-editor.org/rfc/rfc7636#section-4.1 */
  readonly codeVerifier?: string;
  /** Ties the ID token to this session; present when OpenID Connect was asked for. */
  readonly nonce?: string;
  /** The `max_age` that was asked for: the ID token must say that the user authenticated within it. */
  readonly maxAgeSeconds?: number;
  /** The `redirect_uri` of the request, which the token request must repeat. */
  readonly redirectUri?: string;
  /** The issuer the user was sent to, when the client knows it. */
  readonly issuer?: string;
}

/** What starting needs of the client. */
export interface StartAuthorizationDeps {
  readonly redirectUri: string | undefined;
  readonly issuer: string | undefined;
}

/** Options of a start beside the parameters that go on the wire. */
export interface StartAuthorizationOptions {
  /** Whether PKCE (S256) is used. Default true; servers that do not know it ignore it. */
  readonly pkce?: boolean;
}

/** The parameters of an authorization request and what to remember for its callback. */
export interface PreparedAuthorization {
  readonly params: WireParams;
  readonly transaction: AuthorizationTransaction;
}

/** An authorization request as a URL for the user's browser, and what to remember for its callback. */
export interface StartedAuthorization {
  readonly url: string;
  readonly transaction: AuthorizationTransaction;
}

/** Parameters that are derived here, from something that must be remembered: given by hand they would not match it. */
const derivedNames = ['code_challenge', 'code_challenge_method'] as const;

/**
 * Prepares an authorization code request: adds a fresh `state`, a PKCE challenge and, when `scope` holds `openid`, a
 * `nonce`. A `state` or `nonce` among the parameters is used instead of a fresh one; an array of scopes is joined.
 *
 * @throws {ConfigurationError} for parameters that cannot be combined with it
 * @see RFC 6749 §4.1.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1
 * @see RFC 9700 §2.1 https://www.rfc-editor.org/rfc/rfc9700#section-2.1
 */
export async function prepareAuthorization(
  { redirectUri, issuer }: StartAuthorizationDeps,
  params: WireParams,
  { pkce = true }: StartAuthorizationOptions = {},
): Promise<PreparedAuthorization> {
  assertCombinable(params);
  const scope = scopeOf(params.scope);
  const codeVerifier = pkce ? generateCodeVerifier() : undefined;
  const nonce = text(params.nonce) ?? (scope?.split(' ').includes('openid') ? randomToken() : undefined);
  const maxAgeSeconds = maxAgeOf(params.max_age);
  const sentRedirectUri = text(params.redirect_uri) ?? redirectUri;
  const transaction = {
    state: text(params.state) ?? randomToken(),
    ...(codeVerifier !== undefined && { codeVerifier }),
    ...(nonce !== undefined && { nonce }),
    ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
    ...(sentRedirectUri !== undefined && { redirectUri: sentRedirectUri }),
    ...(issuer !== undefined && { issuer }),
  };
  return {
    transaction,
    params: {
      ...params,
      state: transaction.state,
      ...(scope !== undefined && { scope }),
      ...(nonce !== undefined && { nonce }),
      ...(sentRedirectUri !== undefined && { redirect_uri: sentRedirectUri }),
      ...(codeVerifier !== undefined && {
        code_challenge: await calculateCodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      }),
    },
  };
}

function assertCombinable(params: WireParams): void {
  for (const name of derivedNames) {
    if (params[name] !== undefined) {
      throw new ConfigurationError(
        `${name} is made by startAuthorization; leave it out, or use authorizationUrl`,
      );
    }
  }
  const { response_type: responseType, response_mode: responseMode } = params;
  if (responseType !== undefined && responseType !== 'code') {
    throw new ConfigurationError(
      `startAuthorization asks for a code; response_type ${JSON.stringify(responseType)} is not supported`,
    );
  }
  if (typeof responseMode === 'string' && responseMode.endsWith('jwt')) {
    throw new ConfigurationError(
      `response_mode ${responseMode} is not supported: completeAuthorization reads plain parameters`,
    );
  }
}

/** @see OpenID Connect Core §3.1.2.1 https://openid.net/specs/openid-connect-core-1_0.html#AuthRequest */
function maxAgeOf(maxAge: WireValue): number | undefined {
  if (maxAge === undefined || maxAge === null || maxAge === '') return undefined;
  const seconds = Number(maxAge);
  if (Number.isInteger(seconds) && seconds >= 0) return seconds;
  throw new ConfigurationError('`max_age` must be a whole number of seconds');
}

function scopeOf(scope: WireValue): string | undefined {
  return Array.isArray(scope) ? scope.join(' ') : text(scope);
}

function text(value: WireValue): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
