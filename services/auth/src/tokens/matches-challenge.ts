import { createHash, timingSafeEqual } from 'node:crypto';
import type { CodeChallenge } from '../domain/pkce.ts';

/** Is it the verifier of that challenge? @see RFC 7636 §4.6 https://www.rfc-editor.org/rfc/rfc7636#section-4.6 */
export function matchesChallenge(verifier: string, { challenge, method }: CodeChallenge): boolean {
  const made = method === 'plain' ? verifier : createHash('sha256').update(verifier).digest('base64url');
  // Hashes of equal length: what takes longer says nothing of where they differ.
  return timingSafeEqual(digest(made), digest(challenge));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
