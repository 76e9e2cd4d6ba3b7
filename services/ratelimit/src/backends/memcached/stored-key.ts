import { createHash } from 'node:crypto';

/** The longest key that memcached takes, in bytes. */
const maxKeyBytes = 250;

/** Bytes that end a key or a command in memcached's protocol: control characters and the blank. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unfit = /[\u0000-\u0020\u007f]/;

/**
 * The name under which memcached holds a counter: its key, or a hash of it where memcached could not take the key.
 * Clients choose the values in keys; one that is too long or holds a blank must not be a way around a limit.
 */
export function storedKey(key: string): string {
  const fits = Buffer.byteLength(key) <= maxKeyBytes && !unfit.test(key) && key !== '';
  return fits ? key : `tollgate_sha256_${createHash('sha256').update(key).digest('hex')}`;
}
