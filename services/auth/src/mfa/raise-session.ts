import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { signAccessToken } from '../sessions/access-token.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import { makeCounterToken, makeSuccessor } from '../sessions/refresh-token.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import type { MfaContext } from './context.ts';
import type { RaisedSession, SessionRaise } from './raise-sql.ts';

/**
 * Raises a session to `aal2`, and issues its tokens. `write` does so in the database, together with
 * spending what proves the second factor; it returns false when that is spent already.
 */
export async function raiseSession(
  context: MfaContext,
  {
    user,
    session,
    factorId,
    method,
  }: { readonly user: User; readonly session: Session } & Pick<RaisedSession, 'factorId' | 'method'>,
  write: (raised: RaisedSession) => Promise<SessionRaise | false>,
  metadata: RequestMetadata,
): Promise<IssuedSession | undefined> {
  const { store, settings } = context;
  const at = new Date(metadata.nowMs);
  const methods = [{ method, at }, ...session.methods.filter((earlier) => earlier.method !== method)];
  const { organization, client } = session;
  const claimed = { id: session.id, aal: 'aal2', methods, organization, client } as const;
  const token = await signAccessToken(context, { user, session: claimed, method }, metadata);
  const current = settings.tokenDigests ? await store.refreshTokens.findCurrent(session.id) : undefined;
  const storedToken = makeSuccessor(context, current?.storedToken ?? '');
  const keys = { factorId, userId: user.id, sessionId: session.id };
  const raise = await write({ ...keys, method, refreshToken: storedToken, at });
  if (!raise) return undefined;
  const latest = await store.sessions.findWithUser(user.id, session.id);
  if (latest?.session === undefined) throw errors.session_not_found();
  const { refreshCounter } = raise;
  const refreshToken =
    refreshCounter === undefined
      ? storedToken
      : makeCounterToken({ sessionId: session.id, counter: refreshCounter.counter }, refreshCounter.hmacKey);
  return { ...token, refreshToken, sessionId: session.id, user: latest.user };
}
