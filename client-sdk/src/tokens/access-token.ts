import type { Client } from '../client.ts';
import { ConfigurationError, TokenUnavailableError } from '../errors.ts';
import { formFields } from '../http/body.ts';
import type { RequestOptions, UnconvertedOptions, WireParams } from '../http/options.ts';
import { DEFAULT_LABEL } from '../http/redact.ts';
import type { ApiResponse } from '../http/response.ts';
import { sendRequest } from '../http/send-request.ts';
import { assertAllowed, resolveUrl } from '../http/url.ts';
import type { IdTokenClaims } from '../id-token/claims.ts';
import type { JsonObject, JsonValue, KeyCase, ParsedKeys } from '../key-case.ts';
import { copyPlain } from '../objects.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import { ApiCalls } from './api-calls.ts';
import { Expiry } from './expiry.ts';
import type { IdTokenExpectation } from './id-token-check.ts';
import {
  type AccessTokenOptions,
  accessTokenOptionNames,
  type RevokeTokenOptions,
  type TokenMode,
  type TokenOutcome,
  type TokenRequestOptions,
} from './options.ts';
import { tokenTypeProblem } from './read-response.ts';
// biome-ignore lint/suspicious/noImportCycles: a token can refresh itself, which makes one.
import { fromFields, requestToken } from './request-token.ts';
import { fetchWithToken, placeToken, resolvePlace } from './send-token.ts';
import { type StoredToken, splitStored, toStoredToken } from './stored-token.ts';

/** Options of an AccessToken. */
export type AccessTokenInit = AccessTokenOptions & {
  /** Further fields of the token response. */
  readonly params?: JsonObject | undefined;
  /** The response that contained it. */
  readonly response?: ApiResponse | undefined;
};

const initNames: OptionNames<AccessTokenInit> = { ...accessTokenOptionNames, params: 1, response: 1 };

/**
 * An access token that can call APIs, be refreshed, revoked and stored. Immutable. Inspection and
 * JSON show no secrets; use `toStored()` to persist it.
 */
export class AccessToken<
  P extends JsonObject = JsonObject,
  Keys extends KeyCase = 'snake',
> extends ApiCalls<Keys> {
  readonly #client: Client<boolean, Keys>;
  readonly #token: string;
  readonly #init: AccessTokenInit;
  readonly #expiry: Expiry;
  readonly #params: P;

  /**
   * @throws {TokenUnavailableError} if there is neither a token nor a refresh token, unless the
   * client's `throwOnError` is false.
   */
  constructor(client: Client<boolean, Keys>, token: string, init: AccessTokenInit = {}) {
    super();
    assertKnownOptions('an access token', init, initNames);
    this.#client = client;
    this.#token = token;
    this.#init = { ...init, ...(init.mode !== undefined && { mode: copyPlain(init.mode) }) };
    // The fields of a response were parsed for this token; other objects belong to the caller.
    const params = init.response === undefined ? copyPlain(init.params) : init.params;
    this.#params = Object.freeze(Object.assign(Object.create(null), params));
    if (token === '') {
      client.settings.onWarning?.({ code: 'no_token', message: 'AccessToken has no token' });
      if (!init.refreshToken && client.settings.throwOnError)
        throw new TokenUnavailableError('AccessToken has no token: give a token or a refresh token');
    }
    this.#expiry = new Expiry(init, client.settings.now);
  }

  /**
   * Makes a token from the fields of a token response or from the result of `toStored()`. The
   * object may contain options under their stored names (`mode`, `param_name`, …).
   * @throws {TokenUnavailableError} if there is neither a token nor a refresh token, unless the
   * client's `throwOnError` is false.
   */
  static fromHash<Keys extends KeyCase>(
    client: Client<boolean, Keys>,
    hash: object,
    options: AccessTokenOptions = {},
  ): AccessToken<JsonObject, Keys> {
    const { fields, stored } = splitStored(hash);
    return fromFields(client, fields, { ...stored, ...options });
  }

  /**
   * Makes a token from form data, such as the fragment of an implicit grant's callback; a leading
   * `?` or `#` is ignored.
   * @throws {TokenUnavailableError} if there is neither a token nor a refresh token, unless the
   * client's `throwOnError` is false.
   */
  static fromForm<Keys extends KeyCase>(
    client: Client<boolean, Keys>,
    form: string | URLSearchParams | URL,
    options: AccessTokenOptions = {},
  ): AccessToken<JsonObject, Keys> {
    const text = form instanceof URL ? form.hash || form.search : form;
    const pairs = typeof text === 'string' ? new URLSearchParams(text.replace(/^[?#]/, '')) : text;
    return fromFields(client, formFields(pairs), options);
  }

  /** Distinguishes a token from a TokenFailure. */
  get ok(): true {
    return true;
  }

  /**
   * The access token; `''` if there is only a refresh token, or none with `throwOnError: false`.
   */
  get token(): string {
    return this.#token;
  }

  get refreshToken(): string | undefined {
    return this.#init.refreshToken || undefined;
  }

  /** Seconds from issue to expiry, as sent by the server; 0 means never. */
  get expiresIn(): number | undefined {
    return this.#expiry.expiresIn;
  }

  /** Epoch seconds, reduced by the latency. */
  get expiresAt(): number | undefined {
    return this.#expiry.expiresAt;
  }

  /** Seconds before its expiry from which it counts as expired. */
  get expiresLatency(): number | undefined {
    return this.#expiry.expiresLatency;
  }

  get tokenType(): string | undefined {
    return asText(this.#params.token_type ?? this.#params.tokenType);
  }

  /**
   * The granted scopes; undefined if the server sent none, which means those requested.
   * @see RFC 6749 §3.3
   */
  get scope(): readonly string[] | undefined {
    return asText(this.#params.scope)?.split(' ').filter(Boolean);
  }

  /**
   * The ID token of the same response. Validated if it came from a token request of a client with
   * `issuer` and `jwksUri`: then `idTokenClaims` are its claims. Tokens made by `fromHash` and
   * `fromForm` are not validated.
   */
  get idToken(): string | undefined {
    return asText(this.#params.id_token ?? this.#params.idToken);
  }

  /**
   * The claims of the validated ID token, kept by a refresh without a new one. Undefined if none
   * was validated.
   */
  get idTokenClaims(): IdTokenClaims | undefined {
    return idTokenClaims.get(this);
  }

  /** The further fields of the token response. */
  get params(): Readonly<P> {
    return this.#params;
  }

  /** The response that contained it; undefined for a restored token. */
  get response(): ApiResponse | undefined {
    return this.#init.response;
  }

  /** Where the token is sent. */
  get mode(): TokenMode {
    return this.#init.mode ?? 'header';
  }

  get client(): Client<boolean, Keys> {
    return this.#client;
  }

  /** A further field of the token response, under its name (snake_case by default). */
  param(name: string): JsonValue | undefined {
    return this.#params[name];
  }

  /** Whether it expires. */
  get expires(): boolean {
    return this.#expiry.expiresAt !== undefined;
  }

  /**
   * Whether it has expired, which includes the very second of its expiry; with `now` (epoch
   * seconds), whether it has by then.
   */
  expired(now?: number): boolean {
    if (now === undefined) return this.secondsLeft() <= 0;
    return this.expiresAt !== undefined && this.expiresAt <= now;
  }

  /** Whether it expires within that many seconds. */
  expiresWithin(seconds: number): boolean {
    return this.secondsLeft() <= seconds;
  }

  /**
   * Seconds until it expires, negative afterwards; Infinity if it does not expire. Not affected by
   * a clock that is set back.
   */
  secondsLeft(): number {
    return this.#expiry.secondsLeft();
  }

  /** The headers that carry the token. */
  headers(): { readonly authorization: string } {
    return { authorization: this.#authorization() };
  }

  /**
   * Gets a new token with the refresh token. The new token keeps the options of this one, and its
   * refresh token unless the server sent another. This token does not change.
   * @throws {TokenUnavailableError} if there is no refresh token.
   * @throws {TokenResponseError} if the server refuses, unless `throwOnError: false` is given here.
   * @see RFC 6749 §6 https://www.rfc-editor.org/rfc/rfc6749#section-6
   */
  async refresh<T extends boolean = true>(
    params: WireParams = {},
    options: TokenRequestOptions<T> = {},
  ): Promise<TokenOutcome<T, Keys>> {
    const { refreshToken } = this;
    if (refreshToken === undefined) {
      throw new TokenUnavailableError(
        'A refresh_token is not available: get a new token, or ask for `offline_access` if the server has it',
      );
    }
    const { hooks } = this.#client.settings;
    const {
      params: _params,
      response: _response,
      expiresIn: _in,
      expiresAt: _at,
      refreshToken: _refresh,
      ...kept
    } = this.#init;
    const outcome = await requestToken(
      this.#client,
      { grant_type: 'refresh_token', refresh_token: refreshToken, ...params },
      // The return type promises a token or an exception, whatever the client's default is.
      { throwOnError: true, ...kept, ...options },
      { refreshToken, idTokenClaims: this.idTokenClaims, idToken: await this.#expectedIdToken() },
    );
    if (outcome.ok)
      hooks.onRefresh?.({ expiresAt: outcome.expiresAt, rotated: outcome.refreshToken !== refreshToken });
    // T is that of `throwOnError`.
    return outcome as TokenOutcome<T, Keys>;
  }

  /**
   * Revokes the access token, or the refresh token if requested or if there is no other.
   * @throws {ConfigurationError} if the hint is invalid.
   * @throws {TokenUnavailableError} if there is no such token.
   * @throws {RevocationError} if the server refuses: the token must be considered valid.
   * @see RFC 7009 https://www.rfc-editor.org/rfc/rfc7009
   */
  async revoke(options: RevokeTokenOptions = {}): Promise<ApiResponse> {
    const { tokenTypeHint, ...rest } = options;
    if (
      tokenTypeHint !== undefined &&
      tokenTypeHint !== 'access_token' &&
      tokenTypeHint !== 'refresh_token'
    ) {
      throw new ConfigurationError('`tokenTypeHint` must be one of undefined, refresh_token, access_token');
    }
    const hint = tokenTypeHint ?? (this.#token === '' ? 'refresh_token' : 'access_token');
    const token = hint === 'access_token' ? this.#token : this.refreshToken;
    if (!token)
      throw new TokenUnavailableError(
        `${tokenTypeHint ?? 'unknown token type'} is not available for revoking`,
      );
    return await this.#client.revokeToken(token, { ...rest, hint });
  }

  /**
   * Calls an API with the token. The location is relative to the site; an absolute one must have an
   * allowed origin.
   * @throws {ConfigurationError} if its origin is not allowed.
   * @throws {ProtectedResourceError} for statuses of 400 and above, unless `throwOnError` is false.
   * @throws {TransportError} if there is no response.
   * @see RFC 6750 §2 https://www.rfc-editor.org/rfc/rfc6750#section-2
   */
  request<T = unknown>(
    method: string,
    location: string,
    options: UnconvertedOptions,
  ): Promise<ApiResponse<T>>;
  request<T = unknown>(
    method: string,
    location: string,
    options?: RequestOptions<Keys>,
  ): Promise<ApiResponse<ParsedKeys<T, Keys>>>;
  request<T = unknown>(
    method: string,
    location: string,
    options?: RequestOptions,
  ): Promise<ApiResponse<ParsedKeys<T, KeyCase>>>;
  async request(method: string, location: string, options: RequestOptions = {}): Promise<ApiResponse> {
    const { settings } = this.#client;
    const url = resolveUrl(settings.site, location);
    assertAllowed(url, settings);
    const withToken = placeToken(options, resolvePlace(this.mode, method), this.#placed());
    return await sendRequest(settings, {
      operation: 'resource',
      method,
      location: url,
      options: withToken,
    });
  }

  /**
   * Calls an API like `fetch`: returns a standard Response of any status, its body unread.
   * Redirects carry no credentials to another origin; the client's time-out ends with the headers.
   * @throws {ConfigurationError} if the origin is not allowed.
   * @throws {TransportError} if there is no response.
   */
  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return await fetchWithToken(this.#client.settings, this.mode, this.#placed(), { input, init });
  }

  /**
   * Everything that `fromHash` needs to restore the token, secrets included. Protect it like a
   * password.
   */
  toStored(): StoredToken {
    return toStoredToken(this, this.#init, this.#expiry.lifetimeSeconds);
  }

  /** Leaves out secrets; only the names of further fields. */
  toJSON(): Record<string, unknown> {
    const { label = DEFAULT_LABEL } = this.#client.settings.redact;
    return {
      token: this.#token && label,
      refreshToken: this.refreshToken && label,
      expiresAt: this.expiresAt,
      params: Object.keys(this.#params),
    };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return { AccessToken: this.toJSON() };
  }

  /** The ID token of a refresh must be for the same user. @see OpenID Connect Core §12.2 */
  async #expectedIdToken(): Promise<IdTokenExpectation> {
    // An ID token from the caller's store is trusted like the tokens beside it.
    const { sub } = this.idTokenClaims ?? (await decodedClaims(this.idToken));
    return { nonce: false, ...(typeof sub === 'string' && { subject: sub }) };
  }

  /**
   * @throws {ConfigurationError} for characters that are not allowed (RFC 6749 §A.12): a runtime's
   * own error would show the token.
   */
  #usableToken(): string {
    const token = this.#token;
    if (token === '') {
      const isRefreshable = this.refreshToken !== undefined;
      throw new TokenUnavailableError(
        isRefreshable ? 'there is only a refresh token: call `refresh()` first' : 'there is no access token',
      );
    }
    if (/^[ -~]+$/.test(token)) return token;
    throw new ConfigurationError(
      'the access token has invalid characters, such as a line break; trim it if it was read from a file',
    );
  }

  #authorization(): string {
    const token = this.#usableToken();
    const { formatHeader, authorizationScheme } = this.#init;
    const problem = tokenTypeProblem(this.tokenType, this.#init);
    if (problem !== undefined) throw new ConfigurationError(problem);
    if (formatHeader !== undefined) return formatHeader(token);
    const scheme = authorizationScheme ?? (this.tokenType?.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer');
    return `${scheme} ${token}`;
  }

  #placed() {
    return {
      token: this.#usableToken(),
      paramName: this.#init.paramName ?? 'access_token',
      authorization: this.#authorization(),
    };
  }
}

/** A token of a client with any options. */
export type AnyAccessToken = AccessToken<JsonObject, KeyCase>;

/** Not a private field, because `accessTokenFactory` may return tokens of another class. */
const idTokenClaims = new WeakMap<object, IdTokenClaims>();

/** Records the claims of the ID token of the same response. */
export function setIdTokenClaims(token: AnyAccessToken, claims: IdTokenClaims | undefined): void {
  if (claims !== undefined) idTokenClaims.set(token, claims);
}

/** Loaded at first use, before the refresh is sent: few tokens are restored with an ID token. */
async function decodedClaims(idToken: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (idToken === undefined) return {};
  const { decodeJwt } = await import('../jwt/decode.ts');
  return decodeJwt(idToken)?.claims ?? {};
}

function asText(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
