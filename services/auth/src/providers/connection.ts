import { type AccessToken, Client } from '@tollgate/oauth2-client';
import {
  clientOptionsFrom,
  createMetadataSource,
  type MetadataSource,
} from '@tollgate/oauth2-client/discovery';
import { calculateCodeChallenge } from '@tollgate/oauth2-client/pkce';
import type { ProviderTokens } from '../sessions/issue.ts';
import { IdTokenVerifier } from './id-token.ts';
import {
  type Endpoints,
  type GetOptions,
  type Profile,
  type Provider,
  type ProviderSession,
  rebase,
  withoutSlash,
} from './provider.ts';
import type { ProviderCredentials } from './settings.ts';

/** A sign-in on its way to the provider. */
export interface SignInRequest {
  readonly state: string;
  /** Of PKCE between us and the provider. */
  readonly codeVerifier: string;
  readonly nonce: string;
  /** In addition to those of the provider. */
  readonly scopes: readonly string[];
  /** Parameters that the client gave. */
  readonly parameters: Readonly<Record<string, string>>;
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
  readonly codeVerifier: string;
  readonly nonce: string;
  readonly requestToken: RequestToken;
}

/** A user who has signed in at a provider. */
export interface SignedInUser {
  readonly profile: Profile;
  readonly tokens: ProviderTokens;
}

/** An enabled provider, by OAuth 2.0 or 1.0a. */
export interface ProviderConnection {
  readonly name: string;
  readonly emailOptional: boolean;
  /** Whether the callback is a POST from the provider's site. */
  readonly isFormPost: boolean;
  /** The URL to send the browser to. */
  start(request: SignInRequest): Promise<{ readonly url: string; readonly requestToken?: RequestToken }>;
  /** Exchanges the code of a callback and reads the profile. */
  finish(callback: ReceivedCallback): Promise<SignedInUser>;
}

/** Connects to a provider by OAuth 2.0 or OpenID Connect. */
export class OAuth2Connection implements ProviderConnection {
  readonly name: string;
  readonly emailOptional: boolean;
  readonly isFormPost: boolean;
  readonly #provider: Provider;
  readonly #credentials: ProviderCredentials;
  readonly #nowSeconds: () => number;
  readonly #metadata: MetadataSource | undefined;
  #client: Client | undefined;
  #clientMetadata: unknown;
  #idTokens: IdTokenVerifier | undefined;

  constructor(
    name: string,
    provider: Provider,
    { credentials, nowMs }: { readonly credentials: ProviderCredentials; readonly nowMs: () => number },
  ) {
    this.name = name;
    this.emailOptional = credentials.emailOptional;
    this.isFormPost = provider.authorizationParameters?.response_mode === 'form_post';
    this.#provider = provider;
    this.#credentials = credentials;
    this.#nowSeconds = () => nowMs() / 1000;
    const { endpoints } = provider;
    if (typeof endpoints === 'object' && 'issuer' in endpoints)
      this.#metadata = createMetadataSource(getIssuer(endpoints.issuer, credentials.url), {
        now: this.#nowSeconds,
      });
  }

  async start(request: SignInRequest): Promise<{ readonly url: string }> {
    const client = await this.#connect();
    const { scopes, pkce, authorizationParameters, parameterNames = {} } = this.#provider;
    const scope = [...new Set([...scopes, ...request.scopes])];
    const given = Object.entries(request.parameters).map(([name, value]) => [
      Object.hasOwn(parameterNames, name) ? parameterNames[name] : name,
      value,
    ]);
    const url = client.authCode.authorizationUrl({
      ...authorizationParameters,
      ...Object.fromEntries(given),
      ...(scope.length > 0 && { scope }),
      state: request.state,
      ...(this.#hasIdToken() && { nonce: request.nonce }),
      ...(pkce && {
        code_challenge: await calculateCodeChallenge(request.codeVerifier),
        code_challenge_method: 'S256',
      }),
    });
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
        ...(this.#provider.pkce && { codeVerifier }),
        ...(this.#hasIdToken() && { nonce }),
      },
      idTokens && { validateIdToken: (idToken, expected) => idTokens.verify(idToken, expected) },
    );
    const profile = await this.#provider.readProfile(this.#session(client, token, parameters));
    return { profile, tokens: { accessToken: token.token, refreshToken: token.refreshToken ?? '' } };
  }

  #hasIdToken(): boolean {
    return this.#provider.idToken !== undefined || this.#metadata !== undefined;
  }

  #verifier(client: Client): IdTokenVerifier | undefined {
    const { idToken } = this.#provider;
    if (idToken === undefined) return undefined;
    this.#idTokens ??= new IdTokenVerifier(client, idToken, this.#credentials.url);
    return this.#idTokens;
  }

  #session(client: Client, token: AccessToken, callback: URLSearchParams): ProviderSession {
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

  /** A new client when metadata were loaded again. */
  async #connect(): Promise<Client> {
    const metadata = await this.#metadata?.();
    if (this.#client !== undefined && this.#clientMetadata === metadata) return this.#client;
    const { clientIds, secret, redirectUri, url } = this.#credentials;
    const { endpoints, clientAuth = 'client_secret_post' } = this.#provider;
    this.#client = new Client({
      ...(metadata === undefined ? staticEndpoints(endpoints, url) : clientOptionsFrom(metadata)),
      clientId: clientIds[0] ?? '',
      ...(secret !== '' && { clientSecret: secret }),
      clientAuth,
      redirectUri,
      keyCase: 'preserve',
      // The URLs of API requests are those of the provider's module.
      allowedOrigins: ['*'],
      maxBodyBytes: maxResponseBytes,
      now: this.#nowSeconds,
      onWarning: () => undefined,
    });
    this.#clientMetadata = metadata;
    return this.#client;
  }
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
