import { encodeBase64Url } from './jwt/base64url.ts';

/**
 * A random string of unreserved characters for state, nonce, PKCE verifier and `jti`.
 *
 * @param byteLength entropy in bytes; the default of 32 gives 43 characters, the least PKCE allows
 */
export function randomToken(byteLength = 32): string {
  return encodeBase64Url(crypto.getRandomValues(new Uint8Array(byteLength)));
}
