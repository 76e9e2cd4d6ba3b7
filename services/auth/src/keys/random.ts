import { randomBytes, randomInt, randomUUID } from 'node:crypto';

/** Random values, all from a cryptographic source. */
export interface Randomness {
  uuid(): string;
  /** 12 letters and digits: 60 bits. */
  refreshToken(): string;
  /** A key of HMAC-SHA256, 256 bits in base64url. */
  hmacKey(): string;
  /** 32 letters and digits of base32: 160 bits. */
  totpSecret(): string;
  /** A code of so many decimal digits. */
  otp(digits: number): string;
}

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
