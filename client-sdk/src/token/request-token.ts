import type { Client } from '../client/client.ts';
import type { ClientSettings } from '../client/client-settings.ts';
import { failureOf } from '../client/failure-of.ts';
import type { WireParams } from '../client/wire-params.ts';
import { OAuthError } from '../errors/oauth-error.ts';
import type { IdTokenClaims } from '../id-token/claims.ts';
import type { JsonObject } from '../keys/json.ts';
import type { ApiResponse } from '../response/api-response.ts';
import { type AccessToken, setIdTokenClaims } from './access-token.ts';
import {
  type CheckedFields,
  type FieldsCheck,
  type IdTokenExpectation,
  prepareIdTokenCheck,
} from './check-id-token.ts';
import { readTokenFields, type TokenFields } from './read-token-fields.ts';
import { fromFields } from './stored-token.ts';
import type { AccessTokenOptions, TokenRequestOptions } from './token-options.ts';
import type { TokenOutcome } from './token-response.ts';
import { isAnswerToProof, tokenTypeProblem } from './token-type.ts';

/** What a token request inherits. */
export type TokenRequestContext = {
  /** Kept by the new token when the answer brings none. */
  readonly refreshToken?: string;
  /** The claims of the ID token before a refresh: kept when the answer brings no ID token. */
  readonly idTokenClaims?: IdTokenClaims | undefined;
  readonly idToken?: IdTokenExpectation | undefined;
};

/**
 * Sends a token request and makes a token of the answer.
 * @throws {IdTokenError | JwtError} when the answer's ID token is not the one expected, whatever `throwOnError`.
 */
export async function requestToken<T extends boolean>(
  client: Client<boolean>,
  params: WireParams,
  options: TokenRequestOptions<T>,
  context: TokenRequestContext = {},
): Promise<TokenOutcome<T>> {
  const { settings } = client;
  const check = await prepareIdTokenCheck(client, params, context.idToken);
  const response = await client.send({
    operation: 'token',
    endpoint: settings.tokenEndpoint,
    params,
    tokenMethod: options.tokenMethod,
    options: { ...options, throwOnError: false },
  });
  const outcome =
    response.error ?? (await tokenOf(client, response, { options: tokenOptions(options), check, context }));
  if (!(outcome instanceof OAuthError)) return outcome as TokenOutcome<T>;
  if (options.throwOnError ?? settings.throwOnError) throw outcome;
  // Only where `throwOnError` is false, which is what T says.
  return { ok: false, error: outcome, response } as TokenOutcome<T>;
}

async function tokenOf(
  client: Client<boolean>,
  response: ApiResponse,
  request: {
    readonly options: AccessTokenOptions;
    readonly check: FieldsCheck | undefined;
    readonly context: TokenRequestContext;
  },
): Promise<AccessToken | OAuthError> {
  const { options, check, context } = request;
  const read = readTokenFields(response, options.tokenName, client.settings.onWarning);
  if (!read.ok) return noToken(client.settings, response, read);
  const type = read.fields.token_type ?? read.fields.tokenType;
  const problem = tokenTypeProblem(type, options, isAnswerToProof(response));
  if (problem !== undefined) return noToken(client.settings, response, { ok: false, reason: problem });
  const checked: CheckedFields =
    check === undefined ? { fields: read.fields } : await check(read.fields, options.tokenName);
  const { fields, claims } = checked;
  const token = makeToken(client, response, fields, keepRefreshToken(fields, options, context.refreshToken));
  setIdTokenClaims(token, claims ?? context.idTokenClaims);
  return token;
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
