import { OAuthClientError, type OAuthClientErrorOptions } from './oauth-client-error.ts';

/** A token store could not be read or written; `cause` is the store's own error. */
export class StoreError extends OAuthClientError {
  override readonly name: string = 'StoreError';

  constructor(message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_STORE', message, options);
  }
}
