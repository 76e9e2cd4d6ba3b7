import { OAuthClientError, type OAuthClientErrorOptions } from './oauth-client-error.ts';

/** The metadata of an authorization server, or its key set, could not be had or is unusable; asking again may help when `retryable`. */
export class DiscoveryError extends OAuthClientError {
  override readonly name: string = 'DiscoveryError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_DISCOVERY', message, options);
  }
}
