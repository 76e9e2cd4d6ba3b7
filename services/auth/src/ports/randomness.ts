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
