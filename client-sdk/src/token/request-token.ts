import type { Client } from '../client/client.ts';
import type { ClientSettings } from '../client/client-settings.ts';
import type { WireParams } from '../client/wire-params.ts';
import { OAuthError } from '../errors/oauth-error.ts';
import type { JsonObject } from '../keys/json.ts';
import type { ApiResponse } from '../response/api-response.ts';
import type { AccessToken } from './access-token.ts';
import { readTokenFields } from './read-token-fields.ts';
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
  const outcome = response.error ?? (await tokenOf(client, response, tokenOptions(options), refreshToken));
  if (!(outcome instanceof OAuthError)) return outcome as TokenOutcome<T>;
  if (options.throwOnError ?? settings.throwOnError) throw outcome;
  // Only where `throwOnError` is false, which is what T says.
  return { ok: false, error: outcome, response } as TokenOutcome<T>;
}

async function tokenOf(
  client: Client<boolean>,
  response: ApiResponse,
  options: AccessTokenOptions,
  refreshToken: string | undefined,
): Promise<AccessToken | OAuthError> {
  const { settings } = client;
  const read = await readTokenFields(response, options.tokenName, settings.onWarning);
  if (!read.ok) return await noToken(settings, response, read.reason, read.cause);
  const { fields } = read;
  const kept =
    refreshToken === undefined || fields.refresh_token || fields.refreshToken
      ? options
      : { refreshToken, ...options };
  const { accessTokenFactory } = settings;
  // Fields of a JSON object or a form are JSON values.
  return (
    accessTokenFactory?.(client, { fields: fields as JsonObject, options: kept, response }) ??
    fromFields(client, fields, kept, response)
  );
}

async function noToken(
  settings: ClientSettings,
  response: ApiResponse,
  reason: string,
  cause: unknown,
): Promise<OAuthError> {
  const { failureOf } = await import('../client/on-demand.ts');
  const message = reason === '' ? undefined : { message: reason };
  return failureOf(response, {
    operation: 'token',
    nowMs: settings.now() * 1000,
    redact: settings.redact,
    cause,
    ...message,
  });
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
