import type { WireParams, WireValue } from '../client/wire-params.ts';
import { ConfigurationError } from '../errors/configuration-error.ts';
import { calculateCodeChallenge, generateCodeVerifier } from '../pkce.ts';
import { randomToken } from '../random-token.ts';
import type { AuthorizationTransaction } from './transaction.ts';

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
