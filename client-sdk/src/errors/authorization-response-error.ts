import { printable } from '../printable.ts';
import { OAuthClientError, type OAuthClientErrorOptions } from './oauth-client-error.ts';

/** Characters of the server's words that are quoted. */
const MAX_WORDS = 512;

/**
 * The authorization server sent the user back with an error instead of a code.
 * @see RFC 6749 §4.1.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1
 */
export class AuthorizationResponseError extends OAuthClientError {
  override readonly name: string = 'AuthorizationResponseError';
  /** The server's `error`, such as `access_denied`. */
  readonly code: string;
  /** The server's `error_description`. */
  readonly description: string | undefined;
  /** The server's `error_uri`. */
  readonly uri: string | undefined;

  constructor(
    response: {
      readonly code: string;
      readonly description?: string | undefined;
      readonly uri?: string | undefined;
    },
    options: OAuthClientErrorOptions = {},
  ) {
    const { code, description, uri } = response;
    // From the callback's URL, which anyone can write.
    const words = description === undefined ? code : `${code}: ${description}`;
    super('OAUTH_CLIENT_AUTHORIZATION_RESPONSE', printable(words, MAX_WORDS), options);
    this.code = code;
    this.description = description;
    this.uri = uri;
  }
}
