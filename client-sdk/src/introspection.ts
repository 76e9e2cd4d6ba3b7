/**
 * Token introspection (RFC 7662).
 *
 * @module
 */

import type { AnyClient } from './client.ts';
import { ConfigurationError, ParseError } from './errors.ts';
import type { RequestOptions, WireParams } from './http/options.ts';

/**
 * The server's response: an inactive token (expired, revoked, unknown, or of another server), or
 * the metadata of an active one.
 * @see RFC 7662 §2.2 https://www.rfc-editor.org/rfc/rfc7662#section-2.2
 */
export type Introspection = { readonly active: false } | ActiveToken;

/** The metadata of an active token; which members exist depends on the server. */
export interface ActiveToken {
  readonly active: true;
  /** Scopes, separated by spaces. */
  readonly scope?: string;
  readonly client_id?: string;
  readonly username?: string;
  readonly token_type?: string;
  /** Epoch seconds. */
  readonly exp?: number;
  /** Epoch seconds. */
  readonly iat?: number;
  /** Epoch seconds. */
  readonly nbf?: number;
  readonly sub?: string;
  readonly aud?: string | readonly string[];
  readonly iss?: string;
  readonly jti?: string;
  readonly [member: string]: unknown;
}

/** Options of `introspectToken`. */
export type IntrospectOptions = Omit<
  RequestOptions,
  'query' | 'body' | 'parse' | 'keyCase' | 'parsedFactory' | 'throwOnError'
> & {
  /** The kind of token, a hint for the server's lookup. */
  readonly hint?: 'access_token' | 'refresh_token' | (string & {});
  /** Further parameters. */
  readonly params?: WireParams;
};

/**
 * Introspects a token. Members have their wire names.
 *
 * @throws {ConfigurationError} if the client has no `introspectionEndpoint`
 * @throws {OAuthError} if the server refuses, whatever the client's `throwOnError`
 * @throws {ParseError} if the response does not say whether the token is active
 * @throws {TransportError} if there is no response
 * @see RFC 7662 §2.1 https://www.rfc-editor.org/rfc/rfc7662#section-2.1
 */
export async function introspectToken(
  client: AnyClient,
  token: string,
  { hint, params, ...options }: IntrospectOptions = {},
): Promise<Introspection> {
  const endpoint = client.settings.introspectionEndpoint;
  if (endpoint === undefined) throw new ConfigurationError("set the client's `introspectionEndpoint`");
  const response = await client.send({
    operation: 'introspection',
    endpoint,
    params: { token, token_type_hint: hint, ...params },
    // Ignores the client's `tokenMethod`: a token in a URL ends up in logs.
    tokenMethod: 'post',
    options: { ...options, parse: 'json', keyCase: 'preserve', throwOnError: true },
  });
  const { parsed } = response;
  if (!isIntrospection(parsed)) throw new ParseError('the introspection response has no boolean `active`');
  // Some servers send members of an inactive token, which must not be trusted.
  return parsed.active ? parsed : { active: false };
}

function isIntrospection(parsed: unknown): parsed is Introspection {
  return (
    typeof parsed === 'object' && parsed !== null && 'active' in parsed && typeof parsed.active === 'boolean'
  );
}
