import { createHash, createHmac } from 'node:crypto';

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
