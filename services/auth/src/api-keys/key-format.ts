import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Randomness } from '../keys/secrets.ts';

// A key is `<prefix>_<secret><checksum>`. The prefix lets secret scanners find it, and the checksum
// rejects misspelt keys without a read of the database.

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const secretBytes = 32;
/** 62^43 is the first power above 2^256. */
const secretChars = 43;
/** 62^6 is the first power above 2^32. */
const checksumChars = 6;
/** Imported keys are cached by their text. */
export const maxImportedChars = 256;
const bodyForm = /^[0-9A-Za-z]{49}$/;

/** A new key with 256 random bits. */
export function createKey(prefix: string, random: Pick<Randomness, 'bytes'>): string {
  const secret = BigInt(`0x${random.bytes(secretBytes).toString('hex')}`);
  const text = `${prefix}_${toBase62(secret, secretChars)}`;
  return text + checksum(text);
}

/** Whether the text has the form of keys with this prefix, and the right checksum. */
export function isWellFormedKey(text: string, prefix: string): boolean {
  if (!text.startsWith(`${prefix}_`) || !bodyForm.test(text.slice(prefix.length + 1))) return false;
  return checksum(text.slice(0, -checksumChars)) === text.slice(-checksumChars);
}

/** SHA-256 in hexadecimal. The database has the digest only. */
export function digestKey(key: string): string {
  return hash('sha256', key);
}

function checksum(text: string): string {
  return toBase62(BigInt(crc32(text)), checksumChars);
}

function toBase62(value: bigint, chars: number): string {
  let text = '';
  for (let rest = value; text.length < chars; rest /= 62n) text = alphabet.charAt(Number(rest % 62n)) + text;
  return text;
}
