import type { Client } from '../client.ts';
import { IdTokenError, OAuthError } from '../errors.ts';
import type { WarningEvent } from '../hooks.ts';
import type { WireParams, WireValue } from '../http/options.ts';
import { type ApiResponse, isProven } from '../http/response.ts';
import { callError } from '../http/response-error.ts';
import type { ExpectedIdToken } from '../id-token.ts';
import type { IdTokenClaims } from '../id-token-claims.ts';
import type { JsonObject } from '../keys.ts';
import { isObject } from '../objects.ts';
import type { ClientSettings } from '../settings.ts';
import { type AccessToken, setIdTokenClaims } from './access-token.ts';
import type { AccessTokenOptions, TokenOutcome, TokenRequestOptions } from './options.ts';
import { chooseToken, readTokenFields, type TokenFields, tokenTypeProblem } from './read-response.ts';
import { fromFields } from './stored-token.ts';

/**
 * Validates an ID token against its session; rejects if it is not the expected one. May resolve
 * with the claims.
 */
export type IdTokenCheck = (idToken: string, expected: ExpectedIdToken) => Promise<unknown>;

/** What is known about the ID token before the token request. */
export type IdTokenExpectation = Omit<ExpectedIdToken, 'accessToken'> & {
  /** Whether a token response without one is rejected. */
  readonly isRequired?: boolean;
  /** Default: the client's own. */
  readonly validate?: IdTokenCheck | undefined;
};

/** The fields of a token response after the check, and the claims of its ID token. */
type CheckedFields = {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly claims?: IdTokenClaims | undefined;
};

/** Validates the ID token among the fields of a token response. */
type FieldsCheck = (
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
) => Promise<CheckedFields>;

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
 * Prepares the validation of the ID token that a token request may return; undefined if it is not
 * for this client, or was not requested and the client has no keys. Called before the request is
 * sent, so that a misconfiguration does not spend a code.
 * @throws {ConfigurationError} if an ID token was requested and the client cannot validate it.
 */
async function prepareIdTokenCheck(
  client: Client<boolean>,
  params: WireParams,
  expectation: IdTokenExpectation = { nonce: false },
): Promise<FieldsCheck | undefined> {
  if (!idTokenGrants.has(params.grant_type)) return undefined;
  const isRefresh = params.grant_type === 'refresh_token';
  const { validate: given, isRequired = false, ...expected } = expectation;
  const isAskedFor = isRequired || (!isRefresh && asksForIdToken(params.scope));
  const { onWarning } = client.settings;
  if (given === undefined && !isAskedFor && !client.canValidateIdTokens)
    return onWarning && (async (fields) => notValidated(fields, onWarning));
  // A refresh without a validator drops the ID token; other grants fail before they are sent.
  const loaded = given ?? (isRefresh ? undefined : await client.idTokenValidator());

  return async (fields, tokenName) => {
    const idToken = fields.id_token ?? fields.idToken;
    if (typeof idToken !== 'string' || idToken === '') {
      if (isRequired) throw noIdToken();
      return { fields };
    }
    const token = fields[chooseToken(fields, tokenName, undefined) ?? ''];
    const accessToken = typeof token === 'string' && token !== idToken ? { accessToken: token } : {};
    try {
      const validate = loaded ?? (await client.idTokenValidator());
      const claims = await validate(idToken, { ...expected, ...accessToken });
      // The claims of our validator; a check of the caller may resolve with anything.
      return { fields, claims: isObject(claims) ? (claims as IdTokenClaims) : undefined };
    } catch (error) {
      if (!isRefresh || isAnothers(error)) throw error;
      return withoutIdToken(fields, onWarning);
    }
  };
}

/** Whether a scope requests an ID token. @see OpenID Connect Core §3.1.2.1 */
export function asksForIdToken(scope: WireValue): boolean {
  const scopes = Array.isArray(scope) ? scope : typeof scope === 'string' ? scope.split(' ') : [];
  return scopes.includes('openid');
}

/**
 * Whether a validated ID token shows that the tokens beside it belong to another user, client or
 * server.
 */
function isAnothers(error: unknown): boolean {
  return error instanceof IdTokenError && ['iss', 'sub', 'aud', 'azp'].includes(error.claim);
}

/**
 * Drops an ID token of a refresh that cannot be validated, for example because the keys could not
 * be loaded. The refresh token is spent, so its successor must not be lost.
 */
function withoutIdToken(
  fields: Readonly<Record<string, unknown>>,
  onWarning: ((event: WarningEvent) => void) | undefined,
): CheckedFields {
  const { id_token: _dropped, idToken: _camel, ...rest } = fields;
  onWarning?.({
    code: 'id_token_dropped',
    message: 'the ID token of a refresh was dropped: it could not be validated',
  });
  return { fields: rest };
}

function notValidated(
  fields: Readonly<Record<string, unknown>>,
  onWarning: (event: WarningEvent) => void,
): CheckedFields {
  if (fields.id_token !== undefined || fields.idToken !== undefined) {
    onWarning({
      code: 'id_token_not_validated',
      message: "the ID token was not validated: set the client's `issuer` and `jwksUri`, as discovery does",
    });
  }
  return { fields };
}

function noIdToken(): IdTokenError {
  return new IdTokenError('id_token', 'the token response has none; is `openid` in the scope?');
}

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
