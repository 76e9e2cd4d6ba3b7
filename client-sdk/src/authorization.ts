import type { Client } from './client.ts';
import { isEqualConstantTime, randomToken } from './encoding.ts';
import {
  AuthorizationResponseError,
  ConfigurationError,
  IssuerMismatchError,
  ParseError,
  StateMismatchError,
} from './errors.ts';
import { readBody } from './http/body.ts';
import type { WireParams, WireValue } from './http/options.ts';
import { calculateCodeChallenge, generateCodeVerifier } from './pkce.ts';
import type { ClientSettings } from './settings.ts';
import { quote } from './text.ts';
import type { IdTokenCheck, IdTokenExpectation } from './tokens/id-token-check.ts';
import type { TokenOutcome, TokenRequestOptions } from './tokens/options.ts';

/**
 * The state of an authorization between redirect and callback, as plain JSON with secrets. Keep it
 * where only the same browser brings it back: in a server-side session or an encrypted cookie.
 */
export interface AuthorizationTransaction {
  /**
   * Binds the callback to this session.
   * @see RFC 6749 §10.12 https://www.rfc-editor.org/rfc/rfc6749#section-10.12
   */
  readonly state: string;
  /** PKCE verifier. @see RFC 7636 §4.1 https://www.rfc-editor.org/rfc/rfc7636#section-4.1 */
  readonly codeVerifier?: string;
  /** Binds the ID token to this session; present with OpenID Connect. */
  readonly nonce?: string;
  /** The requested `max_age`: the ID token must show that the user authenticated within it. */
  readonly maxAgeSeconds?: number;
  /** The `redirect_uri`, which the token request repeats. */
  readonly redirectUri?: string;
  /** The issuer, if the client knows it. */
  readonly issuer?: string;
}

/** Options of a start that are not sent. */
export interface StartAuthorizationOptions {
  /** Whether PKCE (S256) is used. Default true; servers without PKCE ignore it. */
  readonly pkce?: boolean;
}

/** The parameters of an authorization request, and the transaction of its callback. */
export interface PreparedAuthorization {
  readonly params: WireParams;
  readonly transaction: AuthorizationTransaction;
}

/** The URL of an authorization request, and the transaction of its callback. */
export interface StartedAuthorization {
  readonly url: string;
  readonly transaction: AuthorizationTransaction;
}

/** Derived from the transaction, so that they cannot be given. */
const derivedNames = ['code_challenge', 'code_challenge_method'] as const;

/**
 * Prepares an authorization code request: adds `state`, a PKCE challenge and, if `scope` contains
 * `openid`, a `nonce`. A given `state` or `nonce` is used; an array of scopes is joined.
 *
 * @throws {ConfigurationError} for parameters that cannot be combined with it
 * @see RFC 6749 §4.1.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1
 * @see RFC 9700 §2.1 https://www.rfc-editor.org/rfc/rfc9700#section-2.1
 */
export async function prepareAuthorization(
  { redirectUri, issuer }: Pick<ClientSettings, 'redirectUri' | 'issuer'>,
  params: WireParams,
  { pkce = true }: StartAuthorizationOptions = {},
): Promise<PreparedAuthorization> {
  assertCombinable(params);
  const scope = scopeOf(params.scope);
  const codeVerifier = pkce ? generateCodeVerifier() : undefined;
  const nonce = text(params.nonce) ?? (scope?.split(' ').includes('openid') ? randomToken() : undefined);
  const maxAgeSeconds = maxAgeOf(params.max_age);
  const sentRedirectUri = text(params.redirect_uri) ?? redirectUri;
  const transaction = {
    state: text(params.state) ?? randomToken(),
    ...(codeVerifier !== undefined && { codeVerifier }),
    ...(nonce !== undefined && { nonce }),
    ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
    ...(sentRedirectUri !== undefined && { redirectUri: sentRedirectUri }),
    ...(issuer !== undefined && { issuer }),
  };
  return {
    transaction,
    params: {
      ...params,
      state: transaction.state,
      ...(scope !== undefined && { scope }),
      ...(nonce !== undefined && { nonce }),
      ...(sentRedirectUri !== undefined && { redirect_uri: sentRedirectUri }),
      ...(codeVerifier !== undefined && {
        code_challenge: await calculateCodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      }),
    },
  };
}

function assertCombinable(params: WireParams): void {
  for (const name of derivedNames) {
    if (params[name] !== undefined) {
      throw new ConfigurationError(
        `${name} is made by startAuthorization; leave it out, or use authorizationUrl`,
      );
    }
  }
  const { response_type: responseType, response_mode: responseMode } = params;
  if (responseType !== undefined && responseType !== 'code') {
    throw new ConfigurationError(
      `startAuthorization asks for a code; response_type ${JSON.stringify(responseType)} is not supported`,
    );
  }
  if (typeof responseMode === 'string' && responseMode.endsWith('jwt')) {
    throw new ConfigurationError(
      `response_mode ${responseMode} is not supported: completeAuthorization reads plain parameters`,
    );
  }
}

/**
 * @see OpenID Connect Core §3.1.2.1
 * https://openid.net/specs/openid-connect-core-1_0.html#AuthRequest
 */
function maxAgeOf(maxAge: WireValue): number | undefined {
  if (maxAge === undefined || maxAge === null || maxAge === '') return undefined;
  const seconds = Number(maxAge);
  if (Number.isInteger(seconds) && seconds >= 0) return seconds;
  throw new ConfigurationError('`max_age` must be a whole number of seconds');
}

function scopeOf(scope: WireValue): string | undefined {
  return Array.isArray(scope) ? scope.join(' ') : text(scope);
}

function text(value: WireValue): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * The URL that the browser was redirected to, absolute or only its query or fragment; the body of a
 * `form_post` callback; or the request with either.
 */
export type AuthorizationCallback = string | URL | URLSearchParams | Request;

/** Enough for a code, a state and an ID token. */
const MAX_BODY_BYTES = 65_536;

/**
 * Reads the parameters of a callback, without consuming the body of a request.
 * @throws {ParseError} if the body of a request is not a form, or too long.
 * @throws {ConfigurationError} for anything but a callback.
 */
export async function readCallback(callback: AuthorizationCallback): Promise<URLSearchParams> {
  if (!isRequest(callback)) return callbackParams(callback);
  if (callback.method.toUpperCase() !== 'POST') return callbackParams(callback.url);
  // A request of Node has a URL, but no body that can be cloned.
  if (typeof callback.clone !== 'function') throw notACallback();
  const type = callback.headers.get('content-type') ?? '';
  if (!type.toLowerCase().startsWith('application/x-www-form-urlencoded'))
    throw new ParseError('the callback is a POST whose body is not a form');
  if (callback.bodyUsed)
    throw new ConfigurationError("the callback's body was read before: give its form as URLSearchParams");
  return new URLSearchParams(await readBody(callback.clone(), MAX_BODY_BYTES));
}

/** Frameworks have Request classes of their own. */
function isRequest(callback: AuthorizationCallback): callback is Request {
  return typeof callback === 'object' && callback !== null && 'url' in callback && 'method' in callback;
}

/** Options of checking a callback. */
export interface CheckAuthorizationOptions {
  /**
   * Whether the callback must have `iss`, which is compared in any case. Default: the client's
   * `authorizationResponseIssParameterSupported`, which discovery sets.
   */
  readonly issuerRequired?: boolean;
}

/** A code, and the parameters that its token request repeats. */
export interface CheckedAuthorization {
  readonly code: string;
  readonly state: string;
  readonly nonce: string | undefined;
  readonly maxAgeSeconds: number | undefined;
  readonly params: WireParams;
}

/** If repeated, another reader of the URL could see other values. */
const singleNames = ['state', 'iss', 'error', 'code', 'response'] as const;

/**
 * Checks a callback against its transaction: state, issuer, and the server's error.
 *
 * @throws {StateMismatchError} if the callback belongs to another session, or is forged
 * @throws {IssuerMismatchError} if it is from another server (mix-up attack)
 * @throws {AuthorizationResponseError} if the server or the user (`access_denied`) refused
 * @throws {ParseError} if it has neither code nor error, or a parameter twice
 * @see RFC 6749 §4.1.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2
 * @see RFC 9207 §2.4 https://www.rfc-editor.org/rfc/rfc9207#section-2.4
 */
export function checkAuthorizationCallback(
  callback: Exclude<AuthorizationCallback, Request>,
  transaction: AuthorizationTransaction | undefined,
  { issuerRequired = false }: CheckAuthorizationOptions = {},
): CheckedAuthorization {
  if (transaction === undefined || transaction === null) {
    throw new StateMismatchError('no authorization was started in this session, or it is over; start again');
  }
  const received = callbackParams(callback);
  for (const name of singleNames) {
    if (received.getAll(name).length > 1)
      throw new ParseError(`the callback holds \`${name}\` more than once`);
  }
  assertState(received.get('state'), transaction.state);
  assertIssuer(received.get('iss'), transaction.issuer, issuerRequired);
  if (received.has('response')) {
    throw new ConfigurationError(
      'the callback is a signed response (JARM), which is not supported: ask for response_mode=query',
    );
  }
  assertNoError(received);
  const code = received.get('code');
  if (!code) throw new ParseError('the callback holds neither `code` nor `error`');
  const { codeVerifier, redirectUri, state, nonce, maxAgeSeconds } = transaction;
  return {
    ...{ code, state, nonce, maxAgeSeconds },
    params: {
      ...(redirectUri !== undefined && { redirect_uri: redirectUri }),
      ...(codeVerifier !== undefined && { code_verifier: codeVerifier }),
    },
  };
}

function callbackParams(callback: Exclude<AuthorizationCallback, Request>): URLSearchParams {
  if (callback instanceof URLSearchParams) return callback;
  const text = callback instanceof URL ? callback.href : callback;
  // Callers without types.
  if (typeof text !== 'string') throw notACallback();
  const hashAt = text.indexOf('#');
  const bare = hashAt < 0 ? text : text.slice(0, hashAt);
  const query = new URLSearchParams(bare.slice(bare.indexOf('?') + 1));
  // With response_mode=fragment, for applications in browsers.
  return query.has('state') || hashAt < 0 ? query : new URLSearchParams(text.slice(hashAt + 1));
}

function notACallback(): ConfigurationError {
  return new ConfigurationError(
    'the callback must be its URL as a string or URL, its query or form as URLSearchParams, or a Request of the Fetch standard',
  );
}

function assertState(received: string | null, expected: string): void {
  if (!expected)
    throw new ConfigurationError('the transaction has no state; keep what startAuthorization gave as it is');
  if (received === null) throw new StateMismatchError('the callback has no state; start again');
  if (!isEqualConstantTime(received, expected)) {
    throw new StateMismatchError('the state of the callback is not that of this session; start again');
  }
}

function assertIssuer(received: string | null, expected: string | undefined, required: boolean): void {
  if (received === null) {
    if (required) throw new IssuerMismatchError('the callback has no `iss`, which this server always sends');
    return;
  }
  if (expected !== undefined && received !== expected) {
    throw new IssuerMismatchError(`the callback comes from ${quote(received)}; expected ${quote(expected)}`);
  }
  if (expected === undefined && required) {
    throw new ConfigurationError("the callback's `iss` cannot be checked: set the client's issuer");
  }
}

function assertNoError(received: URLSearchParams): void {
  const error = received.get('error');
  if (error === null) return;
  throw new AuthorizationResponseError({
    code: error,
    description: received.get('error_description') ?? undefined,
    uri: received.get('error_uri') ?? undefined,
  });
}

/** Options of a completion: those of its token request, and what is checked around it. */
export type CompleteAuthorizationOptions<Throws extends boolean = boolean> = CheckAuthorizationOptions &
  TokenRequestOptions<Throws> & {
    /** Further parameters of the token request, such as `resource`. */
    readonly params?: WireParams;
    /**
     * Validates the ID token instead of the client's own validator, for example
     * `createIdTokenValidator` of `./id-token` with other options. If it rejects, the completion
     * rejects. An ID token is then required, whatever the scope.
     */
    readonly validateIdToken?: IdTokenCheck;
  };

/** The authorization code flow from the redirect to the token. */
export interface AuthorizationFlow<Throws extends boolean> {
  /**
   * Makes the URL to send the user's browser to, with state, PKCE and nonce, and the transaction to
   * keep until the user returns.
   *
   * @see RFC 6749 §4.1.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1
   */
  startAuthorization(params?: WireParams, options?: StartAuthorizationOptions): Promise<StartedAuthorization>;
  /**
   * Checks the callback against its transaction (undefined if the session has none) and exchanges
   * the code. A transaction completes once: if the callback is loaded again, its code is not sent
   * again. With scope `openid` the ID token is required and validated, and its claims are the
   * token's `idTokenClaims`.
   *
   * @throws {StateMismatchError | IssuerMismatchError | AuthorizationResponseError | ParseError} if
   * the callback does not belong to the transaction, or holds an error
   * @throws {ConfigurationError} before the code is sent, if an ID token is expected that the
   * client cannot validate
   * @throws {IdTokenError | JwtError} if the ID token is not the one expected, whatever
   * `throwOnError`
   * @see RFC 6749 §4.1.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.1.3
   */
  completeAuthorization<T extends boolean = Throws>(
    callback: AuthorizationCallback,
    transaction: AuthorizationTransaction | undefined,
    options?: CompleteAuthorizationOptions<T>,
  ): Promise<TokenOutcome<T>>;
}

/** The codes of older states have expired (after 10 minutes, RFC 6749 §4.1.2). */
const MAXIMUM_USED_STATES = 1000;

/** The token request that completes an authorization. */
export type CheckedCompletion = {
  readonly code: string;
  readonly params: WireParams;
  readonly idToken: IdTokenExpectation;
};

/**
 * Checks a callback and its transaction, and marks the transaction as completed. Nothing is sent.
 * @see {@link AuthorizationFlow.completeAuthorization}
 */
export async function checkCompletion(
  client: Client<boolean>,
  completion: {
    readonly callback: AuthorizationCallback;
    readonly transaction: AuthorizationTransaction | undefined;
    readonly options: CompleteAuthorizationOptions;
  },
  usedStates: Set<string>,
): Promise<CheckedCompletion> {
  const { callback, transaction, options } = completion;
  const { issuerRequired = client.settings.authorizationResponseIssParameterSupported } = options;
  const checked = checkAuthorizationCallback(await readCallback(callback), transaction, { issuerRequired });
  const { code, nonce, maxAgeSeconds } = checked;
  const validate =
    options.validateIdToken ?? (nonce === undefined ? undefined : await client.idTokenValidator());
  claimState(usedStates, checked.state);
  return {
    code,
    params: { ...options.params, ...checked.params },
    idToken: {
      ...{ code, validate, isRequired: validate !== undefined },
      ...(nonce !== undefined && { nonce }),
      ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
    },
  };
}

function claimState(usedStates: Set<string>, state: string): void {
  if (usedStates.has(state)) {
    throw new StateMismatchError(
      'this authorization was completed before; use the token it gave, or start again',
    );
  }
  usedStates.add(state);
  const [oldest] = usedStates;
  if (usedStates.size > MAXIMUM_USED_STATES && oldest !== undefined) usedStates.delete(oldest);
}
