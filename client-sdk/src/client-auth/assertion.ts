import { randomToken } from '../encoding.ts';
import { ConfigurationError } from '../errors.ts';
import { isForTenants } from '../issuer.ts';
import { isJwsAlgorithm, isSymmetric } from '../jwt/algorithms.ts';
import { decodeJwt } from '../jwt/decode.ts';
import { importKey, type WebCryptoKey } from '../jwt/import-key.ts';
import { type SignFunction, signJwt } from '../jwt/sign.ts';
import type { AssertionClaims, AssertionSigning } from '../strategies.ts';
import type {
  ClientAssertionOptions,
  ClientAuthContext,
  ClientAuthFunction,
  ClientSecretJwtOptions,
  MutableTokenRequest,
  PrivateKeyJwtOptions,
} from './methods.ts';

/** @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2 */
const jwtBearerAssertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Long enough for a slow request, too short to be worth stealing. */
const DEFAULT_LIFETIME_SECONDS = 60;

/**
 * Seconds by which our clock may run ahead of the issuer's before its assertion counts as expired.
 */
const CLOCK_TOLERANCE_SECONDS = 30;

/**
 * Authenticates with a JWT signed by the client's private key. A `client_assertion` set by the
 * caller takes precedence.
 *
 * @throws {ConfigurationError} from the function, if the client id is missing or the key does not
 * fit the algorithm
 * @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2
 */
export function privateKeyJwt(options: PrivateKeyJwtOptions): ClientAuthFunction {
  let imported: Promise<WebCryptoKey> | SignFunction | undefined;
  return async (request, client) => {
    const { algorithm } = options;
    if (!isJwsAlgorithm(algorithm) || isSymmetric(algorithm)) {
      throw new ConfigurationError(
        `clientAuth.algorithm must be an algorithm of a key pair, such as RS256, PS256, ES256 or EdDSA; got ${JSON.stringify(algorithm)}`,
      );
    }
    // Importing a PEM or JSON Web Key costs more than signing with it.
    imported ??= typeof options.key === 'function' ? options.key : importKey(options.key, algorithm, 'sign');
    await addSignedAssertion(request, client, { ...options, key: await imported });
  };
}

/**
 * Authenticates with a JWT signed by the client secret, which itself is never sent.
 *
 * @throws {ConfigurationError} from the function, if the client id or secret is missing
 * @see OpenID Connect Core §9
 * https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication
 */
export function clientSecretJwt(
  clientSecret: string | undefined,
  options: ClientSecretJwtOptions = {},
): ClientAuthFunction {
  return async (request, client) => {
    if (!clientSecret) {
      throw new ConfigurationError(
        'clientAuth client_secret_jwt signs with the client secret: set clientSecret',
      );
    }
    const algorithm = options.algorithm ?? 'HS256';
    await addSignedAssertion(request, client, { ...options, algorithm, key: clientSecret });
  };
}

/**
 * Authenticates with an assertion issued by a third party. Of its claims only the expiry is
 * checked: a workload's token names the workload, not the client id.
 *
 * @throws {ConfigurationError} from the function, if there is no assertion or it has expired
 * (`retryable`: rotation may be late)
 * @see RFC 7521 §4.2 https://www.rfc-editor.org/rfc/rfc7521#section-4.2
 */
export function clientAssertion({
  assertion: read,
  type = jwtBearerAssertionType,
}: ClientAssertionOptions): ClientAuthFunction {
  return async (request, client) => {
    if (request.body.has('client_assertion')) return;
    const assertion = await readAssertion(read);
    assertNotExpired(assertion, client.now());
    putAssertion(request, client.clientId, assertion, type);
  };
}

/**
 * Signs the assertion of a JWT bearer grant.
 * @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1
 */
export function signAssertion(
  claims: AssertionClaims,
  { algorithm, key, kid }: AssertionSigning,
): Promise<string> {
  return signJwt(claims, { algorithm, key, keyId: kid });
}

/** Each request and each attempt has its own `jti`: servers refuse one that they have seen. */
async function addSignedAssertion(
  request: MutableTokenRequest,
  { clientId, issuer, tokenEndpoint, now }: ClientAuthContext,
  { algorithm, key, keyId, audience, lifetime, modify }: PrivateKeyJwtOptions,
): Promise<void> {
  if (request.body.has('client_assertion')) return;
  if (!clientId) throw new ConfigurationError('a signed client assertion needs the client id: set clientId');
  const issuedAt = Math.floor(now());
  const header: Record<string, unknown> = {
    typ: 'JWT',
    alg: algorithm,
    ...(keyId !== undefined && { kid: keyId }),
  };
  const claims: Record<string, unknown> = {
    iss: clientId,
    sub: clientId,
    // An issuer with a placeholder identifies no server.
    aud: audience ?? (issuer === undefined || isForTenants(issuer) ? tokenEndpoint : issuer),
    jti: randomToken(),
    iat: issuedAt,
    nbf: issuedAt,
    exp: issuedAt + (lifetime ?? DEFAULT_LIFETIME_SECONDS),
  };
  modify?.(header, claims);
  putAssertion(request, clientId, await signJwt(claims, { algorithm, key, header }), jwtBearerAssertionType);
}

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

async function readAssertion(read: () => string | Promise<string>): Promise<string> {
  let assertion: string;
  try {
    assertion = (await read()).trim();
  } catch (cause) {
    throw new ConfigurationError('clientAuth.assertion() failed; see cause', { cause, retryable: true });
  }
  if (assertion === '')
    throw new ConfigurationError('clientAuth.assertion() returned an empty string', { retryable: true });
  return assertion;
}

function assertNotExpired(assertion: string, now: number): void {
  const expiresAt = decodeJwt(assertion)?.claims.exp;
  if (typeof expiresAt !== 'number' || expiresAt + CLOCK_TOLERANCE_SECONDS > now) return;
  const seconds = Math.round(now - expiresAt);
  throw new ConfigurationError(
    `the client assertion expired ${seconds} seconds ago; check that it is still being rotated`,
    { retryable: true },
  );
}
