import type { Client } from '../client/client.ts';
import type { WireParams } from '../client/wire-params.ts';
import { OAuthError } from '../errors/oauth-error.ts';
import { TokenUnavailableError } from '../errors/token-unavailable-error.ts';
import type { AccessToken } from '../token/access-token.ts';
import type { TokenFailure } from '../token/token-response.ts';

/** Gets a token from nothing: `({ signal }) => client.clientCredentials.getToken({}, { signal })`. */
export type AcquireToken = (options: { readonly signal: AbortSignal }) => Promise<AccessToken | TokenFailure>;

/** Where new tokens come from. */
export interface TokenSource {
  readonly client: Client<boolean>;
  readonly acquire: AcquireToken | undefined;
  /** Sent with every refresh, `scope` or `resource` for example. */
  readonly refreshParams: WireParams;
}

/** A new token, or that the refresh token is good no more and there is no other way. */
export type ObtainOutcome =
  | { readonly ok: true; readonly token: AccessToken }
  | { readonly ok: false; readonly error: OAuthError };

/**
 * Refreshes a token; `rejected` when the server does not take its refresh token (`invalid_grant`).
 *
 * @throws OAuthClientError for all other failures: the refresh token may still be good.
 */
export async function refreshToken(
  { refreshParams }: TokenSource,
  token: AccessToken,
  signal: AbortSignal,
): Promise<ObtainOutcome> {
  try {
    return { ok: true, token: await token.refresh(refreshParams, { signal, throwOnError: true }) };
  } catch (error) {
    if (error instanceof OAuthError && error.code === 'invalid_grant') return { ok: false, error };
    throw error;
  }
}

/**
 * Gets a token without one.
 *
 * @throws TokenUnavailableError when there is no way to, with `because` as its cause; or what `acquire` throws.
 */
export async function acquireToken(
  { acquire }: TokenSource,
  signal: AbortSignal,
  because: OAuthError | undefined,
): Promise<AccessToken> {
  if (acquire === undefined) {
    if (because !== undefined) throw because;
    throw new TokenUnavailableError(
      'there is no token and no refresh token: give the TokenManager a `token`, an `acquire`, or call `setToken`',
    );
  }
  const outcome = await acquire({ signal });
  if (!outcome.ok) throw outcome.error;
  return outcome;
}
