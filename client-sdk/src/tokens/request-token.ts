import type { AnyClient, Client } from '../client.ts';
import { OAuthError } from '../errors.ts';
import { requestOptionNames, type WireParams } from '../http/options.ts';
import { isProven } from '../http/proofs.ts';
import type { ApiResponse } from '../http/response.ts';
import { callError } from '../http/response-error.ts';
import type { IdTokenClaims } from '../id-token/claims.ts';
import type { JsonObject, KeyCase } from '../key-case.ts';
import { isObject } from '../objects.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import type { ClientSettings } from '../settings.ts';
// biome-ignore lint/suspicious/noImportCycles: a token can refresh itself, which makes one.
import { AccessToken, type AnyAccessToken, setIdTokenClaims } from './access-token.ts';
import {
  type CheckedFields,
  type FieldsCheck,
  type IdTokenExpectation,
  prepareIdTokenCheck,
} from './id-token-check.ts';
import {
  type AccessTokenOptions,
  accessTokenOptionNames,
  type TokenOutcome,
  type TokenRequestOptions,
} from './options.ts';
import {
  chooseToken,
  readTokenFields,
  type TokenProblem,
  tokenText,
  tokenTypeProblem,
} from './read-response.ts';

/**
 * Grants whose ID token has this client as its audience. For assertions and exchanges the audience
 * is part of the request.
 */
const idTokenGrants: ReadonlySet<unknown> = new Set([
  'authorization_code',
  'refresh_token',
  'password',
  'urn:ietf:params:oauth:grant-type:device_code',
  'urn:openid:params:grant-type:ciba',
]);

/**
 * Values that a token request takes from the token that it refreshes, and expects of the ID token.
 */
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
export async function requestToken<T extends boolean, Keys extends KeyCase>(
  client: Client<boolean, Keys>,
  params: WireParams,
  options: TokenRequestOptions<T>,
  context: TokenRequestContext = {},
): Promise<TokenOutcome<T, Keys>> {
  const { settings } = client;
  assertKnownOptions('a token request', options, tokenRequestNames);
  const check = idTokenGrants.has(params.grant_type)
    ? await prepareIdTokenCheck(client, params, context.idToken)
    : undefined;
  const response = await client.send({
    operation: 'token',
    endpoint: settings.tokenEndpoint,
    params,
    tokenMethod: options.tokenMethod,
    options: { ...options, throwOnError: false },
  });
  const outcome =
    response.error ?? (await readToken(client, response, { options: tokenOptions(options), check, context }));
  if (!(outcome instanceof OAuthError)) return outcome as TokenOutcome<T, Keys>;
  if (options.throwOnError ?? settings.throwOnError) throw outcome;
  // T is false here.
  return { ok: false, error: outcome, response } as TokenOutcome<T, Keys>;
}

async function readToken(
  client: AnyClient,
  response: ApiResponse,
  request: {
    readonly options: AccessTokenOptions;
    readonly check: FieldsCheck | undefined;
    readonly context: TokenRequestContext;
  },
): Promise<AnyAccessToken | OAuthError> {
  const { settings } = client;
  const { options, check, context } = request;
  const read = readTokenFields(response, options.tokenName, settings.onWarning);
  if (!read.ok) return noToken(settings, response, read);
  const type = read.fields.token_type ?? read.fields.tokenType;
  const reason = tokenTypeProblem(type, options, isProven(response));
  if (reason !== undefined) return noToken(settings, response, { reason });
  const checked: CheckedFields =
    check === undefined ? { fields: read.fields } : await check(read.fields, options.tokenName);
  const { fields, claims } = checked;
  const tokenOptions = keepRefreshToken(fields, options, context.refreshToken);
  const token =
    read.problem === undefined
      ? makeToken(client, response, fields, tokenOptions)
      : noToken(settings, response, read.problem);
  if (token instanceof OAuthError)
    receivedTokens.set(token, fromFields(client, fields, tokenOptions, response));
  else setIdTokenClaims(token, claims ?? context.idTokenClaims);
  return token;
}

/** The tokens of responses that a factory of the caller failed for, by its error. */
const receivedTokens = new WeakMap<object, AnyAccessToken>();

/** The token that the server has issued although its request failed with this error. */
export function receivedToken(error: unknown): AnyAccessToken | undefined {
  return error instanceof OAuthError ? receivedTokens.get(error) : undefined;
}

function makeToken(
  client: AnyClient,
  response: ApiResponse,
  fields: Readonly<Record<string, unknown>>,
  options: AccessTokenOptions,
): AnyAccessToken | OAuthError {
  const { settings } = client;
  const { accessTokenFactory } = settings;
  if (accessTokenFactory === undefined) return fromFields(client, fields, options, response);
  try {
    // Fields of a JSON object or a form are JSON values.
    const token = accessTokenFactory(client, { fields: fields as JsonObject, options, response });
    if (isObject(token) && typeof token.token === 'string') return token;
    return noToken(settings, response, { reason: '`accessTokenFactory` must return an AccessToken' });
  } catch (cause) {
    const reason = '`accessTokenFactory` failed; see `cause`, and `response` for the tokens';
    return noToken(settings, response, { reason, cause });
  }
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
  { reason, cause }: TokenProblem,
): OAuthError {
  const message = reason === '' ? undefined : { message: reason };
  return callError(response, { settings, operation: 'token', cause, ...message });
}

const tokenRequestNames: OptionNames<TokenRequestOptions> = {
  ...requestOptionNames,
  ...accessTokenOptionNames,
  tokenMethod: 1,
};

/** The options of the token, out of those of its request. */
function tokenOptions(options: AccessTokenOptions): AccessTokenOptions {
  const entries: readonly [string, unknown][] = Object.entries(options);
  // The names are those of the type.
  return Object.fromEntries(
    entries.filter(([name, value]) => Object.hasOwn(accessTokenOptionNames, name) && value !== undefined),
  ) as AccessTokenOptions;
}

/**
 * Makes a token from the fields of a token response; options take precedence.
 * @throws {TokenUnavailableError} if there is neither a token nor a refresh token, unless the
 * client's `throwOnError` is false.
 */
export function fromFields<Keys extends KeyCase>(
  client: Client<boolean, Keys>,
  fields: Readonly<Record<string, unknown>>,
  options: AccessTokenOptions,
  response?: ApiResponse,
): AccessToken<JsonObject, Keys> {
  const name = chooseToken(fields, options.tokenName, client.settings.onWarning);
  const params: Record<string, unknown> = Object.create(null);
  const found: FoundOptions = {};
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    if (key === name) continue;
    const option = fieldOptions.get(key);
    if (option === undefined) params[key] = value;
    else if (found[option] === undefined && isFieldValue(option, value)) found[option] = value;
  }
  const token = name === undefined ? '' : tokenText(fields[name]);
  // JSON values, because they were parsed from JSON or a form; made here, so that no copy is
  // needed.
  return new AccessToken(client, token, { ...found, ...options, params: params as JsonObject, response });
}

/** `Expiry` handles values that are not numbers. */
type FoundOptions = { refreshToken?: string; expiresIn?: string | number; expiresAt?: string | number };

/** Fields that are options of the token; the first of several takes precedence. */
const fieldOptions = new Map<string, keyof FoundOptions>([
  ['refresh_token', 'refreshToken'],
  ['refreshToken', 'refreshToken'],
  ['expires_in', 'expiresIn'],
  ['expiresIn', 'expiresIn'],
  ['expires', 'expiresIn'],
  ['expires_at', 'expiresAt'],
  ['expiresAt', 'expiresAt'],
]);

function isFieldValue(option: keyof FoundOptions, value: unknown): value is string {
  return option === 'refreshToken' ? typeof value === 'string' : value !== null && value !== undefined;
}
