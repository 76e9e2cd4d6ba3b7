import type { ErrorOccurrence } from '@tollgate/kit/errors';
import { errors } from '../errors.ts';
import { isElapsed, type Session } from './store.ts';

interface FactorOwner {
  readonly factors: readonly { readonly status: string }[];
}

type LevelOfSession = Pick<Session, 'aal'>;

/** Whether the user has a second factor that this session has not verified. */
export function needsSecondFactor({ factors }: FactorOwner, session: LevelOfSession | undefined): boolean {
  const isRaised = session !== undefined && session.aal !== 'aal1';
  return !isRaised && factors.some(({ status }) => status === 'verified');
}

/**
 * An attacker who has only the first factor must not be able to replace the ways to sign in, nor
 * to sign the owner out.
 *
 * @throws AppError `insufficient_aal` if the user has a second factor that this session has not
 * verified.
 */
export function requireSecondFactor(
  user: FactorOwner,
  session: LevelOfSession | undefined,
  error?: ErrorOccurrence,
): void {
  if (needsSecondFactor(user, session)) throw errors.insufficient_aal(error);
}

/**
 * Whether a session stayed at `aal1` for too long although its user has a second factor. 0 means no
 * limit.
 */
export function isLowAssurance(
  session: Pick<Session, 'aal' | 'createdAt'>,
  user: FactorOwner,
  { limitMs, nowMs }: { readonly limitMs: number; readonly nowMs: number },
): boolean {
  return needsSecondFactor(user, session) && isElapsed(session.createdAt, limitMs, nowMs);
}
