/**
 * Proof Key for Code Exchange (RFC 7636): verifiers and challenges, for code flows built by hand.
 *
 * @module
 */

import { encodeBase64Url, randomToken } from './encoding.ts';
import { ConfigurationError } from './errors.ts';

/**
 * Generates a PKCE code verifier with 43 characters and 256 bits of entropy. It is a secret: keep
 * it with the user's session.
 * @see RFC 7636 §4.1 https://www.rfc-editor.org/rfc/rfc7636#section-4.1
 */
export function generateCodeVerifier(): string {
  return randomToken();
}

/**
 * The S256 code challenge of a verifier, for `code_challenge` beside `code_challenge_method=S256`.
 *
 * @throws {ConfigurationError} if the verifier is not 43 to 128 unreserved characters
 * @see RFC 7636 §4.2 https://www.rfc-editor.org/rfc/rfc7636#section-4.2
 */
export async function calculateCodeChallenge(verifier: string): Promise<string> {
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(verifier)) {
    throw new ConfigurationError(
      'a PKCE code verifier is 43 to 128 characters of A-Z a-z 0-9 - . _ ~ (RFC 7636 §4.1)',
    );
  }
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return encodeBase64Url(new Uint8Array(digest));
}
