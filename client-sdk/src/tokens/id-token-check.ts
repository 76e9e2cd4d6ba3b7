import type { Client } from '../client.ts';
import { IdTokenError } from '../errors.ts';
import type { WarningEvent } from '../hooks.ts';
import type { WireParams, WireValue } from '../http/options.ts';
import type { ExpectedIdToken } from '../id-token.ts';
import type { IdTokenClaims } from '../id-token-claims.ts';
import { isObject } from '../objects.ts';
import { chooseToken } from './read-response.ts';

/** Checks an ID token against its session; rejects when it is not the one expected. What it resolves with, if an object, are the claims. */
export type IdTokenCheck = (idToken: string, expected: ExpectedIdToken) => Promise<unknown>;

/** What is known of the ID token that a token request will bring. */
export type IdTokenExpectation = Omit<ExpectedIdToken, 'accessToken'> & {
  /** Whether a token response without one is refused. */
  readonly isRequired?: boolean;
  /** Default: the client's own. */
  readonly validate?: IdTokenCheck | undefined;
};

/** The fields of a token response after the check, and the claims of its ID token. */
export type CheckedFields = {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly claims?: IdTokenClaims | undefined;
};

/** Checks the ID token among the fields of a token response. */
export type FieldsCheck = (
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
) => Promise<CheckedFields>;

/**
 * Grants whose ID token has this client as its audience. The audience of an assertion's or an exchange's is part of the request.
 */
const idTokenGrants: ReadonlySet<unknown> = new Set([
  'authorization_code',
  'refresh_token',
  'password',
  'urn:ietf:params:oauth:grant-type:device_code',
  'urn:openid:params:grant-type:ciba',
]);

/**
 * Makes the check of the ID token that a token request may bring; undefined where none is for this client, or where none was asked
 * for and the client does not know the issuer's keys. Called before the request is sent, so that what is missing costs no code.
 * @throws {ConfigurationError} when an ID token was asked for and the client cannot check it.
 */
export async function prepareIdTokenCheck(
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
  // A refresh without a validator drops the ID token; every other grant fails before it is sent.
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
      // What a validator resolves with; a check of the caller's own may give nothing.
      return { fields, claims: isObject(claims) ? (claims as IdTokenClaims) : undefined };
    } catch (error) {
      if (!isRefresh || isAnothers(error)) throw error;
      return withoutIdToken(fields, onWarning);
    }
  };
}

/** Whether a scope asks for an ID token. @see OpenID Connect Core §3.1.2.1 */
export function asksForIdToken(scope: WireValue): boolean {
  const scopes = Array.isArray(scope) ? scope : typeof scope === 'string' ? scope.split(' ') : [];
  return scopes.includes('openid');
}

/** Whether a validated ID token says that the tokens beside it are another user's, or of another client or server. */
function isAnothers(error: unknown): boolean {
  return error instanceof IdTokenError && ['iss', 'sub', 'aud', 'azp'].includes(error.claim);
}

/**
 * A refresh whose ID token cannot be validated, because the keys could not be loaded for example. The refresh token is spent, so its
 * successor must not be lost. The ID token is not given out.
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
