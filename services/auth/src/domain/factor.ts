/** A second factor, as callers may see it: its secret is read where it is verified. */
export interface Factor {
  readonly id: string;
  readonly status: 'unverified' | 'verified';
  readonly type: 'totp' | 'webauthn' | 'phone';
  /** Empty for none. */
  readonly friendlyName: string;
  /** Empty for none. */
  readonly phone: string;
  readonly lastChallengedAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}
