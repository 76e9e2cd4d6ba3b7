import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { TransportError } from './transport-error.ts';

/** No complete answer within `timeoutMs`. */
export class TimeoutError extends TransportError {
  override readonly name: string = 'TimeoutError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_TIMEOUT', message, options);
  }
}
