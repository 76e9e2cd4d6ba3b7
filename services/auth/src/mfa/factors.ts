import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createNotify } from '../messages/send.ts';
import type { Session } from '../sessions/sessions.ts';
import type { User } from '../users/user.ts';

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
function expiryOf(lifeMs: number, nowMs: number): number {
  return nowMs + Math.max(lifeMs, leastLifeMs);
}

/** A factor of the user. @throws AppError `mfa_factor_not_found`: factors of others do not exist. */
export function ownFactor(user: User, factorId: string): Factor {
  const factor = user.factors.find(({ id }) => id === factorId.toLowerCase());
  if (factor === undefined) throw errors.mfa_factor_not_found();
  return factor;
}

/** A challenge that waits for its code. */
interface IssuedChallenge {
  readonly id: string;
  readonly type: 'totp';
  /** Seconds since 1970. */
  readonly expiresAt: number;
}

/** Begins the verification of a factor. */
export type ChallengeFactor = (
  of: { readonly user: User; readonly factorId: string },
  metadata: RequestMetadata,
) => Promise<IssuedChallenge>;

/** Creates {@link ChallengeFactor}. */
export function createChallengeFactor({ store, random, settings }: Context): ChallengeFactor {
  return async ({ user, factorId }, metadata) => {
    const factor = ownFactor(user, factorId);
    if (factor.type !== 'totp' || !settings.mfaTotpVerifyEnabled) throw errors.mfa_totp_verify_not_enabled();
    const id = random.uuid();
    const traits = { factor_id: factor.id, factor_status: factor.status };
    await store.factors.challenge(
      { id, factorId: factor.id, ip: metadata.clientAddress, at: new Date(metadata.nowMs) },
      auditEntry(user, 'challenge_created', { metadata, traits }),
    );
    const expiresAt = Math.floor(expiryOf(settings.mfaChallengeExpiryMs, metadata.nowMs) / 1000);
    return { id, type: factor.type, expiresAt };
  };
}

/** Removes a factor of the caller, and answers what it was. Sessions that owe it their `aal2` fall back. */
export type UnenrollFactor = (
  of: { readonly user: User; readonly session: Session; readonly factorId: string },
  metadata: RequestMetadata,
) => Promise<Factor>;

/** Creates {@link UnenrollFactor}. */
export function createUnenrollFactor(deps: Context): UnenrollFactor {
  const { store } = deps;
  const notify = createNotify(deps);
  return async ({ user, session, factorId }, metadata) => {
    const factor = ownFactor(user, factorId);
    if (factor.status === 'verified' && session.aal === 'aal1')
      throw errors.insufficient_aal({
        message: 'AAL2 required to unenroll verified factor',
        httpStatus: 422,
      });
    const traits = { factor_id: factor.id, factor_status: factor.status, session_id: session.id };
    const isRemoved = await store.factors.remove(
      { id: factor.id, userId: user.id },
      { at: new Date(metadata.nowMs), audit: auditEntry(user, 'factor_unenrolled', { metadata, traits }) },
    );
    if (!isRemoved) throw errors.mfa_factor_not_found();
    if (factor.status === 'verified')
      notify(user, 'MFA_FACTOR_UNENROLLED_NOTIFICATION', { FactorType: factor.type });
    return factor;
  };
}
