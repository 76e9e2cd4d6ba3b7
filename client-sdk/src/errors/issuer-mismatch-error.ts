import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { OAuthClientError } from './oauth-client-error.ts';

/** The issuer that answered is not the one expected. See RFC 9207 §2.4 and RFC 8414 §3.3. */
export class IssuerMismatchError extends OAuthClientError {
  override readonly name: string = 'IssuerMismatchError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ISSUER_MISMATCH', message, options);
  }
}
