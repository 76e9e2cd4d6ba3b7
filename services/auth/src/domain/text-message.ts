/** Codes that are known beforehand, for phones that get no message: for reviewers of apps, and tests. */
export interface TestCodes {
  /** By phone, with or without `+`. */
  readonly smsTestOtp: Readonly<Record<string, string>>;
  /** Until when they are good; for ever when absent. */
  readonly smsTestOtpValidUntil: Date | undefined;
}

/** The code that a phone is known by beforehand; undefined for all others. */
export function testCodeOf(phone: string, codes: TestCodes, nowMs: number): string | undefined {
  const { smsTestOtp, smsTestOtpValidUntil } = codes;
  if (smsTestOtpValidUntil !== undefined && smsTestOtpValidUntil.getTime() <= nowMs) return undefined;
  return smsTestOtp[phone] ?? smsTestOtp[`+${phone}`];
}
