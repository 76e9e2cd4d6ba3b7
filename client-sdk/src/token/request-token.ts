import type { Client } from '../client/client.ts';
import type { ClientSettings } from '../client/client-settings.ts';
import { failureOf } from '../client/failure-of.ts';
import type { WireParams } from '../client/wire-params.ts';
import { OAuthError } from '../errors/oauth-error.ts';
import type { JsonObject } from '../keys/json.ts';
import type { ApiResponse } from '../response/api-response.ts';
import type { AccessToken } from './access-token.ts';
import { readTokenFields, type TokenFields } from './read-token-fields.ts';
import { fromFields } from './stored-token.ts';
import type { AccessTokenOptions, TokenRequestOptions } from './token-options.ts';
import type { TokenOutcome } from './token-response.ts';

/**
 * Sends a token request and makes a token of the answer.
 * @param refreshToken kept by the new token when the answer brings none.
 */
export async function requestToken<T extends boolean>(
  client: Client<boolean>,
  params: WireParams,
  options: TokenRequestOptions<T>,
  refreshToken?: string,
): Promise<TokenOutcome<T>> {
  const { settings } = client;
  const response = await client.send({
    operation: 'token',
    endpoint: settings.tokenEndpoint,
    params,
    tokenMethod: options.tokenMethod,
    options: { ...options, throwOnError: false },
  });
  const outcome = response.error ?? tokenOf(client, response, tokenOptions(options), refreshToken);
  if (!(outcome instanceof OAuthError)) return outcome as TokenOutcome<T>;
  if (options.throwOnError ?? settings.throwOnError) throw outcome;
  // Only where `throwOnError` is false, which is what T says.
  return { ok: false, error: outcome, response } as TokenOutcome<T>;
}

function tokenOf(
  client: Client<boolean>,
  response: ApiResponse,
  options: AccessTokenOptions,
  refreshToken: string | undefined,
): AccessToken | OAuthError {
  const read = readTokenFields(response, options.tokenName, client.settings.onWarning);
  if (!read.ok) return noToken(client.settings, response, read);
  return makeToken(client, response, read.fields, keepRefreshToken(read.fields, options, refreshToken));
}

function makeToken(
  client: Client<boolean>,
  response: ApiResponse,
  fields: Readonly<Record<string, unknown>>,
  options: AccessTokenOptions,
): AccessToken {
  const { accessTokenFactory } = client.settings;
  if (accessTokenFactory === undefined) return fromFields(client, fields, options, response);
  // Fields of a JSON object or a form are JSON values.
  return accessTokenFactory(client, { fields: fields as JsonObject, options, response });
}

/** The refresh token used stays the token's, unless the answer brings another. */
function keepRefreshToken(
  fields: Readonly<Record<string, unknown>>,
  options: AccessTokenOptions,
  refreshToken: string | undefined,
): AccessTokenOptions {
  const isKept = refreshToken !== undefined && !fields.refresh_token && !fields.refreshToken;
  return isKept ? { refreshToken, ...options } : options;
}

function noToken(
  settings: ClientSettings,
  response: ApiResponse,
  { reason, cause }: Extract<TokenFields, { ok: false }>,
): OAuthError {
  const message = reason === '' ? undefined : { message: reason };
  return failureOf(response, { settings, operation: 'token', cause, ...message });
}

const tokenOptionNames = [
  'refreshToken',
  'expiresIn',
  'expiresAt',
  'expiresLatency',
  'mode',
  'authorizationScheme',
  'formatHeader',
  'paramName',
  'tokenName',
] as const satisfies readonly (keyof AccessTokenOptions)[];

/** The options of the token among those of its request. */
function tokenOptions(options: AccessTokenOptions): AccessTokenOptions {
  const found: Record<string, unknown> = {};
  for (const name of tokenOptionNames) if (options[name] !== undefined) found[name] = options[name];
  // Copied name by name from options of that type.
  return found as AccessTokenOptions;
}
