import type { Client } from '../client.ts';
import { OAuthError } from '../errors.ts';
import type { WireParams } from '../http/options.ts';
import type { ApiResponse } from '../http/response.ts';
import { failureOf } from '../http/response-error.ts';
import type { IdTokenClaims } from '../id-token-claims.ts';
import type { JsonObject } from '../keys.ts';
import type { ClientSettings } from '../settings.ts';
import { quote } from '../text.ts';
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

/** Of the answers to requests that carried a DPoP proof: fetch's responses, and what is made of them. */
const answersToProofs = new WeakSet<object>();

/** Notes that a response answers a request with a DPoP proof. */
export function markAnswerToProof(response: object): void {
  answersToProofs.add(response);
}

/** Whether a response answers a request with a DPoP proof, so that its token must be bound to the key. */
export function isAnswerToProof(response: object): boolean {
  return answersToProofs.has(response);
}

/**
 * Why a token of this type must not be used; undefined when it may. A missing type means Bearer. Other types are for callers who say
 * how they are sent.
 * @see RFC 6749 §7.1 https://www.rfc-editor.org/rfc/rfc6749#section-7.1
 * @see RFC 9449 §5 https://www.rfc-editor.org/rfc/rfc9449#section-5
 */
export function tokenTypeProblem(
  type: unknown,
  { authorizationScheme, formatHeader }: Pick<AccessTokenOptions, 'authorizationScheme' | 'formatHeader'>,
  isProven = false,
): string | undefined {
  const name = type === undefined || type === null || type === '' ? 'bearer' : type;
  const known = typeof name === 'string' ? name.toLowerCase() : undefined;
  if (known === 'dpop') return undefined;
  if (known === 'bearer') {
    return isProven
      ? 'a DPoP token was asked for and a Bearer token came, which anyone can use: the server, or this client at it, does not support DPoP'
      : undefined;
  }
  // What token exchange says of an issued token that is no access token. @see RFC 8693 §2.2.1
  if (known === 'n_a') return undefined;
  if (authorizationScheme !== undefined || formatHeader !== undefined) return undefined;
  return `the token_type ${quote(type)} is unknown: set \`authorizationScheme\` to the scheme that its tokens are sent with`;
}

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
