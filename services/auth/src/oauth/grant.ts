import type { RequestMetadata } from '../http/request-metadata.ts';
import type { AuthorizationContext } from './authorize.ts';

export type GrantContext = AuthorizationContext;

/** The response of the token endpoint. @see RFC 6749 §5.1 */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  readonly expires_in: number;
  readonly refresh_token?: string;
  readonly id_token?: string;
  /** Absent if the client has no scopes. */
  readonly scope?: string;
}

/** Parameters of the grants. */
export interface TokenRequest {
  readonly scope: string | undefined;
  readonly resources: readonly string[];
  readonly code: string | undefined;
  readonly redirectUri: string | undefined;
  readonly codeVerifier: string | undefined;
  readonly refreshToken: string | undefined;
  readonly metadata: RequestMetadata;
}
