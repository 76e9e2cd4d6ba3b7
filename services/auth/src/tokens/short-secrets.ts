import type { SigningKeys, TokenKey } from './signing-keys.ts';

/** RFC 7518, 3.2: a key of HS256 is as long as its hash. A shorter one can be guessed from a single token. */
export const leastSecretBytes = 32;

/** The secrets that are shorter than they should be and verify tokens. */
export function shortSecrets({ byKid, fallback, algorithms }: SigningKeys): readonly TokenKey[] {
  if (!algorithms.has('HS256')) return [];
  return [...new Set([fallback, ...byKid.values()])].filter(isShort);
}

function isShort({ verifyingKey }: TokenKey): boolean {
  // Absent for public keys.
  return (verifyingKey.symmetricKeySize ?? leastSecretBytes) < leastSecretBytes;
}
