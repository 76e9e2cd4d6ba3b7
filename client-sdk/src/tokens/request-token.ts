import type { Client } from '../client.ts';
import { OAuthError } from '../errors.ts';
import type { WireParams } from '../http/options.ts';
import { type ApiResponse, isProven } from '../http/response.ts';
import { callError } from '../http/response-error.ts';
import type { IdTokenClaims } from '../id-token-claims.ts';
import type { JsonObject } from '../keys.ts';
import type { ClientSettings } from '../settings.ts';
import { type AccessToken, setIdTokenClaims } from './access-token.ts';
import {
  type CheckedFields,
  type FieldsCheck,
  type IdTokenExpectation,
  prepareIdTokenCheck,
} from './id-token-check.ts';
import type { AccessTokenOptions, TokenOutcome, TokenRequestOptions } from './options.ts';
import { readTokenFields, type TokenFields } from './read-response.ts';
import { fromFields } from './stored-token.ts';
import { tokenTypeProblem } from './token-type.ts';

/** What a token request inherits from the token that it refreshes, and expects of the ID token. */
type TokenRequestContext = {
  /** Kept by the new token if the response has none. */
  readonly refreshToken?: string;
  /** Kept by the new token if the response has no ID token. */
  readonly idTokenClaims?: IdTokenClaims | undefined;
  readonly idToken?: IdTokenExpectation | undefined;
};

/**
 * Sends a token request and makes a token from the response.
 * @throws {IdTokenError | JwtError} if the ID token is not the one expected, whatever
 * `throwOnError`.
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
    response.error ?? (await readToken(client, response, { options: tokenOptions(options), check, context }));
  if (!(outcome instanceof OAuthError)) return outcome as TokenOutcome<T>;
  if (options.throwOnError ?? settings.throwOnError) throw outcome;
  // T is false here.
  return { ok: false, error: outcome, response } as TokenOutcome<T>;
}

async function readToken(
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
  const problem = tokenTypeProblem(type, options, isProven(response));
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

/** The refresh token stays valid unless the response has another. */
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
  return callError(response, { settings, operation: 'token', cause, ...message });
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

/** The options of the token, out of those of its request. */
function tokenOptions(options: AccessTokenOptions): AccessTokenOptions {
  const found: Record<string, unknown> = {};
  for (const name of tokenOptionNames) if (options[name] !== undefined) found[name] = options[name];
  // The names are those of the type.
  return found as AccessTokenOptions;
}
