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

/** Less than 5 minutes is not enough for somebody who looks for their phone; the original counts less as this, too. */
const leastLifeMs = 300_000;

/** Has what began then, a challenge or the enrolment of a factor, ended by itself? */
export function hasExpired(begunAt: Date, lifeMs: number, nowMs: number): boolean {
  return begunAt.getTime() <= lastExpiredMs(lifeMs, nowMs);
}

/** Whatever began at that time or before has expired. */
export function lastExpiredMs(lifeMs: number, nowMs: number): number {
  return nowMs - Math.max(lifeMs, leastLifeMs);
}

/** When what begins now will have expired. */
export function expiryOf(lifeMs: number, nowMs: number): number {
  return nowMs + Math.max(lifeMs, leastLifeMs);
}
