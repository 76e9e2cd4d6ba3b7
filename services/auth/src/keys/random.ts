import { randomBytes, randomInt, randomUUID } from 'node:crypto';

/** Cryptographically secure random values. */
export interface Randomness {
  uuid(): string;
  /** 12 letters and digits: 60 bits. */
  refreshToken(): string;
  /** A key of HMAC-SHA256, 256 bits in base64url. */
  hmacKey(): string;
  /** 32 letters and digits of base32: 160 bits. */
  totpSecret(): string;
  /** A code of decimal digits. */
  otp(digits: number): string;
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
/** The length of GoTrue's: 60 bits. They can only be guessed online, where requests are limited. */
const refreshTokenChars = 12;
/** The length of the hash, as RFC 2104 §3 recommends. */
const hmacKeyBytes = 32;
/** 160 bits, the length of the hash, as RFC 4226 §4 recommends. */
const totpSecretChars = 32;

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
