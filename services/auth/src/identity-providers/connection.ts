import { createHash } from 'node:crypto';
import { AccessToken, Client, IdTokenError } from '@tollgate/oauth2-client';
import {
  clientOptionsFrom,
  createMetadataSource,
  type MetadataSource,
} from '@tollgate/oauth2-client/discovery';
import { pushAuthorizationRequest } from '@tollgate/oauth2-client/par';
import { IdTokenVerifier } from './id-token.ts';
import {
  type Endpoints,
  type GetOptions,
  type IdTokenRules,
  type Profile,
  type Provider,
  type ProviderCredentials,
  ProviderError,
  type ProviderSession,
  type ProviderTokens,
  profileOfClaims,
  rebase,
  withoutSlash,
} from './provider.ts';

type ProviderClient = Client<true, 'preserve'>;

/** How recently the user has to have signed in at the provider. */
export interface SignInFreshness {
  /** The user has to sign in again. */
  readonly isAgain: boolean;
  /** Undefined: whenever it was. */
  readonly maxAgeSeconds: number | undefined;
}

/** A sign-in on its way to the provider. */
export interface SignInRequest {
  readonly state: string;
  /** Verifier of PKCE between us and the provider; undefined without PKCE. */
  readonly codeVerifier: string | undefined;
  readonly nonce: string;
  /** They are added to those of the provider. */
  readonly scopes: readonly string[];
  /** Parameters that the client gave. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly freshness?: SignInFreshness | undefined;
}

/** A token that must be kept until the callback, as OAuth 1.0a requires. */
export interface RequestToken {
  readonly token: string;
  readonly secret: string;
}

/** A callback, and what was kept of its sign-in. */
export interface ReceivedCallback {
  readonly parameters: URLSearchParams;
  readonly state: string;
  readonly codeVerifier: string | undefined;
  /** Undefined: the nonce of the ID token is not compared. */
  readonly nonce: string | undefined;
  readonly requestToken: RequestToken;
}

/** An ID token that a client has got from the provider. */
export interface PresentedIdToken {
  readonly idToken: string;
  /** Compared with the ID token if present. */
  readonly accessToken: string;
  /** The client generated it; the ID token has it or its SHA-256. */
  readonly nonce: string;
}

/** A user who has signed in at a provider. */
export interface SignedInUser {
  readonly profile: Profile;
  readonly tokens: ProviderTokens;
  /** When the user has signed in at the provider; undefined if it does not say so. */
  readonly authenticatedAt?: Date | undefined;
}

/** An enabled provider, by OAuth 2.0 or 1.0a. */
export interface ProviderConnection {
  readonly name: string;
  readonly emailOptional: boolean;
  /** Whether the callback is a POST from the provider's site. */
  readonly isFormPost: boolean;
  readonly gotrueUsesPkce: boolean;
  /** The URL to send the browser to. */
  start(request: SignInRequest): Promise<{ readonly url: string; readonly requestToken?: RequestToken }>;
  /**
   * Validates an ID token that the client has got from the provider. Undefined if the provider has
   * none.
   */
  readonly readIdToken?: ((presented: PresentedIdToken) => Promise<Profile>) | undefined;
  /** Exchanges the code of a callback and reads the profile. */
  finish(callback: ReceivedCallback): Promise<SignedInUser>;
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

interface ConnectionOptions {
  readonly credentials: ProviderCredentials;
  readonly nowMs: () => number;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch;
  /** Fetches the metadata of an issuer. Default `fetch`. */
  readonly fetchMetadata?: Fetch;
}

/** Connects to a provider by OAuth 2.0 or OpenID Connect. */
export class OAuth2Connection implements ProviderConnection {
  readonly name: string;
  readonly emailOptional: boolean;
  readonly isFormPost: boolean;
  readonly gotrueUsesPkce: boolean;
  readonly #provider: Provider;
  readonly #credentials: ProviderCredentials;
  readonly #nowSeconds: () => number;
  readonly #fetch: Fetch | undefined;
  readonly #metadata: MetadataSource | undefined;
  #client: ProviderClient | undefined;
  #clientMetadata: unknown;
  #idTokens: IdTokenVerifier | undefined;
  /** Verifier of the ID token grant, which accepts all client ids. */
  #presented: IdTokenVerifier | undefined;
  readonly readIdToken: ((presented: PresentedIdToken) => Promise<Profile>) | undefined;

  constructor(
    name: string,
    provider: Provider,
    { credentials, nowMs, fetch, fetchMetadata = fetch }: ConnectionOptions,
  ) {
    this.name = name;
    this.#fetch = fetch;
    this.emailOptional = credentials.emailOptional;
    this.isFormPost = provider.authorizationParameters?.response_mode === 'form_post';
    this.gotrueUsesPkce = provider.gotrueUsesPkce === true;
    this.#provider = provider;
    this.#credentials = credentials;
    this.#nowSeconds = () => nowMs() / 1000;
    const { endpoints } = provider;
    if (typeof endpoints === 'object' && 'issuer' in endpoints)
      this.#metadata = createMetadataSource(getIssuer(endpoints.issuer, credentials.url), {
        now: this.#nowSeconds,
        ...(fetchMetadata && { fetch: fetchMetadata }),
      });
    const hasIdTokens = this.#hasIdToken() || provider.idTokenGrant !== undefined;
    this.readIdToken = hasIdTokens ? (presented) => this.#readIdToken(presented) : undefined;
  }

  async start(request: SignInRequest): Promise<{ readonly url: string }> {
    const client = await this.#connect();
    const { scopes, pkce, authorizationParameters, parameterNames = {} } = this.#provider;
    const scope = [...new Set([...scopes, ...request.scopes])];
    const given = Object.entries(request.parameters).map(([name, value]) => [
      Object.hasOwn(parameterNames, name) ? parameterNames[name] : name,
      value,
    ]);
    const { codeVerifier } = request;
    const parameters = {
      ...authorizationParameters,
      ...Object.fromEntries(given),
      ...(request.freshness && freshnessParameters(this.#provider, request.freshness)),
      ...(scope.length > 0 && { scope }),
      state: request.state,
      ...(this.#hasIdToken() && { nonce: request.nonce }),
      ...(pkce &&
        codeVerifier !== undefined && {
          // Synchronous: WebCrypto takes several times as long for so little data.
          code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
          code_challenge_method: 'S256',
        }),
    };
    if (!client.settings.requirePushedAuthorizationRequests)
      return { url: client.authCode.authorizationUrl(parameters) };
    const { url } = await pushAuthorizationRequest(client, parameters);
    return { url };
  }

  async finish({ parameters, state, codeVerifier, nonce }: ReceivedCallback): Promise<SignedInUser> {
    const client = await this.#connect();
    const { issuer, redirectUri } = client.settings;
    const idTokens = this.#verifier(client);
    const token = await client.authCode.completeAuthorization(
      parameters,
      {
        state,
        ...(issuer !== undefined && { issuer }),
        ...(redirectUri !== undefined && { redirectUri }),
        ...(this.#provider.pkce && codeVerifier !== undefined && { codeVerifier }),
        ...(this.#hasIdToken() && nonce !== undefined && { nonce }),
      },
      idTokens && {
        validateIdToken: (idToken, expected) =>
          idTokens.verify(idToken, { ...expected, nonce: nonce ?? false }),
      },
    );
    const profile = await this.#provider.readProfile(this.#session(client, token, parameters));
    const { auth_time: seconds } = token.idTokenClaims ?? {};
    return {
      profile,
      tokens: { accessToken: token.token, refreshToken: token.refreshToken ?? '' },
      ...(typeof seconds === 'number' && { authenticatedAt: new Date(seconds * 1000) }),
    };
  }

  /** @throws OAuthClientError or ProviderError if the ID token is not acceptable */
  async #readIdToken({ idToken, accessToken, nonce }: PresentedIdToken): Promise<Profile> {
    const client = await this.#connect();
    const { url: baseUrl, clientIds, skipNonceCheck } = this.#credentials;
    const { idTokenGrant, idToken: rules = idTokenGrant ?? issuerRules(client) } = this.#provider;
    const [, ...otherClientIds] = clientIds;
    this.#presented ??= new IdTokenVerifier(client, rules, { baseUrl, otherClientIds });
    const claims = await this.#presented.verify(idToken, {
      nonce: false,
      ...(accessToken !== '' && { accessToken }),
    });
    if (!skipNonceCheck) checkNonce(claims.nonce, nonce);
    if (idTokenGrant !== undefined) return profileOfClaims(claims);
    const token = new AccessToken(client, accessToken || 'none');
    const session = this.#session(client, token, new URLSearchParams());
    // Without an access token, the ID token is all there is.
    const userinfoEndpoint = accessToken === '' ? undefined : session.userinfoEndpoint;
    return await this.#provider.readProfile({ ...session, claims, userinfoEndpoint });
  }

  #hasIdToken(): boolean {
    return this.#provider.idToken !== undefined || this.#metadata !== undefined;
  }

  #verifier(client: ProviderClient): IdTokenVerifier | undefined {
    const { idToken } = this.#provider;
    if (idToken === undefined) return undefined;
    this.#idTokens ??= new IdTokenVerifier(client, idToken, { baseUrl: this.#credentials.url });
    return this.#idTokens;
  }

  #session(
    client: ProviderClient,
    token: ProviderSession['token'],
    callback: URLSearchParams,
  ): ProviderSession {
    const { url: baseUrl, clientIds, secret } = this.#credentials;
    return {
      token,
      claims: token.idTokenClaims ?? {},
      callback,
      clientId: clientIds[0] ?? '',
      clientSecret: secret,
      baseUrl,
      userinfoEndpoint: client.settings.userinfoEndpoint,
      get: async (url: string, { query = {}, headers = {} }: GetOptions = {}) => {
        const isOwn = baseUrl !== '' && url.startsWith(withoutSlash(baseUrl));
        const target = isOwn ? url : rebase(url, baseUrl);
        const response = await token.get(target, {
          query,
          headers: { accept: 'application/json', ...headers },
        });
        return response.parsed;
      },
    };
  }

  /** A new client, with new verifiers of ID tokens, when metadata were loaded again. */
  async #connect(): Promise<ProviderClient> {
    const metadata = await this.#metadata?.();
    if (this.#client !== undefined && this.#clientMetadata === metadata) return this.#client;
    const { clientIds, secret, redirectUri, url } = this.#credentials;
    const { endpoints, clientAuth = 'client_secret_post' } = this.#provider;
    const discovered = metadata === undefined ? undefined : clientOptionsFrom(metadata);
    const methods = discovered?.tokenEndpointAuthMethodsSupported;
    this.#client = new Client({
      ...(discovered ?? staticEndpoints(endpoints, url)),
      clientId: clientIds[0] ?? '',
      ...(secret !== '' && { clientSecret: secret }),
      // The client chooses another method of the issuer's.
      ...((methods?.includes(clientAuth) ?? true) && { clientAuth }),
      redirectUri,
      keyCase: 'preserve',
      // The URLs of API requests are those of the provider's module.
      allowedOrigins: ['*'],
      maxBodyBytes: maxResponseBytes,
      now: this.#nowSeconds,
      ...(this.#fetch && { fetch: this.#fetch }),
      onWarning: () => undefined,
    });
    this.#clientMetadata = metadata;
    this.#idTokens = undefined;
    this.#presented = undefined;
    return this.#client;
  }
}

/** A provider has to return `auth_time` with any `max_age`: a year excludes no session. */
const anyAgeSeconds = 365 * 24 * 60 * 60;

/** @see OpenID Connect Core §3.1.2.1 https://openid.net/specs/openid-connect-core-1_0.html#AuthRequest */
function freshnessParameters(
  { signInAgain = {} }: Provider,
  { isAgain, maxAgeSeconds }: SignInFreshness,
): Readonly<Record<string, string>> {
  if (signInAgain !== 'openid') return isAgain || maxAgeSeconds !== undefined ? signInAgain : {};
  return { ...(isAgain && { prompt: 'login' }), max_age: String(maxAgeSeconds ?? anyAgeSeconds) };
}

/** The rules of an issuer with metadata. */
function issuerRules({ settings: { issuer, jwksUri } }: ProviderClient): IdTokenRules {
  if (issuer === undefined || jwksUri === undefined) throw new ProviderError('the metadata have no keys');
  return { keys: () => jwksUri, issuers: () => [issuer] };
}

/**
 * The nonce binds an ID token to the client that asked for it. Mobile libraries send its hash to
 * the provider, others the nonce itself.
 */
function checkNonce(claim: unknown, nonce: string): void {
  const claimed = typeof claim === 'string' ? claim : '';
  if ((claimed === '') !== (nonce === ''))
    throw new IdTokenError('nonce', 'Passed nonce and nonce in id_token should either both exist or not.');
  const accepted = [nonce, createHash('sha256').update(nonce).digest('hex')];
  if (!accepted.includes(claimed)) throw new IdTokenError('nonce', 'Nonces mismatch');
}

/** A profile with a hundred email addresses has 20 KiB. */
const maxResponseBytes = 256 * 1024;

/** `EXTERNAL_<PROVIDER>_URL` is the issuer then. */
function getIssuer(issuer: string, baseUrl: string): string {
  return baseUrl === '' ? issuer : withoutSlash(baseUrl);
}

function staticEndpoints(
  endpoints: Endpoints,
  baseUrl: string,
): { readonly authorizationEndpoint: string; readonly tokenEndpoint: string } {
  if (typeof endpoints === 'function') {
    const { authorization, token } = endpoints(withoutSlash(baseUrl));
    return { authorizationEndpoint: authorization, tokenEndpoint: token };
  }
  if ('issuer' in endpoints) throw new TypeError('endpoints of an issuer are in its metadata');
  return {
    authorizationEndpoint: rebase(endpoints.authorization, baseUrl),
    tokenEndpoint: rebase(endpoints.token, baseUrl),
  };
}
