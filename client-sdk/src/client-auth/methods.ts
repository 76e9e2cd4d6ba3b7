import type { JwsAlgorithm } from '../jwt/algorithms.ts';
import type { KeyInput } from '../jwt/import-key.ts';
import type { SignFunction } from '../jwt/sign.ts';

/**
 * A request to an authorization server's endpoint that client authentication writes into before it
 * is sent.
 */
export type MutableTokenRequest = {
  url: string;
  method: string;
  readonly headers: Headers;
  /** The parameters, whether they are sent as form, JSON or query. */
  readonly body: URLSearchParams;
};

/** Client data that methods of client authentication use. */
export type ClientAuthContext = {
  readonly clientId: string | undefined;
  readonly issuer: string | undefined;
  /** The absolute URL of the token endpoint. */
  readonly tokenEndpoint: string;
  /** Epoch seconds, by the authorization server's clock. */
  readonly now: () => number;
};

/** Writes the client's credentials into a request. Called for every attempt. */
export type ClientAuthFunction = (
  request: MutableTokenRequest,
  client: ClientAuthContext,
) => void | Promise<void>;

/** Claims and lifetime of a client assertion that is signed for each request. */
type AssertionSettings = {
  /** The claim `aud`. Default: the issuer if known, else the token endpoint's URL. */
  readonly audience?: string | readonly string[];
  /** Seconds from now to the claim `exp`. Default 60. */
  readonly lifetime?: number;
};

/**
 * How an assertion is signed with the client's private key.
 * @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2
 */
export type PrivateKeyJwtOptions = AssertionSettings & {
  /** A private key, which need not be extractable, or a function that signs with one. */
  readonly key: KeyInput | SignFunction;
  /** JWS algorithm, such as `RS256`, `PS256`, `ES256` or `EdDSA`. */
  readonly algorithm: JwsAlgorithm;
  /** The header's `kid`. */
  readonly keyId?: string;
  /** Changes header and claims before they are signed. */
  readonly modify?: (header: Record<string, unknown>, claims: Record<string, unknown>) => void;
};

/**
 * How an assertion is signed with the client secret.
 * @see OpenID Connect Core §9
 * https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication
 */
export type ClientSecretJwtOptions = AssertionSettings & {
  /** Default HS256. */
  readonly algorithm?: 'HS256' | 'HS384' | 'HS512';
};

/** An assertion issued by a third party. */
export type ClientAssertionOptions = {
  /** Called for every request, because files and metadata services rotate assertions. */
  readonly assertion: () => string | Promise<string>;
  /** Default `urn:ietf:params:oauth:client-assertion-type:jwt-bearer`. */
  readonly type?: string;
};

/**
 * Signs an assertion with the client's private key.
 * @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2
 */
export type PrivateKeyJwtAuth = PrivateKeyJwtOptions & { readonly method: 'private_key_jwt' };

/**
 * Signs an assertion with the client secret.
 * @see OpenID Connect Core §9
 * https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication
 */
export type ClientSecretJwtAuth = ClientSecretJwtOptions & { readonly method: 'client_secret_jwt' };

/**
 * Sends an assertion issued by a third party, such as Kubernetes, SPIFFE or a cloud's workload
 * identity.
 */
export type ClientAssertionAuth = ClientAssertionOptions & { readonly method: 'client_assertion' };

/** The methods that need no settings. */
export type ClientAuthName = 'client_secret_basic' | 'client_secret_post' | 'tls_client_auth' | 'none';

/**
 * How the client authenticates to the authorization server.
 * @see RFC 6749 §2.3 https://www.rfc-editor.org/rfc/rfc6749#section-2.3
 */
export type ClientAuth =
  | ClientAuthName
  | PrivateKeyJwtAuth
  | ClientSecretJwtAuth
  | ClientAssertionAuth
  | ClientAuthFunction;

/**
 * How id and secret are encoded in Basic credentials: form-encoded as RFC 6749 §2.3.1 requires, or
 * raw as many servers expect. They differ only for characters outside `[A-Za-z0-9*._-]`.
 */
export type BasicEncoding = 'rfc6749' | 'raw';

/**
 * Authenticates with HTTP Basic. An `Authorization` header set by the caller takes precedence.
 * @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
export function clientSecretBasic(
  clientSecret: string,
  encoding: BasicEncoding = 'rfc6749',
): ClientAuthFunction {
  let known: { readonly clientId: string; readonly credentials: string } | undefined;
  return ({ headers }, { clientId = '' }) => {
    if (headers.has('authorization')) return;
    if (known?.clientId !== clientId)
      known = { clientId, credentials: basicCredentials(clientId, clientSecret, encoding) };
    headers.set('authorization', known.credentials);
  };
}

/**
 * Sends id and secret as parameters. Parameters set by the caller take precedence.
 * @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
export function clientSecretPost(clientSecret: string): ClientAuthFunction {
  return (request, client) => {
    publicClient(request, client);
    if (!request.body.has('client_secret')) request.body.set('client_secret', clientSecret);
  };
}

/**
 * Sends only the client id: for public clients, and for clients that authenticate with their TLS
 * certificate.
 * @see RFC 6749 §3.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-3.2.1
 * @see RFC 8705 §2 https://www.rfc-editor.org/rfc/rfc8705#section-2
 */
export function publicClient({ body }: MutableTokenRequest, { clientId }: ClientAuthContext): void {
  if (clientId !== undefined && !body.has('client_id')) body.set('client_id', clientId);
}

function basicCredentials(id: string, secret: string, encoding: BasicEncoding): string {
  const pair = encoding === 'raw' ? `${id}:${secret}` : `${formEncode(id)}:${formEncode(secret)}`;
  let binary = '';
  for (const byte of new TextEncoder().encode(pair)) binary += String.fromCharCode(byte);
  return `Basic ${btoa(binary)}`;
}

/**
 * Whether Basic credentials depend on the encoding, because id or secret have characters outside
 * `[A-Za-z0-9*._-]`.
 */
export function dependsOnEncoding(id: string, secret: string): boolean {
  return formEncode(id) !== id || formEncode(secret) !== secret;
}

/**
 * URLSearchParams writes a name in `application/x-www-form-urlencoded`, followed by the `=` of its
 * empty value.
 */
function formEncode(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1);
}
