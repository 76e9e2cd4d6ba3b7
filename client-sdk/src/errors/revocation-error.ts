import { OAuthError, type OAuthErrorFields } from './oauth-error.ts';

/** The revocation endpoint refused: the token must be taken for alive. See RFC 7009 §2.2.1. */
export class RevocationError extends OAuthError {
  override readonly name: string = 'RevocationError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_REVOCATION');
  }
}
