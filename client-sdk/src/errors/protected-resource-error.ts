import { OAuthError, type OAuthErrorFields } from './oauth-error.ts';

/** An API called with an access token answered with a failure; `wwwAuthenticate` says whether the token is the reason. See RFC 6750 §3. */
export class ProtectedResourceError extends OAuthError {
  override readonly name: string = 'ProtectedResourceError';

  constructor(fields: OAuthErrorFields) {
    super(fields, 'OAUTH_CLIENT_PROTECTED_RESOURCE');
  }
}
