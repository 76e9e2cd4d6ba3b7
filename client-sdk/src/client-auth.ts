import type { authenticateByAssertion } from './client-assertion.ts';
import { ConfigurationError } from './errors.ts';
import type { JwsAlgorithm } from './jwt/algorithms.ts';
import type { KeyInput } from './jwt/import-key.ts';

/** A request to an endpoint of the authorization server, before it is sent; client authentication writes into it. */
export type MutableTokenRequest = {
  url: string;
  method: string;
  readonly headers: Headers;
  /** The parameters, wherever they will travel (form, JSON or query). */
  readonly body: URLSearchParams;
};

/** Signs an assertion with the client's private key. @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2 */
export type PrivateKeyJwtAuth = {
  readonly method: 'private_key_jwt';
  readonly key: KeyInput;
  /** JWS algorithm, such as `RS256`, `PS256`, `ES256` or `EdDSA`. */
  readonly algorithm: JwsAlgorithm;
  /** The header's `kid`. */
  readonly keyId?: string;
  /** The claim `aud`. Default: the issuer when known, else the token endpoint's URL. */
  readonly audience?: string | readonly string[];
  /** Seconds from now to the claim `exp`. Default 60. */
  readonly lifetime?: number;
  /** Changes header and claims before they are signed. */
  readonly modify?: (header: Record<string, unknown>, claims: Record<string, unknown>) => void;
};

/** Signs an assertion with the client secret. @see OpenID Connect Core §9 https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication */
export type ClientSecretJwtAuth = {
  readonly method: 'client_secret_jwt';
  /** Default HS256. */
  readonly algorithm?: 'HS256' | 'HS384' | 'HS512';
  /** The claim `aud`. Default: the issuer when known, else the token endpoint's URL. */
  readonly audience?: string | readonly string[];
  /** Seconds from now to the claim `exp`. Default 60. */
  readonly lifetime?: number;
};

/** Sends an assertion someone else signed: Kubernetes, SPIFFE, a cloud's workload identity. Asked for again for every request. */
export type ClientAssertionAuth = {
  readonly method: 'client_assertion';
  readonly assertion: () => string | Promise<string>;
  /** Default `urn:ietf:params:oauth:client-assertion-type:jwt-bearer`. */
  readonly type?: string;
};

/** Writes the client's credentials into a request by hand. */
export type ClientAuthFunction = (request: MutableTokenRequest) => void | Promise<void>;

/** The methods that need no more than their name. */
export type ClientAuthName = 'client_secret_basic' | 'client_secret_post' | 'tls_client_auth' | 'none';

/**
 * How the client proves who it is at the authorization server's endpoints.
 * @see RFC 6749 §2.3 https://www.rfc-editor.org/rfc/rfc6749#section-2.3
 */
export type ClientAuth =
  | ClientAuthName
  | PrivateKeyJwtAuth
  | ClientSecretJwtAuth
  | ClientAssertionAuth
  | ClientAuthFunction;

/** What client authentication knows of the client. */
export type ClientAuthContext = {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly basicEncoding: BasicEncoding;
  readonly issuer: string | undefined;
  /** The absolute URL of the token endpoint. */
  readonly tokenEndpoint: string;
  /** Epoch seconds. */
  readonly now: () => number;
};

/**
 * How id and secret become Basic credentials: form-encoded as RFC 6749 §2.3.1 says, or raw as many servers expect.
 * They differ only for characters outside `[A-Za-z0-9*._-]`.
 */
export type BasicEncoding = 'rfc6749' | 'raw';

/**
 * Names the client among the parameters: all that a public client says of itself, and all that a client says whose TLS
 * certificate says the rest.
 * @see RFC 6749 §3.2.1 https://www.rfc-editor.org/rfc/rfc6749#section-3.2.1
 * @see RFC 8705 §2 https://www.rfc-editor.org/rfc/rfc8705#section-2
 */
function clientIdOnly({ body }: MutableTokenRequest, { clientId }: ClientAuthContext): void {
  if (clientId !== undefined && !body.has('client_id')) body.set('client_id', clientId);
}

/**
 * Sends id and secret as HTTP Basic credentials. A header of the caller's own wins.
 * @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
function clientSecretBasic({ headers }: MutableTokenRequest, context: ClientAuthContext): void {
  if (!headers.has('authorization')) headers.set('authorization', credentialsOf(context));
}

/** Credentials are the same for as long as the client is. */
const known = new WeakMap<ClientAuthContext, string>();

function credentialsOf(context: ClientAuthContext): string {
  const { clientId = '', clientSecret = '', basicEncoding } = context;
  const credentials = known.get(context) ?? basicCredentials(clientId, clientSecret, basicEncoding);
  known.set(context, credentials);
  return credentials;
}

/** The value of the Authorization header for an id and a secret. */
function basicCredentials(id: string, secret: string, encoding: BasicEncoding): string {
  const pair = encoding === 'raw' ? `${id}:${secret}` : `${formEncode(id)}:${formEncode(secret)}`;
  return `Basic ${base64(pair)}`;
}

/** Whether the two encodings of this id and secret differ, which servers that reject one of them make worth knowing. */
export function dependsOnEncoding({ clientId = '', clientSecret = '' }: ClientAuthContext): boolean {
  return formEncode(clientId) !== clientId || formEncode(clientSecret) !== clientSecret;
}

/** As `application/x-www-form-urlencoded` has it: what URLSearchParams writes for a name, without the `=` of its empty value. */
function formEncode(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1);
}

function base64(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/**
 * Sends id and secret among the parameters, where there are any. Parameters of the caller's own win.
 * @see RFC 6749 §2.3.1 https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
 */
function clientSecretPost(request: MutableTokenRequest, context: ClientAuthContext): void {
  clientIdOnly(request, context);
  const { clientSecret } = context;
  if (clientSecret !== undefined && !request.body.has('client_secret'))
    request.body.set('client_secret', clientSecret);
}

/** The methods that there are, for messages. */
const methodNames = [
  'client_secret_basic',
  'client_secret_post',
  'tls_client_auth',
  'none',
  'private_key_jwt',
  'client_secret_jwt',
  'client_assertion',
];

/** The name of a method, as in discovery documents; `custom` for a function. */
export function clientAuthName(auth: ClientAuth): string {
  if (typeof auth === 'function') return 'custom';
  return typeof auth === 'string' ? auth : auth.method;
}

/**
 * Checks a method's name.
 * @throws {ConfigurationError} when there is no such method.
 */
export function assertClientAuth(auth: ClientAuth): void {
  const name = clientAuthName(auth);
  if (name !== 'custom' && !methodNames.includes(name)) {
    throw new ConfigurationError(
      `\`clientAuth\` must be a function or one of ${methodNames.join(', ')}; got ${JSON.stringify(name)}`,
    );
  }
  if (typeof auth === 'string' && methodNames.indexOf(auth) > 3) {
    throw new ConfigurationError(`\`clientAuth\`: ${auth} needs its settings: { method: '${auth}', … }`);
  }
}

/**
 * Writes the client's credentials into a request. Methods that sign are loaded at their first use.
 * @throws {ConfigurationError} when what the method needs is missing.
 */
export function authenticate(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: ClientAuth,
): Promise<void> | void {
  if (typeof auth === 'function') return auth(request);
  if (typeof auth === 'string') return authenticateByName(request, context, auth);
  return authenticateLate(request, context, auth);
}

async function authenticateLate(...args: Parameters<typeof authenticateByAssertion>): Promise<void> {
  const late = await import('./client-assertion.ts');
  await late.authenticateByAssertion(...args);
}

function authenticateByName(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  name: ClientAuth & string,
): void {
  assertIdentified(request, context);
  // A client without a secret is a public one: empty Basic credentials would only be refused.
  const hasSecret = context.clientSecret !== undefined;
  if (name === 'client_secret_post') clientSecretPost(request, context);
  else if (name === 'client_secret_basic' && hasSecret) clientSecretBasic(request, context);
  else clientIdOnly(request, context);
}

/** Grants that carry an assertion need not name a client. @see RFC 7521 §4.1 */
function assertIdentified({ headers, body }: MutableTokenRequest, { clientId }: ClientAuthContext): void {
  if (
    clientId !== undefined ||
    body.has('client_id') ||
    body.has('client_assertion') ||
    body.has('assertion')
  )
    return;
  if (headers.has('authorization')) return;
  throw new ConfigurationError(
    'the client has no `clientId`: set it, or authenticate with a function as `clientAuth`',
  );
}
