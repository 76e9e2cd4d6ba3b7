import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Randomness } from '../ports/randomness.ts';

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
/** 26 letters of 5 bits each hold 128 bits. */
const refreshTokenChars = 26;

/** Randomness of the operating system. */
export const systemRandomness: Randomness = {
  uuid: () => randomUUID(),
  refreshToken: () =>
    Array.from(randomBytes(refreshTokenChars), (byte) => alphabet.charAt(byte % alphabet.length)).join(''),
  otp: (digits) => Array.from({ length: digits }, () => randomInt(10)).join(''),
};
