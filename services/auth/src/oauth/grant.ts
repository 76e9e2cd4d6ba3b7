import type { AuthorizationDetail } from '../config/oauth-permissions.ts';
import type { Settings } from '../config/settings.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Issuers } from '../issuers/issuers.ts';
import { jwtBearerGrantType } from '../keys/client-tokens.ts';
import type { AuthorizationContext } from './authorize.ts';
import type { PresentedClient } from './client-authentication.ts';
import type { StoredClient } from './client-store.ts';

/** @see RFC 8628 §3.4 https://www.rfc-editor.org/rfc/rfc8628#section-3.4 */
export const deviceGrantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** @see RFC 8693 §2.1 https://www.rfc-editor.org/rfc/rfc8693#section-2.1 */
export const exchangeGrantType = 'urn:ietf:params:oauth:grant-type:token-exchange';

/**
 * The clients that may have a grant. `all`: also clients that register themselves; `assigned`:
 * clients of administrators; `confidential`: clients of administrators with a secret or a key.
 * How a grant is served is in `token.ts`.
 *
 * @see RFC 6749 §4.4, RFC 8693 §5
 */
export const grantTypes = {
  authorization_code: 'all',
  refresh_token: 'all',
  client_credentials: 'confidential',
  [exchangeGrantType]: 'confidential',
  [jwtBearerGrantType]: 'assigned',
  [deviceGrantType]: 'all',
} as const;

export type GrantType = keyof typeof grantTypes;

/** Grants of clients that have registered themselves. */
export const openGrants: readonly string[] = Object.entries(grantTypes).flatMap(([name, clients]) =>
  clients === 'all' ? [name] : [],
);

export type GrantContext = AuthorizationContext & {
  /** Undefined until external authorization is composed: no other issuer is trusted. */
  readonly issuers: { readonly current: Pick<Issuers<unknown>, 'verifyAssertion'> | undefined };
};

/** The response of the token endpoint, except for `token_type`. @see RFC 6749 §5.1 */
export interface TokenResponse {
  readonly access_token: string;
  /** Only an exchange has it. */
  readonly issued_token_type?: string;
  readonly expires_in: number;
  readonly refresh_token?: string;
  readonly id_token?: string;
  /** Absent if the client has no scopes. */
  readonly scope?: string;
  /** Absent if there are none. @see RFC 9396 §7 */
  readonly authorization_details?: readonly AuthorizationDetail[];
}

/** Parameters of the grants. */
export interface TokenRequest {
  readonly scope: string | undefined;
  /** JSON. */
  readonly details: string | undefined;
  readonly resources: readonly string[];
  /** A parameter of the grant; empty if it is absent. */
  readonly parameter: (name: string) => string;
  /** The key that the client proves to have, by its thumbprint; access tokens are bound to it. */
  readonly thumbprint: string | undefined;
  readonly metadata: RequestMetadata;
}

export interface GrantDefinition {
  /** Default: always. */
  readonly isServed?: (settings: Settings) => boolean;
  /** Finds the client of a request. Default: by its authentication. */
  readonly findClient?: (
    context: GrantContext,
    presented: PresentedClient,
    request: Pick<TokenRequest, 'parameter' | 'metadata'>,
  ) => Promise<StoredClient>;
  /** The parameters that only this grant has. */
  readonly parameters: readonly string[];
  grant(
    context: GrantContext,
    client: StoredClient,
    request: TokenRequest,
  ): TokenResponse | Promise<TokenResponse>;
}
