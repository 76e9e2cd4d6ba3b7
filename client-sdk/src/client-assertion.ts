import type {
  ClientAssertionAuth,
  ClientAuth,
  ClientAuthContext,
  ClientAuthFunction,
  ClientSecretJwtAuth,
  MutableTokenRequest,
  PrivateKeyJwtAuth,
} from './client-auth.ts';
import { randomToken } from './encoding.ts';
import { ConfigurationError } from './errors.ts';
import { isJwsAlgorithm, isSymmetric, type JwsAlgorithm } from './jwt/algorithms.ts';
import { decodeJwt } from './jwt/decode.ts';
import { importKey, type KeyInput, type WebCryptoKey } from './jwt/import-key.ts';
import { signJwt } from './jwt/sign.ts';

/** The only `client_assertion_type` there is. @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2 */
const jwtBearerAssertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Seconds an assertion lives: long enough for a slow request, too short to be worth stealing. */
const DEFAULT_LIFETIME_SECONDS = 60;

/** What signs the assertion, and what of it differs from the default. */
interface AssertionSigner {
  readonly algorithm: JwsAlgorithm;
  readonly key: KeyInput;
  readonly keyId?: string;
  readonly audience?: string | readonly string[];
  /** Seconds. */
  readonly lifetime?: number;
  readonly modify?: (header: Record<string, unknown>, claims: Record<string, unknown>) => void;
}

/**
 * Signs an assertion with a `jti` of its own and puts it into the request, unless the request already has one. Signed
 * per request and per attempt: servers remember each `jti` and refuse it the second time.
 *
 * @throws {ConfigurationError} when the client id is missing or the key does not fit the algorithm
 * @see RFC 7523 §3 https://www.rfc-editor.org/rfc/rfc7523#section-3
 */
async function addSignedAssertion(
  request: MutableTokenRequest,
  { clientId, issuer, tokenEndpoint, now }: ClientAuthContext,
  { algorithm, key, keyId, audience, lifetime, modify }: AssertionSigner,
): Promise<void> {
  if (request.body.has('client_assertion')) return;
  if (!clientId) throw new ConfigurationError('a signed client assertion names the client: set clientId');
  const issuedAt = Math.floor(now());
  const header: Record<string, unknown> = {
    typ: 'JWT',
    alg: algorithm,
    ...(keyId !== undefined && { kid: keyId }),
  };
  const claims: Record<string, unknown> = {
    iss: clientId,
    sub: clientId,
    aud: audience ?? issuer ?? tokenEndpoint,
    jti: randomToken(),
    iat: issuedAt,
    nbf: issuedAt,
    exp: issuedAt + (lifetime ?? DEFAULT_LIFETIME_SECONDS),
  };
  modify?.(header, claims);
  putAssertion(request, clientId, await signJwt(claims, { algorithm, key, header }), jwtBearerAssertionType);
}

/** Puts an assertion into the request, with the client id that goes with it unless the caller named one. */
function putAssertion(
  { body }: MutableTokenRequest,
  clientId: string | undefined,
  assertion: string,
  type: string,
): void {
  body.set('client_assertion', assertion);
  body.set('client_assertion_type', type);
  if (clientId && !body.has('client_id')) body.set('client_id', clientId);
}

/** Seconds by which our clock may run ahead of the issuer's before an assertion counts as expired here. */
const CLOCK_TOLERANCE_SECONDS = 30;

/**
 * Authenticates the client with an assertion someone else issued, asked for anew each time because files and metadata
 * services rotate it. Only its expiry is looked at: a workload's token names the workload, not the client id.
 *
 * @throws {ConfigurationError} when there is no assertion, or one that has expired (`retryable`: rotation may be late)
 * @see RFC 7521 §4.2 https://www.rfc-editor.org/rfc/rfc7521#section-4.2
 */
export async function clientAssertion(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: ClientAssertionAuth,
): Promise<void> {
  if (request.body.has('client_assertion')) return;
  const assertion = await readAssertion(auth);
  assertNotExpired(assertion, context.now());
  putAssertion(request, context.clientId, assertion, auth.type ?? jwtBearerAssertionType);
}

async function readAssertion(auth: ClientAssertionAuth): Promise<string> {
  let assertion: string;
  try {
    assertion = (await auth.assertion()).trim();
  } catch (cause) {
    throw new ConfigurationError('clientAuth.assertion() failed; see cause', { cause, retryable: true });
  }
  if (assertion === '')
    throw new ConfigurationError('clientAuth.assertion() gave an empty string', { retryable: true });
  return assertion;
}

function assertNotExpired(assertion: string, now: number): void {
  const expiresAt = decodeJwt(assertion)?.claims.exp;
  if (typeof expiresAt !== 'number' || expiresAt + CLOCK_TOLERANCE_SECONDS > now) return;
  const seconds = Math.round(now - expiresAt);
  throw new ConfigurationError(
    `the client assertion expired ${seconds} seconds ago; is what writes it still running?`,
    {
      retryable: true,
    },
  );
}

/**
 * Authenticates the client with a fresh JWT signed by its secret, which itself never travels.
 *
 * @throws {ConfigurationError} when the client id or secret is missing
 * @see OpenID Connect Core §9 https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication
 */
export async function clientSecretJwt(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: ClientSecretJwtAuth,
): Promise<void> {
  if (!context.clientSecret) {
    throw new ConfigurationError(
      'clientAuth client_secret_jwt signs with the client secret: set clientSecret',
    );
  }
  const algorithm = auth.algorithm ?? 'HS256';
  await addSignedAssertion(request, context, { ...auth, algorithm, key: context.clientSecret });
}

/**
 * Imported keys by the settings they came from. Importing a PEM or JSON Web Key costs more than signing with it, and
 * the settings are the only thing that lives as long as the client; a weak map holds them no longer than that.
 */
const importedKeys = new WeakMap<PrivateKeyJwtAuth, Promise<WebCryptoKey>>();

/**
 * Authenticates the client with a fresh JWT signed by its private key; a `client_assertion` the caller already put into
 * the request is left alone.
 *
 * @throws {ConfigurationError} when the client id is missing or the key does not fit the algorithm
 * @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2
 */
export async function privateKeyJwt(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: PrivateKeyJwtAuth,
): Promise<void> {
  const { algorithm } = auth;
  if (!isJwsAlgorithm(algorithm) || isSymmetric(algorithm)) {
    throw new ConfigurationError(
      `clientAuth.algorithm must be an algorithm of a key pair, such as RS256, PS256, ES256 or EdDSA; got ${JSON.stringify(algorithm)}`,
    );
  }
  let key = importedKeys.get(auth);
  if (key === undefined) {
    key = importKey(auth.key, algorithm, 'sign');
    importedKeys.set(auth, key);
  }
  await addSignedAssertion(request, context, { ...auth, algorithm, key: await key });
}

/**
 * Writes an assertion into a request, signed here or by someone else.
 * @throws {ConfigurationError} when what the method needs is missing.
 */
export async function authenticateByAssertion(
  request: MutableTokenRequest,
  context: ClientAuthContext,
  auth: Exclude<ClientAuth, string | ClientAuthFunction>,
): Promise<void> {
  if (auth.method === 'private_key_jwt') await privateKeyJwt(request, context, auth);
  else if (auth.method === 'client_secret_jwt') await clientSecretJwt(request, context, auth);
  else await clientAssertion(request, context, auth);
}
