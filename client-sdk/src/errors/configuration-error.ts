import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { OAuthClientError } from './oauth-client-error.ts';

/** The caller asked for what cannot be: a missing client id, an unknown mode, a token for an origin that is not allowed. */
export class ConfigurationError extends OAuthClientError {
  override readonly name: string = 'ConfigurationError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_CONFIGURATION', message, options);
  }
}
