import { type KeySettings, parseSigningKeys } from './signing-keys.ts';

/** RFC 7518, 3.2: a key of HS256 is as long as its hash. A shorter one can be guessed from a single token. */
export const leastSecretBytes = 32;

/** Are tokens taken that a JWT_SECRET shorter than it should be has signed? */
export function isShortSecret(settings: KeySettings): boolean {
  const parsed = parseSigningKeys(settings);
  const isUsed = parsed.ok && parsed.keys.algorithms.has('HS256');
  return isUsed && Buffer.byteLength(settings.jwtSecret) < leastSecretBytes;
}
