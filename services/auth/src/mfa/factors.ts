import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import type { WriteOptions } from './store.ts';

/** A second factor without its secret. */
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

/** Lower settings count as five minutes, as in GoTrue: users need time to find their phone. */
const minLifeMs = 300_000;

/** Whether a challenge or an unverified factor has expired. */
export function hasExpired(createdAt: Date, lifeMs: number, nowMs: number): boolean {
  return createdAt.getTime() <= getLastExpiredMs(lifeMs, nowMs);
}

/** Creation time of the youngest challenge or unverified factor that has expired. */
export function getLastExpiredMs(lifeMs: number, nowMs: number): number {
  return nowMs - Math.max(lifeMs, minLifeMs);
}

/** @throws AppError `mfa_factor_not_found`, also for a factor of another user. */
export function getFactor(user: User, factorId: string): Factor {
  const factor = user.factors.find(({ id }) => id === factorId.toLowerCase());
  if (factor === undefined) throw errors.mfa_factor_not_found();
  return factor;
}

interface IssuedChallenge {
  readonly id: string;
  readonly type: 'totp';
  /** Unix time in seconds. */
  readonly expiresAt: number;
}

export async function challengeFactor(
  { store, random, settings }: Context,
  { user, factorId }: { readonly user: User; readonly factorId: string },
  metadata: RequestMetadata,
): Promise<IssuedChallenge> {
  const factor = getFactor(user, factorId);
  if (factor.type !== 'totp' || !settings.mfaTotpVerifyEnabled) throw errors.mfa_totp_verify_not_enabled();
  const id = random.uuid();
  const traits = { factor_id: factor.id, factor_status: factor.status };
  await store.factors.challenge(
    { id, factorId: factor.id, ip: metadata.clientAddress, at: new Date(metadata.nowMs) },
    auditEntry(user, 'challenge_created', { metadata, traits }),
  );
  const expiresAtMs = metadata.nowMs + Math.max(settings.mfaChallengeExpiryMs, minLifeMs);
  return { id, type: factor.type, expiresAt: Math.floor(expiresAtMs / 1000) };
}

/**
 * Removes a factor of the caller and returns it. Sessions that it raised to `aal2` fall back to
 * `aal1`.
 */
export async function unenrollFactor(
  context: Context,
  options: { readonly user: User; readonly session: Session; readonly factorId: string },
  metadata: RequestMetadata,
): Promise<Factor> {
  const { user, session, factorId } = options;
  const factor = getFactor(user, factorId);
  if (factor.status === 'verified' && session.aal === 'aal1')
    throw errors.insufficient_aal({
      message: 'AAL2 required to unenroll verified factor',
      httpStatus: 422,
    });
  const traits = { factor_id: factor.id, factor_status: factor.status, session_id: session.id };
  const audit = auditEntry(user, 'factor_unenrolled', { metadata, traits });
  await removeFactor(context, { user, factor }, { at: new Date(metadata.nowMs), audit });
  return factor;
}

/** Removes the factor of the user, and notifies the user if it was verified. */
export async function removeFactor(
  context: Context,
  { user, factor }: { readonly user: User; readonly factor: Factor },
  options: WriteOptions,
): Promise<void> {
  if (!(await context.store.factors.remove({ id: factor.id, userId: user.id }, options)))
    throw errors.mfa_factor_not_found();
  if (factor.status === 'verified')
    notify(context, {
      user,
      kind: 'MFA_FACTOR_UNENROLLED_NOTIFICATION',
      variables: { FactorType: factor.type },
    });
}
