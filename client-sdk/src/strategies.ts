import type { AuthorizationFlow } from './authorization.ts';
import type { AnyClient, Client } from './client.ts';
import { ConfigurationError } from './errors.ts';
import type { WireParams } from './http/options.ts';
import type { JwsAlgorithm } from './jwt/algorithms.ts';
import type { KeyInput } from './jwt/import-key.ts';
import type { SignFunction } from './jwt/sign.ts';
import type { KeyCase } from './key-case.ts';
import { isObject } from './objects.ts';
import type { IdTokenExpectation } from './tokens/id-token-check.ts';
import type { TokenOutcome, TokenRequestOptions } from './tokens/options.ts';
import { requestToken } from './tokens/request-token.ts';

/** The authorization code grant. */
export type AuthCodeStrategy<
  Throws extends boolean = boolean,
  Keys extends KeyCase = 'snake',
> = AuthorizationFlow<Throws, Keys> & {
  /**
   * The URL to send the browser to, with `response_type=code`. Without state, nonce and PKCE: see
   * `startAuthorization`.
   */
  readonly authorizationUrl: (params?: WireParams) => string;
  /**
   * Exchanges a code. `redirect_uri` defaults to the client's; `code_verifier` is sent with PKCE.
   * An ID token is validated if the client can, except for its `nonce`, which is not known here:
   * use `completeAuthorization`.
   */
  readonly getToken: <T extends boolean = Throws>(
    code: string,
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T, Keys>>;
};

/**
 * The implicit grant. The token is in the callback's fragment: read it with `AccessToken.fromForm`.
 */
export type ImplicitStrategy = {
  /** The URL to send the browser to, with `response_type=token`. */
  readonly authorizationUrl: (params?: WireParams) => string;
};

/** The resource owner password grant. */
export type PasswordStrategy<Throws extends boolean = boolean, Keys extends KeyCase = 'snake'> = {
  /** Gets a token with the user's own credentials. */
  readonly getToken: <T extends boolean = Throws>(
    username: string,
    password: string,
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T, Keys>>;
};

/** The client credentials grant. */
export type ClientCredentialsStrategy<Throws extends boolean = boolean, Keys extends KeyCase = 'snake'> = {
  /**
   * Gets a token for the client itself. `scope`, `audience` or `resource` limit what it is valid
   * for.
   */
  readonly getToken: <T extends boolean = Throws>(
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T, Keys>>;
};

/** The claims of an assertion, which are sent unchanged. `exp` is in epoch seconds. */
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
  readonly key: KeyInput | SignFunction;
  readonly kid?: string;
};

/** Claims and signing in one tuple, as in the oauth2 gem. */
export type AssertionTuple = readonly [claims: AssertionClaims, algorithm: JwsAlgorithm, key: KeyInput];

/** The JWT bearer grant. */
export type AssertionStrategy<Throws extends boolean = boolean, Keys extends KeyCase = 'snake'> = {
  /** Signs the claims and exchanges the assertion for a token. */
  readonly getToken: {
    <T extends boolean = Throws>(
      claims: AssertionClaims,
      signing: AssertionSigning,
      params?: WireParams,
      options?: TokenRequestOptions<T>,
    ): Promise<TokenOutcome<T, Keys>>;
    <T extends boolean = Throws>(
      tuple: AssertionTuple,
      params?: WireParams,
      options?: TokenRequestOptions<T>,
    ): Promise<TokenOutcome<T, Keys>>;
  };
};

/** The arguments of the assertion grant in either form. */
type AssertionArguments<T extends boolean> =
  | [
      claims: AssertionClaims,
      signing: AssertionSigning,
      params?: WireParams | undefined,
      options?: TokenRequestOptions<T> | undefined,
    ]
  | [tuple: AssertionTuple, params?: WireParams | undefined, options?: TokenRequestOptions<T> | undefined];

/** @see RFC 6749 §4.1 https://www.rfc-editor.org/rfc/rfc6749#section-4.1 */
export function authCodeStrategy<Throws extends boolean, Keys extends KeyCase>(
  client: Client<Throws, Keys>,
): AuthCodeStrategy<Throws, Keys> {
  const usedStates = new Set<string>();
  // Loaded at first use: most services never redirect a user.
  const flow = () => import('./authorization.ts');
  return {
    authorizationUrl: (params) => authorizationUrl(client, 'code', params),
    getToken: (code, params, options) => redeemCode(client, { code, params }, options),
    async startAuthorization(params = {}, options) {
      if (client.settings.requirePushedAuthorizationRequests) {
        const { startPushedAuthorization } = await import('./par.ts');
        const { url, transaction } = await startPushedAuthorization(client, params, options);
        return { url, transaction };
      }
      const { prepareAuthorization } = await flow();
      const prepared = await prepareAuthorization(client.settings, params, options);
      return { url: authorizationUrl(client, 'code', prepared.params), transaction: prepared.transaction };
    },
    async completeAuthorization(callback, transaction, options = {}) {
      const { checkCompletion } = await flow();
      const checked = await checkCompletion(client, { callback, transaction, options }, usedStates);
      const { params: _p, issuerRequired: _i, validateIdToken: _v, ...tokenOptions } = options;
      return await redeemCode(client, checked, tokenOptions);
    },
  };
}

/** @see RFC 6749 §4.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.2 */
export function implicitStrategy(client: AnyClient): ImplicitStrategy {
  const strategy = {
    authorizationUrl: (params?: WireParams) => {
      client.settings.onWarning?.({
        code: 'implicit_grant',
        message: 'OAuth 2.1 omits the implicit grant; use the authorization code with PKCE',
      });
      return authorizationUrl(client, 'token', params);
    },
    // The type lacks it: this is a clear error for callers without types.
    getToken: () => {
      throw new ConfigurationError(
        'the implicit grant has no token request: read its callback by AccessToken.fromForm',
      );
    },
  };
  return strategy;
}

/** @see RFC 6749 §4.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.3 */
export function passwordStrategy<Throws extends boolean, Keys extends KeyCase>(
  client: Client<Throws, Keys>,
): PasswordStrategy<Throws, Keys> {
  return withoutAuthorizationUrl('password', {
    getToken: (username, password, params, options) =>
      client.getToken({ grant_type: 'password', username, password, ...params }, options),
  });
}

/** @see RFC 6749 §4.4 https://www.rfc-editor.org/rfc/rfc6749#section-4.4 */
export function clientCredentialsStrategy<Throws extends boolean, Keys extends KeyCase>(
  client: Client<Throws, Keys>,
): ClientCredentialsStrategy<Throws, Keys> {
  return withoutAuthorizationUrl('client credentials', {
    getToken: (params, options) => client.getToken({ ...params, grant_type: 'client_credentials' }, options),
  });
}

/** @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1 */
export function assertionStrategy<Throws extends boolean, Keys extends KeyCase>(
  client: Client<Throws, Keys>,
): AssertionStrategy<Throws, Keys> {
  async function getToken<T extends boolean = Throws>(
    ...args: AssertionArguments<T>
  ): Promise<TokenOutcome<T, Keys>> {
    const [claims, signing, params, options] = isTupleForm(args)
      ? ([args[0][0], { algorithm: args[0][1], key: args[0][2] }, args[1], args[2]] as const)
      : args;
    if (!isSigning(signing)) {
      throw new ConfigurationError('the assertion grant needs { algorithm, key } after the claims');
    }
    const { signAssertion } = await import('./client-auth/assertion.ts');
    const assertion = await signAssertion(claims, signing);
    const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion };
    return await client.getToken<T>({ ...grant, ...params }, options);
  }
  return withoutAuthorizationUrl('assertion', { getToken });
}

function isTupleForm<T extends boolean>(
  args: AssertionArguments<T>,
): args is Extract<AssertionArguments<T>, [readonly unknown[], ...unknown[]]> {
  return Array.isArray(args[0]);
}

/** Callers without types may omit it, or a part of it. */
function isSigning(signing: unknown): signing is AssertionSigning {
  return isObject(signing) && !!signing.algorithm && !!signing.key;
}

/**
 * The authorization endpoint's URL; the caller's parameters take precedence. @throws
 * {ConfigurationError} without a client id.
 */
function authorizationUrl(client: AnyClient, responseType: string, params: WireParams = {}): string {
  if (client.clientId === undefined && params.client_id === undefined) {
    throw new ConfigurationError('an authorization URL needs the client id: set `clientId`');
  }
  return client.authorizationUrl({ response_type: responseType, client_id: client.clientId, ...params });
}

async function redeemCode<T extends boolean, Keys extends KeyCase>(
  client: Client<boolean, Keys>,
  {
    code,
    params,
    idToken,
  }: {
    readonly code: string;
    readonly params: WireParams | undefined;
    readonly idToken?: IdTokenExpectation;
  },
  options: TokenRequestOptions<T> = {},
): Promise<TokenOutcome<T, Keys>> {
  const { redirectUri } = client.settings;
  const all = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, ...params };
  return await requestToken(client, all, options, { idToken });
}

/** Adds an `authorizationUrl` that is not in the type: a clear error for callers without types. */
function withoutAuthorizationUrl<Strategy extends object>(grant: string, strategy: Strategy): Strategy {
  const authorizationUrl = (): never => {
    throw new ConfigurationError(`the ${grant} grant has no authorization URL: no browser takes part in it`);
  };
  return { ...strategy, authorizationUrl };
}
