import type { AuthorizationFlow } from '../../authorization/authorization-flow.ts';
import type { IdTokenExpectation } from '../../token/check-id-token.ts';
import { requestToken } from '../../token/request-token.ts';
import type { TokenRequestOptions } from '../../token/token-options.ts';
import type { TokenOutcome } from '../../token/token-response.ts';
import type { Client } from '../client.ts';
import type { WireParams } from '../wire-params.ts';
import { authorizationParams } from './authorization-params.ts';

/** The authorization code grant. */
export type AuthCodeStrategy<Throws extends boolean = boolean> = AuthorizationFlow<Throws> & {
  /** The URL to send the browser to; `response_type` is `code`. State, nonce and PKCE are the caller's: see `startAuthorization`. */
  readonly authorizationUrl: (params?: WireParams) => string;
  /**
   * Exchanges a code. `redirect_uri` is the client's unless given; `code_verifier` goes with PKCE. An ID token is checked where the
   * client can, all but its `nonce`, which is not known here: use `completeAuthorization`.
   */
  readonly getToken: <T extends boolean = Throws>(
    code: string,
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T>>;
};

/** Makes the authorization code grant of a client. @see RFC 6749 §4.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1 */
export function authCodeStrategy<Throws extends boolean>(client: Client<Throws>): AuthCodeStrategy<Throws> {
  const { redirectUri, issuer, authorizationResponseIssParameterSupported: issuerRequired } = client.settings;

  function authorizationUrl(params?: WireParams): string {
    return client.authorizationUrl(authorizationParams(client, 'code', params));
  }

  async function redeem<T extends boolean = Throws>(
    code: string,
    params?: WireParams,
    options: TokenRequestOptions<T> = {},
    idToken?: IdTokenExpectation,
  ): Promise<TokenOutcome<T>> {
    const all = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, ...params };
    return await requestToken<T>(client, all, options, { idToken });
  }

  // Loaded at its first use: most services never send a user anywhere. One flow for all calls, since it remembers used states.
  let loaded: AuthorizationFlow<Throws> | undefined;
  async function flow(): Promise<AuthorizationFlow<Throws>> {
    const { createAuthorizationFlow } = await import('../on-demand.ts');
    loaded ??= createAuthorizationFlow<Throws>({
      ...{ redirectUri, issuer, issuerRequired, authorizationUrl, redeem },
      idTokenValidator: () => client.idTokenValidator(),
    });
    return loaded;
  }

  return {
    authorizationUrl,
    getToken: (code, params, options) => redeem(code, params, options),
    startAuthorization: async (params, options) => await (await flow()).startAuthorization(params, options),
    completeAuthorization: async (callback, transaction, options) =>
      await (await flow()).completeAuthorization(callback, transaction, options),
  };
}
