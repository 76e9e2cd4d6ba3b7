import type { ApiResponse } from '../response/api-response.ts';
import { OAuthClientError, type OAuthClientErrorOptions } from './oauth-client-error.ts';

/** A redirect that must not be followed: no Location, a downgrade from https, a token request sent to another origin. */
export class RedirectError extends OAuthClientError {
  override readonly name: string = 'RedirectError';
  /** The response that asked for it. */
  readonly response: ApiResponse;

  constructor(message: string, options: OAuthClientErrorOptions & { readonly response: ApiResponse }) {
    super('OAUTH_CLIENT_REDIRECT', message, options);
    this.response = options.response;
  }
}
