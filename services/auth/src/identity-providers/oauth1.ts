import { createHmac, randomBytes } from 'node:crypto';
import { compareText } from '@tollgate/kit/text';
import { AuthorizationResponseError, Client } from '@tollgate/oauth2-client';
import type {
  ProviderConnection,
  ReceivedCallback,
  RequestToken,
  SignedInUser,
  SignInRequest,
} from './connection.ts';
import { type Profile, type ProviderCredentials, ProviderError, rebase } from './provider.ts';

/** An external identity provider of OAuth 1.0a. */
export interface OAuth1Provider {
  readonly requestToken: string;
  readonly authorization: string;
  readonly accessToken: string;
  /** Responds with the user. */
  readonly profile: string;
  readonly readProfile: (response: unknown) => Profile;
}

interface SignedRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly token?: RequestToken;
}

/**
 * Connects to a provider by OAuth 1.0a. The request token is kept in the flow; the state is part of
 * the callback's URL, which is signed.
 *
 * @see RFC 5849 https://www.rfc-editor.org/rfc/rfc5849
 */
export class OAuth1Connection implements ProviderConnection {
  readonly name: string;
  readonly emailOptional: boolean;
  readonly isFormPost = false;
  readonly gotrueUsesPkce = false;
  readonly #provider: OAuth1Provider;
  readonly #credentials: ProviderCredentials;
  readonly #nowMs: () => number;
  readonly #client = new Client({ keyCase: 'preserve' });

  constructor(
    name: string,
    provider: OAuth1Provider,
    { credentials, nowMs }: { readonly credentials: ProviderCredentials; readonly nowMs: () => number },
  ) {
    this.name = name;
    this.emailOptional = credentials.emailOptional;
    this.#provider = provider;
    this.#credentials = credentials;
    this.#nowMs = nowMs;
  }

  async start({ state }: SignInRequest) {
    const callback = new URL(this.#credentials.redirectUri);
    callback.searchParams.set('state', state);
    const parameters = { oauth_callback: callback.href };
    const response = await this.#send({ method: 'POST', url: this.#provider.requestToken, parameters });
    const requestToken = readToken(response);
    const url = new URL(this.#rebased(this.#provider.authorization));
    url.searchParams.set('oauth_token', requestToken.token);
    return { url: url.href, requestToken };
  }

  async finish({ parameters, requestToken }: ReceivedCallback): Promise<SignedInUser> {
    if (parameters.has('denied')) throw new AuthorizationResponseError({ code: 'access_denied' });
    const verifier = parameters.get('oauth_verifier') ?? '';
    // The callback of another request token is not the one of this state.
    if (verifier === '' || parameters.get('oauth_token') !== requestToken.token || requestToken.token === '')
      throw new ProviderError('the callback has another request token, or no verifier');
    const response = await this.#send({
      method: 'POST',
      url: this.#provider.accessToken,
      parameters: { oauth_verifier: verifier },
      token: requestToken,
    });
    const token = readToken(response);
    const { parsed } = await this.#request({ method: 'GET', url: this.#provider.profile, token });
    const profile = this.#provider.readProfile(parsed);
    return { profile, tokens: { accessToken: token.token, refreshToken: '' } };
  }

  /** Sends a request and reads the form of the response, which has the content type of a page. */
  async #send(request: SignedRequest): Promise<URLSearchParams> {
    return new URLSearchParams((await this.#request(request)).body);
  }

  async #request(request: SignedRequest) {
    const url = this.#rebased(request.url);
    const authorization = this.#sign({ ...request, url });
    return await this.#client.request(request.method, url, { headers: { authorization } });
  }

  #rebased(url: string): string {
    return rebase(url, this.#credentials.url);
  }

  /** @see RFC 5849 §3.4 https://www.rfc-editor.org/rfc/rfc5849#section-3.4 */
  #sign({ method, url, parameters = {}, token }: SignedRequest): string {
    const { clientIds, secret } = this.#credentials;
    const protocol = {
      ...parameters,
      oauth_consumer_key: clientIds[0] ?? '',
      oauth_nonce: randomBytes(16).toString('hex'),
      oauth_signature_method: 'HMAC-SHA1',
      oauth_timestamp: String(Math.floor(this.#nowMs() / 1000)),
      oauth_version: '1.0',
      ...(token && { oauth_token: token.token }),
    };
    const signature = signOAuth1(
      { method, url, parameters: protocol },
      { secret, tokenSecret: token?.secret ?? '' },
    );
    const fields = Object.entries({ ...protocol, oauth_signature: signature });
    return `OAuth ${fields.map(([name, value]) => `${encode(name)}="${encode(value)}"`).join(', ')}`;
  }
}

function readToken(response: URLSearchParams): RequestToken {
  const token = response.get('oauth_token') ?? '';
  const secret = response.get('oauth_token_secret') ?? '';
  if (token === '' || secret === '') throw new ProviderError('the response has no token');
  return { token, secret };
}

/** The HMAC-SHA1 signature of a request whose parameters are in its header and in its query. */
export function signOAuth1(
  request: {
    readonly method: string;
    readonly url: string;
    readonly parameters: Readonly<Record<string, string>>;
  },
  { secret, tokenSecret }: { readonly secret: string; readonly tokenSecret: string },
): string {
  const { origin, pathname, searchParams } = new URL(request.url);
  const pairs = [...searchParams, ...Object.entries(request.parameters)]
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .toSorted(([a, x], [b, y]) => compareText(a, b) || compareText(x, y))
    .map((pair) => pair.join('='));
  const base = [request.method, `${origin}${pathname}`, pairs.join('&')].map(encode).join('&');
  return createHmac('sha1', `${encode(secret)}&${encode(tokenSecret)}`)
    .update(base)
    .digest('base64');
}

/** @see RFC 5849 §3.6 https://www.rfc-editor.org/rfc/rfc5849#section-3.6 */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
