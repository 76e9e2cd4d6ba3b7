import { createHash, createHmac } from 'node:crypto';
import type { SigningKeys, TokenKey } from '../keys/signing-keys.ts';

/** The settings that say in which form hashes are written. */
export interface OneTimeTokenSettings {
  readonly jwtSecret: string;
  readonly dbSharedWithGotrue: boolean;
}

/**
 * Hash of a code that was sent to a contact (email in lower case, or digits of a phone): 56
 * hexadecimal digits. It is also the token of links, which are not counted as guesses: without the
 * secret, an attacker could try the links of all codes of a known contact.
 */
export function hashOneTimeToken(contact: string, code: string, settings: OneTimeTokenSettings): string {
  return settings.dbSharedWithGotrue
    ? hashOfGotrue(contact, code)
    : hashWithSecret(contact, code, settings.jwtSecret);
}

/** All hashes that a code may be kept under: GoTrue hashes codes without the secret. */
export function oneTimeTokenHashes(
  contact: string,
  code: string,
  { jwtSecret }: Pick<OneTimeTokenSettings, 'jwtSecret'>,
): readonly string[] {
  return [hashWithSecret(contact, code, jwtSecret), hashOfGotrue(contact, code)];
}

function hashWithSecret(contact: string, code: string, secret: string): string {
  return createHmac('sha224', secret)
    .update(contact + code)
    .digest('hex');
}

function hashOfGotrue(contact: string, code: string): string {
  return createHash('sha224')
    .update(contact + code)
    .digest('hex');
}

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

const fewest = 6;
const most = 10;

/** Digits of a code: what is asked for, or 6 where that is less or more than is any good. */
export function otpDigits(wanted: number): number {
  return wanted >= fewest && wanted <= most ? wanted : fewest;
}
