import { errors } from '../errors.ts';
import { isBanned, type User } from '../users/user.ts';
import { isLowAssurance } from './assurance.ts';
import type { SessionsContext } from './context.ts';
import { sessionExpiry } from './expiry.ts';
import type { Session } from './store.ts';

/** A session with the user who signed in. */
interface UserSession {
  readonly user: User;
  readonly session: Session;
}

/**
 * Checks that a refresh token may be exchanged.
 *
 * @throws AppError `user_banned`, `session_expired`
 */
export async function checkUsable(
  context: SessionsContext,
  { user, session }: UserSession,
  nowMs: number,
): Promise<void> {
  if (isBanned(user, nowMs))
    throw errors.user_banned({ message: 'Invalid Refresh Token: User Banned', httpStatus: 400 });
  const reason = await findEnd(context, { user, session }, nowMs);
  if (reason !== undefined)
    throw errors.session_expired({
      message: `Invalid Refresh Token: Session Expired${reason}`,
      httpStatus: 400,
    });
}

/** Checks that a session may get another access token. @throws AppError `session_expired` */
export async function checkActive(
  context: SessionsContext,
  owner: UserSession,
  nowMs: number,
): Promise<void> {
  const reason = await findEnd(context, owner, nowMs);
  if (reason !== undefined) throw errors.session_expired({ message: `Session Expired${reason}` });
}

/** Why a session gets no more tokens, as the messages of GoTrue say it. Undefined: it does. */
async function findEnd(
  { store, settings }: SessionsContext,
  { user, session }: UserSession,
  nowMs: number,
): Promise<string | undefined> {
  const expiry = sessionExpiry(session, settings, nowMs);
  if (expiry !== undefined) return expiry === 'inactivity' ? ' (Inactivity)' : '';
  if (isLowAssurance(session, user, { limitMs: settings.sessionAllowLowAalMs, nowMs }))
    return ' (Low AAL: User Needs MFA Verification)';
  if (settings.sessionSinglePerUser && (await store.sessions.hasNewer(session.id, settings.sessionTags)))
    return ' (Revoked by Newer Login)';
  return undefined;
}
