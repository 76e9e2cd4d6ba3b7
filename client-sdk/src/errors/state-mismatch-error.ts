import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { OAuthClientError } from './oauth-client-error.ts';

/** The callback's `state` is not the one the authorization began with: another session's, forged, or used before. See RFC 6749 §10.12. */
export class StateMismatchError extends OAuthClientError {
  override readonly name: string = 'StateMismatchError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_STATE_MISMATCH', message, options);
  }
}
