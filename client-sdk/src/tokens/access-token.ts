import type { Client } from '../client.ts';
import { ConfigurationError, TokenUnavailableError } from '../errors.ts';
import { formFields } from '../http/body.ts';
import type { RequestOptions, WireParams } from '../http/options.ts';
import { sendRequest } from '../http/request.ts';
import type { ApiResponse } from '../http/response.ts';
import { assertAllowed, resolveUrl } from '../http/url.ts';
import type { IdTokenClaims } from '../id-token-claims.ts';
import type { JsonObject, JsonValue } from '../keys.ts';
import { copyPlain } from '../objects.ts';
import { computeExpiry, type Expiry } from './expiry.ts';
import type { IdTokenExpectation } from './id-token-check.ts';
import type {
  AccessTokenOptions,
  RevokeTokenOptions,
  TokenMode,
  TokenOutcome,
  TokenRequestOptions,
} from './options.ts';
import { requestToken } from './request-token.ts';
import { fetchWithToken, placeToken, resolvePlace } from './send-token.ts';
import { fromFields, type StoredToken, splitStored, toStoredToken } from './stored-token.ts';
import { tokenTypeProblem } from './token-type.ts';

/** What an access token is made with. */
export type AccessTokenInit = AccessTokenOptions & {
  /** Further fields of the token response. */
  readonly params?: JsonObject | undefined;
  /** The response that it came in. */
  readonly response?: ApiResponse | undefined;
};

/**
 * An access token and what it can do: call APIs, refresh itself into a new one, be revoked, be stored. Immutable. Inspection and
 * JSON show no secrets; `toStored()` is the way to keep them.
 */
export class AccessToken<P extends JsonObject = JsonObject> {
  readonly #client: Client<boolean>;
  readonly #token: string;
  readonly #init: AccessTokenInit;
  readonly #expiry: Expiry;
  readonly #params: P;

  /** @throws {TokenUnavailableError} when there is neither a token nor a refresh token, unless the client's `throwOnError` is false. */
  constructor(client: Client<boolean>, token: string, init: AccessTokenInit = {}) {
    this.#client = client;
    this.#token = token;
    this.#init = { ...init, ...(init.mode !== undefined && { mode: copyPlain(init.mode) }) };
    // The fields of a response were parsed for this token; others belong to the caller.
    const params = init.response === undefined ? copyPlain(init.params) : init.params;
    this.#params = Object.freeze(Object.assign(Object.create(null), params));
    if (token === '') {
      client.settings.onWarning?.({ code: 'no_token', message: 'AccessToken has no token' });
      if (!init.refreshToken && client.settings.throwOnError)
        throw new TokenUnavailableError('AccessToken has no token: give a token or a refresh token');
    }
    this.#expiry = computeExpiry(init, client.settings.now());
  }

  /**
   * Makes a token from the fields of a token response or from what `toStored()` gave. Options are honoured inside the object too,
   * under their stored names (`mode`, `param_name`, …).
   * @throws {TokenUnavailableError} when there is neither a token nor a refresh token, unless the client's `throwOnError` is false.
   */
  static fromHash(client: Client<boolean>, hash: object, options: AccessTokenOptions = {}): AccessToken {
    const { fields, stored } = splitStored(hash);
    return fromFields(client, fields, { ...stored, ...options });
  }

  /**
   * Makes a token from form data, such as the fragment of an implicit grant's callback; a leading `?` or `#` is passed over.
   * @throws {TokenUnavailableError} when there is neither a token nor a refresh token, unless the client's `throwOnError` is false.
   */
  static fromForm(
    client: Client<boolean>,
    form: string | URLSearchParams | URL,
    options: AccessTokenOptions = {},
  ): AccessToken {
    const text = form instanceof URL ? form.hash || form.search : form;
    const pairs = typeof text === 'string' ? new URLSearchParams(text.replace(/^[?#]/, '')) : text;
    return fromFields(client, formFields(pairs), options);
  }

  /** Tells a token from a TokenFailure. */
  get ok(): true {
    return true;
  }

  /** The access token itself; `''` where there is only a refresh token, or none with `throwOnError: false`. */
  get token(): string {
    return this.#token;
  }

  get refreshToken(): string | undefined {
    return this.#init.refreshToken || undefined;
  }

  /** Seconds from its issue to its expiry, as the server said; 0 means never. */
  get expiresIn(): number | undefined {
    return this.#expiry.expiresIn;
  }

  /** Epoch seconds, the latency taken off. */
  get expiresAt(): number | undefined {
    return this.#expiry.expiresAt;
  }

  /** Seconds by which it counts as expired earlier. */
  get expiresLatency(): number | undefined {
    return this.#expiry.expiresLatency;
  }

  get tokenType(): string | undefined {
    return textOf(this.#params.token_type ?? this.#params.tokenType);
  }

  /** What it is good for; undefined when the server did not say, which means as asked for. @see RFC 6749 §3.3 */
  get scope(): readonly string[] | undefined {
    return textOf(this.#params.scope)?.split(' ').filter(Boolean);
  }

  /**
   * The ID token beside it. Validated when it came from a token request of a client with `issuer` and `jwksUri`: then
   * `idTokenClaims` are its claims. What was restored with `fromHash` or `fromForm` is not validated.
   */
  get idToken(): string | undefined {
    return textOf(this.#params.id_token ?? this.#params.idToken);
  }

  /** The claims of the validated ID token; a refresh without a new one keeps them. Undefined where none was validated. */
  get idTokenClaims(): IdTokenClaims | undefined {
    return idTokenClaims.get(this);
  }

  /** The further fields of the token response. */
  get params(): Readonly<P> {
    return this.#params;
  }

  /** The response that it came in; undefined for a restored one. */
  get response(): ApiResponse | undefined {
    return this.#init.response;
  }

  /** Where the token travels. */
  get mode(): TokenMode {
    return this.#init.mode ?? 'header';
  }

  /** The client that it belongs to. */
  get client(): Client<boolean> {
    return this.#client;
  }

  /** One of the further fields of the token response, under the name it came with (snake_case by default). */
  param(name: string): JsonValue | undefined {
    return this.#params[name];
  }

  /** Whether it expires at all. */
  get expires(): boolean {
    return this.#expiry.expiresAt !== undefined;
  }

  /** Whether it has expired; at the very second it has. `now` is in epoch seconds. */
  expired(now: number = this.#client.settings.now()): boolean {
    const { expiresAt } = this.#expiry;
    return expiresAt !== undefined && expiresAt <= Math.floor(now);
  }

  /** Whether it will have expired so many seconds from now. */
  expiresWithin(seconds: number): boolean {
    return this.expired(this.#client.settings.now() + seconds);
  }

  /** The headers that carry it. */
  headers(): { readonly authorization: string } {
    return { authorization: this.#authorization() };
  }

  /**
   * Gets a new token by the refresh token. The new one keeps this one's options, and its refresh token unless the server sent another.
   * This one stays as it is, also when that fails.
   * @throws {TokenUnavailableError} when there is no refresh token.
   * @throws {TokenResponseError} when the server refuses; unless `throwOnError: false` is given here.
   * @see RFC 6749 §6 https://www.rfc-editor.org/rfc/rfc6749#section-6
   */
  async refresh<T extends boolean = true>(
    params: WireParams = {},
    options: TokenRequestOptions<T> = {},
  ): Promise<TokenOutcome<T>> {
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
      // What the types promise is what happens: a token or a throw, whatever the client's own default is.
      { throwOnError: true, ...kept, ...options },
      { refreshToken, idTokenClaims: this.idTokenClaims, idToken: await this.#expectedIdToken() },
    );
    if (outcome.ok)
      hooks.onRefresh?.({ expiresAt: outcome.expiresAt, rotated: outcome.refreshToken !== refreshToken });
    // `throwOnError` decides which of the two it can be.
    return outcome as TokenOutcome<T>;
  }

  /**
   * Revokes the access token, or the refresh token where that is asked for or all there is.
   * @throws {ConfigurationError} when the hint is neither.
   * @throws {TokenUnavailableError} when there is no such token.
   * @throws {RevocationError} when the server refuses: the token must be taken for alive.
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
   * Calls an API with the token. The location is relative to the site; an absolute one must be of an allowed origin.
   * @throws {ConfigurationError} when its origin is not allowed.
   * @throws {ProtectedResourceError} for statuses of 400 and above, unless `throwOnError` is false.
   * @throws {TransportError} when no answer came.
   * @see RFC 6750 §2 https://www.rfc-editor.org/rfc/rfc6750#section-2
   */
  async request<T = unknown>(
    method: string,
    location: string,
    options: RequestOptions = {},
  ): Promise<ApiResponse<T>> {
    const { settings } = this.#client;
    const url = resolveUrl(settings.site, location);
    assertAllowed(url, settings);
    const withToken = placeToken(options, resolvePlace(this.mode, method), this.#placed());
    return await sendRequest<T>(settings, {
      operation: 'resource',
      method,
      location: url,
      options: withToken,
    });
  }

  /** @see {@link AccessToken.request} */
  async get<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<T>> {
    return await this.request<T>('GET', location, options);
  }

  /** @see {@link AccessToken.request} */
  async post<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<T>> {
    return await this.request<T>('POST', location, options);
  }

  /** @see {@link AccessToken.request} */
  async put<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<T>> {
    return await this.request<T>('PUT', location, options);
  }

  /** @see {@link AccessToken.request} */
  async patch<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<T>> {
    return await this.request<T>('PATCH', location, options);
  }

  /** @see {@link AccessToken.request} */
  async delete<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<T>> {
    return await this.request<T>('DELETE', location, options);
  }

  /**
   * Calls an API as `fetch` does: a standard Response of any status, its body unread. Redirects leave no credential behind on another
   * origin; the client's time-out ends with the headers.
   * @throws {ConfigurationError} when the origin is not allowed.
   * @throws {TransportError} when no answer came.
   */
  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return await fetchWithToken(this.#client.settings, this.mode, this.#placed(), { input, init });
  }

  /** Everything needed to make this token again with `fromHash`, secrets included: keep it as you keep a password. */
  toStored(): StoredToken {
    return toStoredToken(this, this.#init);
  }

  /** What is safe to print: of the further fields only the names. */
  toJSON(): Record<string, unknown> {
    const { label = '[FILTERED]' } = this.#client.settings.redact;
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

  /** @throws {ConfigurationError} for what no token is (RFC 6749 §A.12): a runtime's own error would show it. */
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
      'the access token holds characters that no token has, such as a line break: was it read from a file with its end of line?',
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

/** Outside of the class, for what a factory makes may be a token of another kind. */
const idTokenClaims = new WeakMap<object, IdTokenClaims>();

/** Notes the claims of the ID token that came with a token. */
export function setIdTokenClaims(token: AccessToken, claims: IdTokenClaims | undefined): void {
  if (claims !== undefined) idTokenClaims.set(token, claims);
}

/** Loaded at first use, before the refresh is sent: few tokens are restored with an ID token. */
async function decodedClaims(idToken: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (idToken === undefined) return {};
  const { decodeJwt } = await import('../jwt/decode.ts');
  return decodeJwt(idToken)?.claims ?? {};
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
