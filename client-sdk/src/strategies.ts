import type { AuthorizationFlow } from './authorization/flow.ts';
import type { Client } from './client.ts';
import { ConfigurationError } from './errors.ts';
import type { WireParams } from './http/options.ts';
import type { JwsAlgorithm } from './jwt/algorithms.ts';
import type { KeyInput } from './jwt/import-key.ts';
import type { IdTokenExpectation } from './tokens/id-token-check.ts';
import type { TokenOutcome, TokenRequestOptions } from './tokens/options.ts';
import { requestToken } from './tokens/request-token.ts';

/**
 * Gives a grant that no browser takes part in an `authorizationUrl` that says so. It is not in the type: it is for callers without
 * types, who would else read that undefined is not a function.
 */
function withoutAuthorizationUrl<Strategy extends object>(grant: string, strategy: Strategy): Strategy {
  const authorizationUrl = (): never => {
    throw new ConfigurationError(`the ${grant} grant has no authorization URL: no browser takes part in it`);
  };
  return { ...strategy, authorizationUrl };
}

/** The claims of an assertion; they are sent as they are. `exp` is in epoch seconds. */
export type AssertionClaims = {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: string | readonly string[];
  readonly exp?: number;
  readonly [claim: string]: unknown;
};

/** How an assertion is signed. */
export type AssertionSigning = {
  readonly algorithm: JwsAlgorithm;
  readonly key: KeyInput;
  readonly kid?: string;
};

/** The three together, as callers of the library this one follows know them. */
export type AssertionTuple = readonly [claims: AssertionClaims, algorithm: JwsAlgorithm, key: KeyInput];

/** The arguments in either form. */
type AssertionArguments<T extends boolean> =
  | [
      claims: AssertionClaims,
      signing: AssertionSigning,
      params?: WireParams | undefined,
      options?: TokenRequestOptions<T> | undefined,
    ]
  | [tuple: AssertionTuple, params?: WireParams | undefined, options?: TokenRequestOptions<T> | undefined];

/** The JWT bearer grant. */
export type AssertionStrategy<Throws extends boolean = boolean> = {
  /** Signs the claims and exchanges the assertion for a token. */
  readonly getToken: {
    <T extends boolean = Throws>(
      claims: AssertionClaims,
      signing: AssertionSigning,
      params?: WireParams,
      options?: TokenRequestOptions<T>,
    ): Promise<TokenOutcome<T>>;
    <T extends boolean = Throws>(
      tuple: AssertionTuple,
      params?: WireParams,
      options?: TokenRequestOptions<T>,
    ): Promise<TokenOutcome<T>>;
  };
};

/** Makes the JWT bearer grant of a client. @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1 */
export function assertionStrategy<Throws extends boolean>(client: Client<Throws>): AssertionStrategy<Throws> {
  async function getToken<T extends boolean = Throws>(
    ...args: AssertionArguments<T>
  ): Promise<TokenOutcome<T>> {
    const { params, options } = await assertionRequest(args);
    return await client.getToken<T>(params, options);
  }
  return withoutAuthorizationUrl('assertion', { getToken });
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** A token request with a signed assertion, and its options. */
type AssertionRequest<T extends boolean> = {
  readonly params: WireParams;
  readonly options: TokenRequestOptions<T> | undefined;
};

/**
 * Signs an assertion and puts it into the parameters of a token request.
 * @throws {ConfigurationError} when algorithm or key are missing, or do not fit each other.
 */
async function assertionRequest<T extends boolean>(
  args: AssertionArguments<T>,
): Promise<AssertionRequest<T>> {
  const { claims, signing, params, options } = named(args);
  // Callers without types leave it out, or pass what they passed elsewhere.
  if (typeof signing !== 'object' || signing === null || !signing.algorithm || !signing.key) {
    throw new ConfigurationError('the assertion grant signs: give { algorithm, key } beside the claims');
  }
  const { algorithm, key, kid } = signing;
  const { signJwt } = await import('./jwt/sign.ts');
  const assertion = await signJwt(claims, { algorithm, key, keyId: kid });
  return { params: { grant_type: JWT_BEARER, assertion, ...params }, options };
}

type NamedArguments<T extends boolean> = {
  readonly claims: AssertionClaims;
  readonly signing: AssertionSigning | null | undefined;
  readonly params: WireParams | undefined;
  readonly options: TokenRequestOptions<T> | undefined;
};

function named<T extends boolean>(args: AssertionArguments<T>): NamedArguments<T> {
  if (!isTupleForm(args)) return { claims: args[0], signing: args[1], params: args[2], options: args[3] };
  const [[claims, algorithm, key], params, options] = args;
  return { claims, signing: { algorithm, key }, params, options };
}

function isTupleForm<T extends boolean>(
  args: AssertionArguments<T>,
): args is Extract<AssertionArguments<T>, [readonly unknown[], ...unknown[]]> {
  return Array.isArray(args[0]);
}

/**
 * The parameters of an authorization request; the caller's win.
 * @throws {ConfigurationError} without a client id.
 */
function authorizationParams(
  client: Client<boolean>,
  responseType: string,
  params: WireParams = {},
): WireParams {
  if (client.clientId === undefined && params.client_id === undefined) {
    throw new ConfigurationError('an authorization URL names the client: set `clientId`');
  }
  return { response_type: responseType, client_id: client.clientId, ...params };
}

/** The authorization code grant. */
export type AuthCodeStrategy<Throws extends boolean = boolean> = AuthorizationFlow<Throws> & {
  /** The URL to send the browser to; `response_type` is `code`. State, nonce and PKCE are the caller's: see `startAuthorization`. */
  readonly authorizationUrl: (params?: WireParams) => string;
  /**
   * Exchanges a code. `redirect_uri` is the client's unless given; `code_verifier` goes with PKCE. An ID token is checked where the
   * client can, all but its `nonce`, which is not known here: use `completeAuthorization`.
   */
  readonly getToken: <T extends boolean = Throws>(
    code: string,
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T>>;
};

/** Makes the authorization code grant of a client. @see RFC 6749 §4.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1 */
export function authCodeStrategy<Throws extends boolean>(client: Client<Throws>): AuthCodeStrategy<Throws> {
  const { redirectUri, issuer, authorizationResponseIssParameterSupported: issuerRequired } = client.settings;

  function authorizationUrl(params?: WireParams): string {
    return client.authorizationUrl(authorizationParams(client, 'code', params));
  }

  async function redeem<T extends boolean = Throws>(
    code: string,
    params?: WireParams,
    options: TokenRequestOptions<T> = {},
    idToken?: IdTokenExpectation,
  ): Promise<TokenOutcome<T>> {
    const all = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, ...params };
    return await requestToken<T>(client, all, options, { idToken });
  }

  // Loaded at its first use: most services never send a user anywhere. One flow for all calls, since it remembers used states.
  let loaded: AuthorizationFlow<Throws> | undefined;
  async function flow(): Promise<AuthorizationFlow<Throws>> {
    const { createAuthorizationFlow } = await import('./authorization/flow.ts');
    loaded ??= createAuthorizationFlow<Throws>({
      ...{ redirectUri, issuer, issuerRequired, authorizationUrl, redeem },
      idTokenValidator: () => client.idTokenValidator(),
    });
    return loaded;
  }

  return {
    authorizationUrl,
    getToken: (code, params, options) => redeem(code, params, options),
    startAuthorization: async (params, options) => await (await flow()).startAuthorization(params, options),
    completeAuthorization: async (callback, transaction, options) =>
      await (await flow()).completeAuthorization(callback, transaction, options),
  };
}

/** The client credentials grant. */
export type ClientCredentialsStrategy<Throws extends boolean = boolean> = {
  /** Gets a token for the client itself; parameters such as `scope`, `audience` or `resource` say for what. */
  readonly getToken: <T extends boolean = Throws>(
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T>>;
};

/** Makes the client credentials grant of a client. @see RFC 6749 §4.4 https://www.rfc-editor.org/rfc/rfc6749#section-4.4 */
export function clientCredentialsStrategy<Throws extends boolean>(
  client: Client<Throws>,
): ClientCredentialsStrategy<Throws> {
  return withoutAuthorizationUrl('client credentials', {
    getToken: (params, options) => client.getToken({ ...params, grant_type: 'client_credentials' }, options),
  });
}

/** The implicit grant. The token comes in the callback's fragment: read it with `AccessToken.fromForm`. */
export type ImplicitStrategy = {
  /** The URL to send the browser to; `response_type` is `token`. */
  readonly authorizationUrl: (params?: WireParams) => string;
};

/** Makes the implicit grant of a client. @see RFC 6749 §4.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.2 */
export function implicitStrategy(client: Client<boolean>): ImplicitStrategy {
  const strategy = {
    authorizationUrl: (params?: WireParams) => {
      client.settings.onWarning?.({
        code: 'implicit_grant',
        message: 'OAuth 2.1 omits the implicit grant; use the authorization code with PKCE',
      });
      return client.authorizationUrl(authorizationParams(client, 'token', params));
    },
    // Not in the type: for callers without types, who would else read that undefined is not a function.
    getToken: () => {
      throw new ConfigurationError(
        'the implicit grant has no token request: read its callback by AccessToken.fromForm',
      );
    },
  };
  return strategy;
}

/** The resource owner password grant. */
export type PasswordStrategy<Throws extends boolean = boolean> = {
  /** Gets a token with the user's own credentials. */
  readonly getToken: <T extends boolean = Throws>(
    username: string,
    password: string,
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T>>;
};

/** Makes the password grant of a client. @see RFC 6749 §4.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.3 */
export function passwordStrategy<Throws extends boolean>(client: Client<Throws>): PasswordStrategy<Throws> {
  return withoutAuthorizationUrl('password', {
    getToken: (username, password, params, options) =>
      client.getToken({ grant_type: 'password', username, password, ...params }, options),
  });
}
