import type { ClientAuthContext, ClientAuthFunction } from './client-auth/methods.ts';
import { clientAuthName, encodingHint, resolveClientAuth, selectClientAuth } from './client-auth/option.ts';
import type { ClientOptions, TokenMethod } from './client-options.ts';
import { ConfigurationError } from './errors.ts';
import type { Operation } from './hooks.ts';
import { exchange } from './http/exchange.ts';
import {
  type RequestOptions,
  requestOptionNames,
  type UnconvertedOptions,
  type WireParams,
} from './http/options.ts';
import { proofAlgorithm } from './http/proofs.ts';
import { type EndpointRequest, prepareEndpointRequest, withoutQuery } from './http/request.ts';
import type { ApiResponse } from './http/response.ts';
import { sendRequest } from './http/send-request.ts';
import { assertSecure, oauthParams, resolveUrl, withQuery } from './http/url.ts';
import type { IdTokenValidator } from './id-token/id-token.ts';
import type { KeyCase, ParsedKeys } from './key-case.ts';
import { copyPlain } from './objects.ts';
import { assertKnownOptions } from './option-names.ts';
import { assertSupported } from './server-support.ts';
import { type ClientSettings, resolveSettings } from './settings.ts';
import {
  type AssertionStrategy,
  type AuthCodeStrategy,
  assertionStrategy,
  authCodeStrategy,
  type ClientCredentialsStrategy,
  clientCredentialsStrategy,
  type ImplicitStrategy,
  implicitStrategy,
  type PasswordStrategy,
  passwordStrategy,
} from './strategies.ts';
import type { RevokeOptions, TokenOutcome, TokenRequestOptions } from './tokens/options.ts';
import { requestToken } from './tokens/request-token.ts';

/**
 * An OAuth 2.0 client: builds authorization URLs, gets, refreshes and revokes tokens, and calls
 * APIs. Immutable. Inspection, JSON, errors and logs do not show its secret.
 *
 * @example
 * // If the server has metadata, `discoverClient` of `./discovery` finds the endpoints.
 * const client = new Client({
 *   clientId: 'app',
 *   clientSecret,
 *   site: 'https://api.example.com',
 *   tokenEndpoint: 'https://auth.example.com/oauth2/token',
 * });
 * const token = await client.clientCredentials.getToken({ scope: 'read' });
 * const response = await token.get('/me');
 */
export class Client<Throws extends boolean = true, Keys extends KeyCase = 'snake'> {
  readonly #clientSecret: string | undefined;
  readonly #authName: string;
  readonly #authenticate: ClientAuthFunction;
  readonly #authContext: ClientAuthContext;
  #tokenUrl: string | undefined;
  #idTokenValidator: IdTokenValidator | undefined;
  /** The options with their defaults, without the credentials. */
  readonly settings: ClientSettings;
  /** Whether failures throw, unless the call says otherwise. */
  readonly throwOnError: Throws;
  /** Authorization code grant. @see RFC 6749 §4.1 */
  readonly authCode: AuthCodeStrategy<Throws, Keys>;
  /** Implicit grant, for legacy servers: OAuth 2.1 omits it. @see RFC 6749 §4.2 */
  readonly implicit: ImplicitStrategy;
  /** Resource owner password grant, for legacy servers: OAuth 2.1 omits it. @see RFC 6749 §4.3 */
  readonly password: PasswordStrategy<Throws, Keys>;
  /** Client credentials grant. @see RFC 6749 §4.4 */
  readonly clientCredentials: ClientCredentialsStrategy<Throws, Keys>;
  /** JWT bearer grant. @see RFC 7523 §2.1 */
  readonly assertion: AssertionStrategy<Throws, Keys>;

  /** @throws {ConfigurationError} naming every invalid option. */
  constructor(options: ClientOptions<Throws, Keys> = {}) {
    const settings = resolveSettings(options);
    this.settings = settings;
    // The type parameter is the option's type.
    this.throwOnError = settings.throwOnError as Throws;
    this.#clientSecret = options.clientSecret;
    const auth = copyPlain(selectClientAuth(options));
    this.#authName = clientAuthName(auth);
    this.#authenticate = resolveClientAuth(auth, options.clientSecret, settings.basicEncoding);
    assertProofAlgorithm(settings);
    const tokenEndpoint = (): string => this.#tokenEndpoint();
    this.#authContext = {
      clientId: settings.clientId,
      issuer: settings.issuer,
      // Resolved on use: a client may have no token endpoint.
      get tokenEndpoint() {
        return tokenEndpoint();
      },
      now: () => settings.now() + settings.clockSkew,
    };
    this.authCode = authCodeStrategy(this);
    this.implicit = implicitStrategy(this);
    this.password = passwordStrategy(this);
    this.clientCredentials = clientCredentialsStrategy(this);
    this.assertion = assertionStrategy(this);
  }

  get clientId(): string | undefined {
    return this.settings.clientId;
  }

  /**
   * The absolute URL of the authorization endpoint with these parameters.
   * @throws {ConfigurationError} if it cannot be made absolute, is plain http (see
   * `allowInsecure`), the parameters contain `client_secret`, or the server accepts only pushed
   * requests and they have no `request_uri`.
   */
  authorizationUrl(params: WireParams = {}): string {
    if (Object.hasOwn(params, 'client_secret')) {
      throw new ConfigurationError(
        '`client_secret` must not be in an authorization URL: browsers and logs would see it',
      );
    }
    const { authorizationEndpoint, redirectUri, allowInsecure } = this.settings;
    if (this.settings.requirePushedAuthorizationRequests && !params.request_uri) {
      throw new ConfigurationError(
        'the authorization server accepts only pushed requests (RFC 9126): use `authCode.startAuthorization`, or `pushAuthorizationRequest` of `./par`',
      );
    }
    const url = this.#url(
      authorizationEndpoint,
      redirectUri === undefined ? params : { redirect_uri: redirectUri, ...params },
    );
    assertSecure(url, allowInsecure, "the user's credentials");
    return url;
  }

  /** The absolute URL of the token endpoint with these parameters. */
  tokenUrl(params?: WireParams): string {
    return this.#url(this.settings.tokenEndpoint, params);
  }

  /** The absolute URL of the revocation endpoint with these parameters. */
  revocationUrl(params?: WireParams): string {
    return this.#url(this.settings.revocationEndpoint, params);
  }

  /** Resolves a location against the site. */
  url(location: string): string {
    return resolveUrl(this.settings.site, location);
  }

  /**
   * Sends a token request and makes an AccessToken from the response. Parameters have their wire
   * names; null and undefined are not sent.
   * @throws {TokenResponseError} if the server refuses or its response has no token; with
   * `throwOnError: false` it is returned in a TokenFailure.
   * @throws {TransportError} if there is no response.
   * @see RFC 6749 §5 https://www.rfc-editor.org/rfc/rfc6749#section-5
   */
  getToken<T extends boolean = Throws>(
    params: WireParams = {},
    options: TokenRequestOptions<T> = {},
  ): Promise<TokenOutcome<T, Keys>> {
    return requestToken(this, params, options);
  }

  /**
   * Revokes a token, with the parameters in a form unless `tokenMethod` says otherwise.
   * @throws {RevocationError} if the server refuses: the token must be considered valid.
   * @see RFC 7009 §2.1 https://www.rfc-editor.org/rfc/rfc7009#section-2.1
   */
  async revokeToken(token: string, options: RevokeOptions = {}): Promise<ApiResponse> {
    const { hint, params, tokenMethod, ...rest } = options;
    const response = await this.send({
      operation: 'revocation',
      endpoint: this.settings.revocationEndpoint,
      params: { token, token_type_hint: hint, ...params },
      tokenMethod,
      options: rest,
    });
    if (response.error === undefined) this.settings.hooks.onRevoke?.({ hint });
    return response;
  }

  /**
   * Sends a request without an access token. Locations are relative to the site. The type of
   * `parsed` is `T` with its keys in snake_case, unless `keyCase` preserves them.
   * @throws {OAuthError} for statuses of 400 and above, unless `throwOnError` is false.
   * @throws {TransportError} if there is no response.
   */
  async request<T = unknown>(
    method: string,
    location: string,
    options: UnconvertedOptions,
  ): Promise<ApiResponse<T>>;
  async request<T = unknown>(
    method: string,
    location: string,
    options?: RequestOptions<Keys>,
  ): Promise<ApiResponse<ParsedKeys<T, Keys>>>;
  async request<T = unknown>(
    method: string,
    location: string,
    options?: RequestOptions,
  ): Promise<ApiResponse<ParsedKeys<T, KeyCase>>>;
  async request(method: string, location: string, options: RequestOptions = {}): Promise<ApiResponse> {
    return await sendRequest(this.settings, { operation: 'request', method, location, options });
  }

  /**
   * Sends an authenticated request to an endpoint of the authorization server.
   * @throws {OAuthError} of the operation's class, unless `throwOnError` is false.
   */
  async send(request: EndpointRequest): Promise<ApiResponse> {
    const { settings } = this;
    const { operation, params, options = {} } = request;
    // The options of a token request are checked before.
    if (operation !== 'token') assertKnownOptions('a request', options, requestOptionNames);
    const url =
      request.endpoint === settings.tokenEndpoint ? this.#tokenEndpoint() : this.url(request.endpoint);
    const tokenMethod = request.tokenMethod ?? defaultMethod(operation, settings.tokenMethod);
    const secret = this.#clientSecret;
    return await exchange(settings, {
      context: {
        operation,
        grantType: typeof params.grant_type === 'string' ? params.grant_type : undefined,
        clientAuth: request.authenticate === false ? undefined : this.#authName,
        method: tokenMethod === 'get' ? 'GET' : 'POST',
        url: withoutQuery(url),
        signal: options.signal,
      },
      options,
      prepare: () =>
        prepareEndpointRequest(
          settings,
          { url, request, tokenMethod },
          { auth: this.#authenticate, client: this.#authContext },
        ),
      isBoundToOrigin: true,
      secrets: secret === undefined ? [] : [secret],
      hint: (code) => this.#hint(code),
    });
  }

  /**
   * Whether the client can validate ID tokens: it has `issuer`, `clientId`, and `jwksUri` or a
   * secret for HMAC.
   */
  get canValidateIdTokens(): boolean {
    const { issuer, clientId, jwksUri, idTokenSignedResponseAlg: algorithm } = this.settings;
    const keys = algorithm?.startsWith('HS') === true ? this.#clientSecret : jwksUri;
    return issuer !== undefined && clientId !== undefined && keys !== undefined;
  }

  /**
   * The validator for this client's ID tokens, which caches the issuer's keys.
   * @throws {ConfigurationError} unless `canValidateIdTokens`.
   */
  async idTokenValidator(): Promise<IdTokenValidator> {
    if (!this.canValidateIdTokens) {
      throw new ConfigurationError(
        'scope `openid` requests an ID token, which must be validated: set `clientId`, `issuer` and `jwksUri` (discoverClient sets the last two), or give completeAuthorization a `validateIdToken`',
      );
    }
    const { createIdTokenValidator } = await import('./id-token/id-token.ts');
    const secret = this.#clientSecret;
    this.#idTokenValidator ??= createIdTokenValidator({
      client: this,
      ...(secret !== undefined && { clientSecret: secret }),
    });
    return this.#idTokenValidator;
  }

  /** Leaves out secrets. */
  toJSON(): Record<string, unknown> {
    const { clientId, site, issuer, tokenEndpoint } = this.settings;
    return { clientId, site, issuer, tokenEndpoint, clientAuth: this.#authName };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return { Client: this.toJSON() };
  }

  #hint(code: string | undefined): string | undefined {
    if (code !== 'invalid_client' || this.#authName !== 'client_secret_basic') return undefined;
    const { clientId = '', basicEncoding } = this.settings;
    return encodingHint(clientId, this.#clientSecret ?? '', basicEncoding);
  }

  /** Cached: it is part of every token request. */
  #tokenEndpoint(): string {
    this.#tokenUrl ??= this.url(this.settings.tokenEndpoint);
    return this.#tokenUrl;
  }

  #url(endpoint: string, params: WireParams | undefined): string {
    const url = this.url(endpoint);
    return params === undefined ? url : withQuery(url, oauthParams(params), this.settings.arrayFormat);
  }
}

/** @see RFC 9449 §5.1 https://www.rfc-editor.org/rfc/rfc9449#section-5.1 */
function assertProofAlgorithm(settings: ClientSettings): void {
  const name = proofAlgorithm(settings.fetch);
  if (name === undefined) return;
  const remedy = 'use a DPoP key of generateDpopKey(metadata.dpop_signing_alg_values_supported)';
  assertSupported(settings, 'dpopSigningAlgValuesSupported', { name, remedy });
}

/** A client with any options. */
export type AnyClient = Client<boolean, KeyCase>;

/** `tokenMethod` of the client applies to these two endpoints; the others accept only forms. */
function defaultMethod(operation: Operation, tokenMethod: TokenMethod): TokenMethod {
  return operation === 'token' || operation === 'revocation' ? tokenMethod : 'post';
}
