import { createHash } from 'node:crypto';

/** Hash of a code that was sent to a contact (email in lower case, or digits of a phone): 56 hexadecimal digits. */
export function hashOneTimeToken(contact: string, code: string): string {
  return createHash('sha224')
    .update(contact + code)
    .digest('hex');
}
