import { ConfigurationError } from '../errors/configuration-error.ts';
import type { JwsAlgorithm } from '../jwt/algorithms.ts';
import type { KeyInput } from '../jwt/import-key.ts';
import { signJwt } from '../jwt/sign.ts';
import { randomToken } from '../random-token.ts';
import type { ClientAuthContext, MutableTokenRequest } from './client-auth.ts';

/** The only `client_assertion_type` there is. @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2 */
export const jwtBearerAssertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Seconds an assertion lives: long enough for a slow request, too short to be worth stealing. */
const DEFAULT_LIFETIME_SECONDS = 60;

/** What signs the assertion, and what of it differs from the default. */
export interface AssertionSigner {
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
export async function addSignedAssertion(
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
export function putAssertion(
  { body }: MutableTokenRequest,
  clientId: string | undefined,
  assertion: string,
  type: string,
): void {
  body.set('client_assertion', assertion);
  body.set('client_assertion_type', type);
  if (clientId && !body.has('client_id')) body.set('client_id', clientId);
}
