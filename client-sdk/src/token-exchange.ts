/**
 * Token exchange (RFC 8693).
 *
 * @module
 */

import type { Client } from './client.ts';
import type { WireParams } from './http/options.ts';
import type { KeyCase } from './key-case.ts';
import type { TokenOutcome, TokenRequestOptions } from './tokens/options.ts';

/**
 * Names of token types; any other URI is allowed, too.
 * @see RFC 8693 §3 https://www.rfc-editor.org/rfc/rfc8693#section-3
 */
export const tokenTypes = {
  accessToken: 'urn:ietf:params:oauth:token-type:access_token',
  refreshToken: 'urn:ietf:params:oauth:token-type:refresh_token',
  idToken: 'urn:ietf:params:oauth:token-type:id_token',
  saml1: 'urn:ietf:params:oauth:token-type:saml1',
  saml2: 'urn:ietf:params:oauth:token-type:saml2',
  jwt: 'urn:ietf:params:oauth:token-type:jwt',
} as const;

/** The parameters of a token exchange. */
export interface TokenExchange {
  /** The token of the party that the new token is issued on behalf of. */
  readonly subjectToken: string;
  /** Default: an access token. */
  readonly subjectTokenType?: string;
  /** The token of the acting party, for delegation. */
  readonly actorToken?: string;
  /** Default, with an actor token: an access token. */
  readonly actorTokenType?: string;
  /** Default: the server's choice. */
  readonly requestedTokenType?: string;
  /** URLs of the services that the token is for. */
  readonly resource?: string | readonly string[];
  /** Names of the services that the token is for. */
  readonly audience?: string | readonly string[];
  /** Scopes, separated by spaces or as an array. */
  readonly scope?: string | readonly string[];
  /** Further parameters. */
  readonly params?: WireParams;
}

/**
 * Exchanges a token, for example for one of another service or with less scope. The kind of the new
 * token is `token.param('issued_token_type')`.
 *
 * @throws {TokenResponseError} if the server refuses (`invalid_target` for an unknown audience)
 * @throws {TransportError} if there is no response
 * @see RFC 8693 §2.1 https://www.rfc-editor.org/rfc/rfc8693#section-2.1
 */
export async function exchangeToken<Throws extends boolean, Keys extends KeyCase = 'snake'>(
  client: Client<Throws, Keys>,
  exchange: TokenExchange,
  options: TokenRequestOptions<Throws> = {},
): Promise<TokenOutcome<Throws, Keys>> {
  const { subjectToken, subjectTokenType, actorToken, actorTokenType, requestedTokenType, params } = exchange;
  return await client.getToken<Throws>(
    {
      ...params,
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: subjectToken,
      subject_token_type: subjectTokenType ?? tokenTypes.accessToken,
      actor_token: actorToken,
      actor_token_type: actorToken === undefined ? undefined : (actorTokenType ?? tokenTypes.accessToken),
      requested_token_type: requestedTokenType,
      resource: exchange.resource,
      audience: exchange.audience,
      scope: exchange.scope,
    },
    options,
  );
}
