import { createHmac } from 'node:crypto';

/**
 * Hash of a code that was sent to a contact (email in lower case, or digits of a phone): 56 hexadecimal digits. It is the token of
 * links as well, and those are not counted as guesses: without the secret whoever knows the contact could try the links of all codes.
 */
export function hashOneTimeToken(contact: string, code: string, secret: string): string {
  return createHmac('sha224', secret)
    .update(contact + code)
    .digest('hex');
}
