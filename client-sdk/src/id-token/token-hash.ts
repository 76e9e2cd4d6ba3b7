import type { JwsAlgorithm } from '../jwt/algorithms.ts';
import { encodeBase64Url } from '../jwt/base64url.ts';

/**
 * The value that `at_hash` must have for an access token, or `c_hash` for a code: the left half of its hash, by the
 * hash function of the ID token's algorithm.
 *
 * @see OpenID Connect Core §3.1.3.6 https://openid.net/specs/openid-connect-core-1_0.html#CodeIDToken
 */
export async function tokenHash(token: string, algorithm: JwsAlgorithm): Promise<string> {
  const digest = await crypto.subtle.digest(hashOf(algorithm), new TextEncoder().encode(token));
  return encodeBase64Url(new Uint8Array(digest, 0, digest.byteLength / 2));
}

/** Ed25519 hashes with SHA-512 inside; its names do not say so. */
function hashOf(algorithm: JwsAlgorithm): string {
  return algorithm === 'EdDSA' || algorithm === 'Ed25519' ? 'SHA-512' : `SHA-${algorithm.slice(2)}`;
}
