import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Randomness } from '../ports/randomness.ts';

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
/** As GoTrue makes them: 60 bits. They are guessed online only, where requests are limited. */
const refreshTokenChars = 12;
/** As long as the hash: what RFC 2104 §3 recommends. */
const hmacKeyBytes = 32;
/** 160 bits, as long as the hash: what RFC 4226 §4 recommends. */
const totpSecretChars = 32;

/** Randomness of the operating system. */
export const systemRandomness: Randomness = {
  uuid: () => randomUUID(),
  refreshToken: () => letters(refreshTokenChars),
  hmacKey: () => randomBytes(hmacKeyBytes).toString('base64url'),
  totpSecret: () => letters(totpSecretChars).toUpperCase(),
  otp: (digits) => Array.from({ length: digits }, () => randomInt(10)).join(''),
};

function letters(count: number): string {
  return Array.from(randomBytes(count), (byte) => alphabet.charAt(byte % alphabet.length)).join('');
}
