import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { OAuthClientError } from './oauth-client-error.ts';

/** There is no token to use: none in what was given, no refresh token to refresh with, nothing to revoke. */
export class TokenUnavailableError extends OAuthClientError {
  override readonly name: string = 'TokenUnavailableError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_TOKEN_UNAVAILABLE', message, options);
  }
}
