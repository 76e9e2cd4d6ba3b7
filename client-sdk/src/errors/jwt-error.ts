import { OAuthClientError, type OAuthClientErrorOptions } from './oauth-client-error.ts';

/** Why a JWT is not accepted: not a JWT, encrypted, of an algorithm not allowed, without a known key, not signed by it, of another type. */
export type JwtErrorReason = 'malformed' | 'encrypted' | 'algorithm' | 'key_not_found' | 'signature' | 'type';

/** A JWT, or the key set to check it with, cannot be trusted or read. The token itself is in no message. */
export class JwtError extends OAuthClientError {
  override readonly name: string = 'JwtError';
  readonly reason: JwtErrorReason;

  constructor(reason: JwtErrorReason, message: string, options?: OAuthClientErrorOptions) {
    super('OAUTH_CLIENT_JWT', message, options);
    this.reason = reason;
  }
}
