import type { OAuthClientErrorOptions } from './oauth-client-error.ts';
import { OAuthClientError } from './oauth-client-error.ts';

/** A body that is not what its content type says; `cause` is the parser's error. The body itself is not in the message. */
export class ParseError extends OAuthClientError {
  override readonly name: string = 'ParseError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_PARSE', message, options);
  }
}
