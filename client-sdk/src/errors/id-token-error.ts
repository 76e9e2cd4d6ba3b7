import { OAuthClientError, type OAuthClientErrorOptions } from './oauth-client-error.ts';

/**
 * An ID token whose signature is good but whose claims are not those expected; `claim` names the first that is wrong.
 * @see OpenID Connect Core §3.1.3.7 https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
 */
export class IdTokenError extends OAuthClientError {
  override readonly name: string = 'IdTokenError';
  /** Name of the claim, such as `nonce`. */
  readonly claim: string;

  constructor(claim: string, message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ID_TOKEN', `id_token: ${message}`, options);
    this.claim = claim;
  }
}
