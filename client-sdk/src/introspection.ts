/**
 * Token introspection (RFC 7662): whether a token is active and what it stands for.
 *
 * @module
 */

import type { Client } from './client.ts';
import { ConfigurationError, ParseError } from './errors.ts';
import type { RequestOptions, WireParams } from './http/options.ts';

/**
 * What the server says of a token: that it is not active (expired, revoked, unknown, of another server; it does not say
 * which), or what it stands for.
 *
 * @see RFC 7662 §2.2 https://www.rfc-editor.org/rfc/rfc7662#section-2.2
 */
export type Introspection = { readonly active: false } | ActiveToken;

/** What an active token stands for; which members there are is up to the server. */
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
  /** Which kind of token it is, for servers that look it up faster so. */
  readonly hint?: 'access_token' | 'refresh_token' | (string & {});
  /** Further parameters. */
  readonly params?: WireParams;
};

/**
 * Asks the authorization server about a token. Member names are given as they came.
 *
 * @throws {ConfigurationError} when the client has no `introspectionEndpoint`
 * @throws {OAuthError} when the server refuses to answer, whatever the client's `throwOnError`
 * @throws {ParseError} when the answer does not say whether the token is active
 * @throws {TransportError} when no answer came
 * @see RFC 7662 §2.1 https://www.rfc-editor.org/rfc/rfc7662#section-2.1
 */
export async function introspectToken(
  client: Client<boolean>,
  token: string,
  { hint, params, ...options }: IntrospectOptions = {},
): Promise<Introspection> {
  const endpoint = client.settings.introspectionEndpoint;
  if (endpoint === undefined) throw new ConfigurationError("set the client's `introspectionEndpoint`");
  const response = await client.send({
    operation: 'introspection',
    endpoint,
    params: { token, token_type_hint: hint, ...params },
    // A token in a URL ends in logs, so the client's `tokenMethod` does not count here.
    tokenMethod: 'post',
    options: { ...options, parse: 'json', keyCase: 'preserve', throwOnError: true },
  });
  const { parsed } = response;
  if (!isIntrospection(parsed)) throw new ParseError('the introspection response has no boolean `active`');
  // An inactive token's other members, which some servers send, must not be taken for facts.
  return parsed.active ? parsed : { active: false };
}

function isIntrospection(parsed: unknown): parsed is Introspection {
  return (
    typeof parsed === 'object' && parsed !== null && 'active' in parsed && typeof parsed.active === 'boolean'
  );
}
