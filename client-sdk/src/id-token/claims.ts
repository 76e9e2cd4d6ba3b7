import { encodeBase64Url } from '../encoding.ts';
import { IdTokenError } from '../errors.ts';
import { isForTenants, issuerOfTenant } from '../issuer.ts';
import type { JwsAlgorithm } from '../jwt/algorithms.ts';
import { quote } from '../text.ts';

/**
 * The claims of a validated ID token.
 *
 * @see OpenID Connect Core §2 https://openid.net/specs/openid-connect-core-1_0.html#IDToken
 */
export interface IdTokenClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  /** Epoch seconds. */
  readonly exp: number;
  /** Epoch seconds. */
  readonly iat: number;
  readonly nonce?: string;
  /** Epoch seconds. */
  readonly auth_time?: number;
  readonly azp?: string;
  readonly acr?: string;
  readonly amr?: readonly string[];
  readonly at_hash?: string;
  readonly c_hash?: string;
  readonly [claim: string]: unknown;
}

/** The expected values of the claims. */
export interface ExpectedClaims {
  readonly issuer: string;
  readonly clientId: string;
  /** Further clients of the same application, accepted in `aud` and `azp`. */
  readonly otherClientIds?: readonly string[] | undefined;
  /** Epoch seconds. */
  readonly now: number;
  /** Tolerance between the clocks. */
  readonly toleranceSeconds: number;
  /** The nonce that was sent, if there was one; `false` if it is not compared. */
  readonly nonce?: string | false | undefined;
  /** `sub` of the ID token before a refresh. */
  readonly subject?: string | undefined;
  /** Maximum of seconds since the user authenticated. */
  readonly maxAgeSeconds?: number | undefined;
}

/**
 * Validates the claims of an ID token whose signature is valid.
 *
 * @throws {IdTokenError} naming the first invalid claim
 * @see OpenID Connect Core §3.1.3.7
 * https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
 */
export function checkIdTokenClaims(
  claims: Readonly<Record<string, unknown>>,
  expected: ExpectedClaims,
): IdTokenClaims {
  checkIssuer(claims, expected);
  checkAudience(claims, expected);
  checkSubject(claims, expected);
  checkTimes(claims, expected);
  checkNonce(claims, expected);
  checkAuthenticationAge(claims, expected);
  // Every required member was checked above.
  return claims as IdTokenClaims;
}

function checkIssuer({ iss, tid }: Readonly<Record<string, unknown>>, { issuer }: ExpectedClaims): void {
  const expected = issuerOfTenant(issuer, tid);
  if (iss !== expected || isForTenants(expected)) throw unequal('iss', iss, expected);
}

function checkAudience(
  { aud, azp }: Readonly<Record<string, unknown>>,
  { clientId, otherClientIds = [] }: ExpectedClaims,
): void {
  const accepted: readonly unknown[] = [clientId, ...otherClientIds];
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.some((audience) => accepted.includes(audience))) throw unequal('aud', aud, clientId);
  if (azp === undefined && audiences.length > 1) {
    throw new IdTokenError('azp', 'is for several audiences, so `azp` must name the client');
  }
  if (azp !== undefined && !accepted.includes(azp)) throw unequal('azp', azp, clientId);
}

function checkSubject({ sub }: Readonly<Record<string, unknown>>, { subject }: ExpectedClaims): void {
  if (typeof sub !== 'string' || sub === '')
    throw new IdTokenError('sub', '`sub` is missing or not a string');
  // The message has no value, which identifies a person.
  if (subject !== undefined && sub !== subject)
    throw new IdTokenError('sub', '`sub` differs from the one before the refresh');
}

function checkTimes(
  claims: Readonly<Record<string, unknown>>,
  { now, toleranceSeconds }: ExpectedClaims,
): void {
  const expiresAt = parseTime(claims, 'exp');
  if (expiresAt <= now - toleranceSeconds) {
    throw new IdTokenError('exp', `expired ${Math.round(now - expiresAt)} seconds ago; check the clock`);
  }
  for (const claim of claims.nbf === undefined ? (['iat'] as const) : (['iat', 'nbf'] as const)) {
    const ahead = parseTime(claims, claim) - now;
    if (ahead > toleranceSeconds) {
      throw new IdTokenError(
        claim,
        `\`${claim}\` is ${Math.round(ahead)} seconds ahead of us; check the clock`,
      );
    }
  }
}

function checkNonce({ nonce }: Readonly<Record<string, unknown>>, { nonce: expected }: ExpectedClaims): void {
  if (expected === false || nonce === expected) return;
  throw new IdTokenError(
    'nonce',
    expected === undefined
      ? 'has a nonce, but none was sent: it belongs to another session'
      : 'the nonce is not the one of this session',
  );
}

function checkAuthenticationAge(claims: Readonly<Record<string, unknown>>, expected: ExpectedClaims): void {
  const { maxAgeSeconds, now, toleranceSeconds } = expected;
  if (maxAgeSeconds === undefined) {
    if (claims.auth_time !== undefined) parseTime(claims, 'auth_time');
    return;
  }
  const age = now - parseTime(claims, 'auth_time');
  if (age > maxAgeSeconds + toleranceSeconds) {
    throw new IdTokenError(
      'auth_time',
      `the user authenticated ${Math.round(age)} seconds ago; at most ${maxAgeSeconds} are allowed`,
    );
  }
}

function parseTime(claims: Readonly<Record<string, unknown>>, claim: string): number {
  const value = claims[claim];
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw new IdTokenError(claim, `\`${claim}\` is missing or not a time in epoch seconds`);
}

function unequal(claim: string, actual: unknown, expected: string): IdTokenError {
  return new IdTokenError(claim, `\`${claim}\` is ${quote(actual)}; expected ${quote(expected)}`);
}

/**
 * The expected `at_hash` of an access token, or `c_hash` of a code: the left half of its hash, with
 * the hash function of the ID token's algorithm.
 *
 * @see OpenID Connect Core §3.1.3.6
 * https://openid.net/specs/openid-connect-core-1_0.html#CodeIDToken
 */
export async function tokenHash(token: string, algorithm: JwsAlgorithm): Promise<string> {
  const digest = await crypto.subtle.digest(getHashName(algorithm), new TextEncoder().encode(token));
  return encodeBase64Url(new Uint8Array(digest, 0, digest.byteLength / 2));
}

/** Ed25519 uses SHA-512. */
function getHashName(algorithm: JwsAlgorithm): string {
  return algorithm === 'EdDSA' || algorithm === 'Ed25519' ? 'SHA-512' : `SHA-${algorithm.slice(2)}`;
}
