/** Random values, all from a cryptographic source. */
export interface Randomness {
  uuid(): string;
  /** 26 letters and digits: 128 bits. */
  refreshToken(): string;
  /** A code of so many decimal digits. */
  otp(digits: number): string;
}
