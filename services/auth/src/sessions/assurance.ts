import type { ErrorOccurrence } from '@tollgate/kit/errors';
import { errors } from '../errors.ts';
import type { JwtClaims } from '../keys/jwt.ts';
import type { User } from '../users/user.ts';
import type { SessionsContext } from './context.ts';
import { isElapsed } from './expiry.ts';
import type { AssuranceLevel, Session } from './store.ts';

export interface FactorOwner {
  readonly factors: readonly { readonly status: string }[];
}

const levels: ReadonlySet<unknown> = new Set<AssuranceLevel>(['aal1', 'aal2', 'aal3']);

/** The level of an access token; the lowest without a valid one. */
export function readAssurance({ aal }: JwtClaims): AssuranceLevel {
  return isLevel(aal) ? aal : 'aal1';
}

function isLevel(claim: unknown): claim is AssuranceLevel {
  return levels.has(claim);
}

type LevelOfSession = Pick<Session, 'aal'>;

/** Whether the user has a second factor that this session has not verified. */
export function needsSecondFactor({ factors }: FactorOwner, session: LevelOfSession | undefined): boolean {
  const isRaised = session !== undefined && session.aal !== 'aal1';
  return !isRaised && factors.some(({ status }) => status === 'verified');
}

/**
 * Whether a session stayed at `aal1` for too long although its user has a second factor. 0 means no
 * limit.
 */
export function isLowAssurance(
  session: Pick<Session, 'aal' | 'createdAt'> & Partial<Pick<Session, 'client'>>,
  user: FactorOwner,
  { limitMs, nowMs }: { readonly limitMs: number; readonly nowMs: number },
): boolean {
  // The consent to an OAuth client has required the second factor.
  if (session.client !== undefined) return false;
  return needsSecondFactor(user, session) && isElapsed(session.createdAt, limitMs, nowMs);
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

interface SessionOwner {
  readonly user: User;
  /** Absent for a token without a session, which is never recent. */
  readonly session: Session | undefined;
}

/**
 * Whether the user has signed in, verified a factor or confirmed the session within a time, by
 * default as recently as the settings require; 0 means no limit. Guests have nothing that they
 * could confirm with.
 */
export function hasRecentSignIn(
  { settings, nowMs }: SessionsContext,
  { user, session }: SessionOwner,
  withinMs = settings.recentSignInMs,
): boolean {
  if (withinMs === 0 || user.isAnonymous) return true;
  if (session === undefined) return false;
  return !isElapsed(authenticatedAt(session), withinMs, nowMs());
}

/** The last time when the user has signed in, verified a factor or confirmed the session. */
export function authenticatedAt({ createdAt, methods }: Pick<Session, 'createdAt' | 'methods'>): Date {
  return new Date(Math.max(...[createdAt, ...methods.map(({ at }) => at)].map((at) => at.getTime())));
}

/**
 * A thief of a session must not be able to replace the ways to sign in.
 *
 * @throws AppError `reauthentication_needed`
 */
export function requireRecentSignIn(context: SessionsContext, owner: SessionOwner): void {
  if (!hasRecentSignIn(context, owner)) throw reauthenticationNeeded(owner.user);
}

/** The error says how the user can confirm the session. */
export function reauthenticationNeeded({ passwordHash, email, phone }: User) {
  const proofs = [
    ...(passwordHash === undefined ? [] : ['the current_password']),
    ...(email === '' && phone === '' ? [] : ['a nonce of GET /reauthenticate']),
  ];
  const confirm =
    proofs.length === 0 ? '' : `, or confirm it with ${proofs.join(' or ')} at POST /reauthenticate`;
  return errors.reauthentication_needed({
    message: `This requires a recent sign-in: sign in again${confirm}`,
  });
}
