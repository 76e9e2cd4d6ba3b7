import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { TransportError } from './transport-error.ts';

/** The caller's `signal` aborted the call; `cause` is the signal's reason. */
export class AbortError extends TransportError {
  override readonly name: string = 'AbortError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_ABORTED', message, options);
  }
}
