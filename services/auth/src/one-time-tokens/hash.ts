import { createHash, createHmac } from 'node:crypto';
import type { Settings } from '../config/settings.ts';

/**
 * Hash of a code that was sent to a contact (email in lower case, or digits of a phone): 56
 * hexadecimal digits. It is also the token of links, which are not counted as guesses: without the
 * secret, an attacker could try the links of all codes of a known contact.
 */
export function hashOneTimeToken(
  contact: string,
  code: string,
  settings: Pick<Settings, 'jwtSecret' | 'dbSharedWithGotrue'>,
): string {
  return settings.dbSharedWithGotrue
    ? hashLikeGotrue(contact, code)
    : hashWithSecret(contact, code, settings.jwtSecret);
}

/** All hashes that a code may have in the database: GoTrue hashes codes without the secret. */
export function oneTimeTokenHashes(
  contact: string,
  code: string,
  { jwtSecret }: Pick<Settings, 'jwtSecret'>,
): readonly string[] {
  return [hashWithSecret(contact, code, jwtSecret), hashLikeGotrue(contact, code)];
}

function hashWithSecret(contact: string, code: string, secret: string): string {
  return createHmac('sha224', secret)
    .update(contact + code)
    .digest('hex');
}

function hashLikeGotrue(contact: string, code: string): string {
  return createHash('sha224')
    .update(contact + code)
    .digest('hex');
}

const minDigits = 6;
const maxDigits = 10;

/** Number of digits of a code: the setting, or 6 if it is out of range. */
export function otpDigits(setting: number): number {
  return setting >= minDigits && setting <= maxDigits ? setting : minDigits;
}
