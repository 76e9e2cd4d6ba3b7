import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { TransportError } from './transport-error.ts';

/** The server could not be reached or the connection broke; `cause` is what `fetch` threw. `retryable` unless TLS failed. */
export class ConnectionError extends TransportError {
  override readonly name: string = 'ConnectionError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_CONNECTION', message, options);
  }
}
