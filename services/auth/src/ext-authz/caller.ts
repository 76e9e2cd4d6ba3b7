import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import type { JwtClaims } from '../keys/jwt.ts';
import type { KnownCaller } from './identity-headers.ts';
import type { AuthzDenied } from './result.ts';

/** The caller, or the response of a route that requires one. */
export type Caller =
  | KnownCaller
  | {
      readonly ok: false;
      readonly denial: AuthzDenied;
      /** Headers with an API key, which upstreams must not see. */
      readonly credentials?: readonly string[];
      /** Whether a browser gets a session at the sign-in page. */
      readonly canSignIn?: true;
    };

/** A verified token. Ids are in lower case; a token without a user or session has undefined. */
export interface Token {
  readonly userId: string | undefined;
  readonly sessionId: string | undefined;
  /** The client that got the token for itself. */
  readonly clientId: string | undefined;
  /** The active organization. Undefined also if organizations are disabled. */
  readonly orgId: string | undefined;
  readonly claims: JwtClaims;
  /** The mapping in force when the request arrived. */
  readonly mapping: ClaimMapping;
}
