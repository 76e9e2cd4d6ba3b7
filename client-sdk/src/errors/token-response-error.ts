import { OAuthError, type OAuthErrorFields } from './oauth-error.ts';

/** The token endpoint refused, or its answer holds no token. */
export class TokenResponseError extends OAuthError {
  override readonly name: string = 'TokenResponseError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_TOKEN_RESPONSE');
  }
}
