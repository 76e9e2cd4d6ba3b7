import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { isBanned, type User } from '../users/user.ts';
import { type IssuedSession, issueTokens, type RefreshOutcome } from './issue.ts';
import {
  type CounterToken,
  decideRefresh,
  isAmongPercent,
  isRefreshToken,
  makeCounterToken,
  type RefreshDecision,
  type RefreshToken,
  readCounterToken,
  type Successor,
} from './refresh-token.ts';
import { isLowAssurance, type Session, sessionEnd } from './sessions.ts';
import type { RefreshableSession, StoredRefreshToken } from './store.ts';

/** A refresh token that a client presented, and what it is for. */
interface PresentedToken extends RefreshableSession {
  readonly text: string;
  readonly token: RefreshToken;
}

/** Finds what a refresh token is for, in one statement. @throws AppError `refresh_token_not_found` */
type FindPresentedToken = (text: string) => Promise<PresentedToken>;

/** Creates {@link FindPresentedToken}: the form of the text tells whether it is one that is kept. */
function createFindPresentedToken({ store }: Context): FindPresentedToken {
  return async (text) => {
    const read = readCounterToken(text);
    const found = read === undefined ? await findKept(text) : await findCounted(read);
    if (found === undefined) throw errors.refresh_token_not_found();
    return { ...found, text };
  };

  async function findKept(text: string): Promise<Omit<PresentedToken, 'text'> | undefined> {
    if (!isRefreshToken(text)) return undefined;
    const found = await store.sessions.findByRefreshToken(text);
    return found && { ...found, token: { ...found.token, successor: successorOf(found.token, found) } };
  }

  async function findCounted(read: CounterToken): Promise<Omit<PresentedToken, 'text'> | undefined> {
    const found = await store.sessions.findForRefresh(read.sessionId);
    if (found?.refreshCounter === undefined) return undefined;
    const { session, refreshCounter } = found;
    // Ahead of the database are tokens that it has forgotten: it was restored from a backup.
    const behind = refreshCounter.counter - read.counter;
    if (!read.isSignedWith(refreshCounter.hmacKey) || behind < 0) return undefined;
    const token = {
      revoked: behind > 0,
      updatedAt: session.refreshedAt ?? session.createdAt,
      successor: behind > 0 ? counted(found, behind === 1) : undefined,
    };
    return { ...found, token };
  }
}

/** The successor of a token that is kept: kept itself, or the one that is good now in a session that has changed over. */
function successorOf(
  { activeChild, hasChild }: StoredRefreshToken,
  found: RefreshableSession,
): Successor | undefined {
  if (activeChild !== undefined) return { token: activeChild, isNext: true };
  return counted(found, !hasChild && found.refreshCounter?.counter === 0);
}

function counted({ session, refreshCounter }: RefreshableSession, isNext: boolean): Successor | undefined {
  if (refreshCounter === undefined) return undefined;
  const { counter, hmacKey } = refreshCounter;
  return { token: makeCounterToken({ sessionId: session.id, counter }, hmacKey), isNext };
}

/** Exchanges a refresh token for a new access token, and as a rule for its successor. */
export type RefreshSession = (refreshToken: string, metadata: RequestMetadata) => Promise<IssuedSession>;

/** Of requests that race for one token all but one look a second time; a third look finds what nobody can cause by asking. */
const maxLooks = 3;

/** A token to be answered, and how it came about. */
type Answered = RefreshOutcome & { readonly refreshToken: string };

/**
 * Creates {@link RefreshSession}: one statement that reads, one that writes only if nothing has changed since. Reuse ends the session
 * for good, although the request fails.
 */
export function createRefreshSession(deps: Context): RefreshSession {
  const { settings, random } = deps;
  const { sessions } = deps.store;
  const findPresented = createFindPresentedToken(deps);

  async function attempt(text: string, metadata: RequestMetadata): Promise<IssuedSession | 'again'> {
    const presented = await findPresented(text);
    const { token, session, user } = presented;
    const decision = decideRefresh(token, settings, metadata.nowMs);
    if (decision.action === 'refuse') throw errors.refresh_token_already_used();
    if (decision.action === 'end-session') {
      await endSession(presented, metadata);
      throw errors.refresh_token_already_used();
    }
    await checkUsable(user, session, metadata.nowMs);
    const answered = await answer(decision, presented, metadata);
    if (answered === undefined) return 'again';
    const { refreshToken, ...refresh } = answered;
    return { ...issueTokens(deps, { user, session, refreshToken, nowMs: metadata.nowMs }), refresh };
  }

  /** With all of its refresh and access tokens, before the request is refused. */
  async function endSession({ session, user }: PresentedToken, metadata: RequestMetadata): Promise<void> {
    const audit = auditEntry(user, 'token_revoked', { metadata });
    await sessions.end('local', { userId: user.id, sessionId: session.id }, audit);
  }

  async function answer(
    decision: Exclude<RefreshDecision, { action: 'end-session' | 'refuse' }>,
    presented: PresentedToken,
    metadata: RequestMetadata,
  ): Promise<Answered | undefined> {
    switch (decision.action) {
      case 'rotate': {
        const refreshToken = await rotate(presented, metadata);
        return refreshToken === undefined ? undefined : { refreshToken, rotated: true, causes: [] };
      }
      case 'keep':
        await sessions.touch(presented.session.id, new Date(metadata.nowMs));
        return { refreshToken: presented.text, rotated: false, causes: [] };
      case 'answer':
        return { refreshToken: decision.token, rotated: false, causes: decision.causes };
    }
  }

  /** Answers the successor; undefined when somebody else was faster. */
  async function rotate(presented: PresentedToken, metadata: RequestMetadata): Promise<string | undefined> {
    const { text, session, user, refreshCounter } = presented;
    const sessionId = session.id;
    const refresh = {
      sessionId,
      userAgent: metadata.userAgent,
      ip: metadata.clientAddress,
      at: new Date(metadata.nowMs),
    };
    const audit = auditEntry(user, 'token_refreshed', { metadata });
    if (refreshCounter !== undefined) {
      const { counter, hmacKey } = refreshCounter;
      const advanced = await sessions.advance({ ...refresh, from: counter }, audit);
      return advanced ? makeCounterToken({ sessionId, counter: counter + 1 }, hmacKey) : undefined;
    }
    if (isUpgraded(sessionId)) {
      const hmacKey = random.hmacKey();
      const upgraded = await sessions.upgrade({ ...refresh, token: text, hmacKey }, audit);
      return upgraded ? makeCounterToken({ sessionId, counter: 0 }, hmacKey) : undefined;
    }
    const successor = random.refreshToken();
    return (await sessions.rotate({ ...refresh, token: text, successor }, audit)) ? successor : undefined;
  }

  function isUpgraded(sessionId: string): boolean {
    const { refreshTokenAlgorithmVersion: version, refreshTokenUpgradePercentage: percentage } = settings;
    return version === 2 && isAmongPercent(sessionId, percentage);
  }

  async function checkUsable(user: User, session: Session, nowMs: number): Promise<void> {
    if (isBanned(user, nowMs))
      throw errors.user_banned({ message: 'Invalid Refresh Token: User Banned', httpStatus: 400 });
    const end = sessionEnd(session, settings, nowMs);
    if (end !== undefined) throw sessionExpired(end === 'inactivity' ? ' (Inactivity)' : '');
    if (isLowAssurance(session, user, { limitMs: settings.sessionAllowLowAalMs, nowMs }))
      throw sessionExpired(' (Low AAL: User Needs MFA Verification)');
    if (settings.sessionSinglePerUser && (await sessions.hasNewer(session.id, settings.sessionTags)))
      throw sessionExpired(' (Revoked by Newer Login)');
  }

  return async (text, metadata) => {
    for (let look = 1; look <= maxLooks; look++) {
      const outcome = await attempt(text, metadata);
      if (outcome !== 'again') return outcome;
    }
    throw errors.conflict({
      message: 'Too many concurrent token refresh requests on the same session or refresh token',
    });
  };
}

function sessionExpired(why: string) {
  return errors.session_expired({ message: `Invalid Refresh Token: Session Expired${why}`, httpStatus: 400 });
}
