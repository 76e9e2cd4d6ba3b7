import type { AnyClient } from '../client.ts';
import { IdTokenError } from '../errors.ts';
import type { WarningEvent } from '../hooks.ts';
import type { WireParams, WireValue } from '../http/options.ts';
import type { IdTokenClaims } from '../id-token/claims.ts';
import type { ExpectedIdToken } from '../id-token/id-token.ts';
import { isObject } from '../objects.ts';
import { chooseToken } from './read-response.ts';

/**
 * Validates an ID token against its session; rejects if it is not the expected one. May resolve
 * with the claims.
 */
export type IdTokenCheck = (idToken: string, expected: ExpectedIdToken) => Promise<unknown>;

/** Expectations of an ID token before the token request. */
export type IdTokenExpectation = Omit<ExpectedIdToken, 'accessToken'> & {
  /** Whether a token response without one is rejected. */
  readonly isRequired?: boolean;
  /** Default: the client's own. */
  readonly validate?: IdTokenCheck | undefined;
};

/** The fields of a token response after the check, and the claims of its ID token. */
export type CheckedFields = {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly claims?: IdTokenClaims | undefined;
};

/** Validates the ID token among the fields of a token response. */
export type FieldsCheck = (
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
) => Promise<CheckedFields>;

/**
 * Prepares the validation of the ID token that a token request may return; undefined if it is not
 * for this client, or was not requested and the client has no keys. Called before the request is
 * sent, so that a misconfiguration does not spend a code.
 * @throws {ConfigurationError} if an ID token was requested and the client cannot validate it.
 */
export async function prepareIdTokenCheck(
  client: AnyClient,
  params: WireParams,
  expectation: IdTokenExpectation = { nonce: false },
): Promise<FieldsCheck | undefined> {
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
