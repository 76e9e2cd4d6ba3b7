import { auditEntry } from '../../domain/audit-entry.ts';
import { decideRefresh, isRefreshToken, type RefreshDecision } from '../../domain/refresh-token.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { isLowAssurance, type Session, sessionEnd } from '../../domain/session.ts';
import { isBanned, type User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { type IssueDeps, type IssuedSession, issueTokens } from '../sessions/start-session.ts';

/** Exchanges a refresh token for a new access token, and as a rule for its successor. */
export type RefreshSession = (refreshToken: string, facts: RequestFacts) => Promise<IssuedSession>;

/** What a refresh takes. */
export type RefreshDeps = IssueDeps &
  DepsWith<
    'store' | 'random',
    | 'refreshTokenRotationEnabled'
    | 'refreshTokenReuseIntervalMs'
    | 'refreshTokenAllowReuse'
    | 'sessionTimeboxMs'
    | 'sessionInactivityTimeoutMs'
    | 'sessionAllowLowAalMs'
    | 'sessionSinglePerUser'
    | 'sessionTags'
  >;

/** Of requests that race for one token all but one look a second time; a third look finds what nobody can cause by asking. */
const maxLooks = 3;

type Found = NonNullable<Awaited<ReturnType<RefreshDeps['store']['sessions']['findByRefreshToken']>>>;

/**
 * Creates {@link RefreshSession}: one statement that reads, one that writes only if nothing has changed since. Reuse revokes the
 * family of tokens for good, although the request fails.
 */
export function createRefreshSession(deps: RefreshDeps): RefreshSession {
  const { sessions } = deps.store;

  async function attempt(presented: string, facts: RequestFacts): Promise<IssuedSession | 'again'> {
    const found = await sessions.findByRefreshToken(presented);
    if (found === undefined) throw errors.refresh_token_not_found();
    const { token, session, user } = found;
    const decision = decideRefresh(token, deps.settings, facts.nowMs);
    if (decision.action === 'revoke-family') {
      await revokeFamily(found, facts);
      throw errors.refresh_token_already_used();
    }
    await checkUsable(user, session, facts.nowMs);
    const refreshToken = await tokenAfter(decision, found, facts);
    if (refreshToken === undefined) return 'again';
    return issueTokens(deps, { user, session, refreshToken, nowMs: facts.nowMs });
  }

  /** One transaction, which is over when the request is refused. */
  async function revokeFamily({ session, user }: Found, facts: RequestFacts): Promise<void> {
    const audit = auditEntry(user, 'token_revoked', { facts });
    await deps.store.transaction(async (within) => {
      await within.sessions.lock(session.id);
      await within.sessions.revokeFamily(session.id, new Date(facts.nowMs), audit);
    });
  }

  async function tokenAfter(
    decision: Exclude<RefreshDecision, { action: 'revoke-family' }>,
    found: Found,
    facts: RequestFacts,
  ): Promise<string | undefined> {
    switch (decision.action) {
      case 'rotate':
        return rotate(found, facts);
      case 'keep':
        await sessions.touch(found.session.id, new Date(facts.nowMs));
        return found.token.token;
      case 'answer':
        return decision.token;
    }
  }

  async function checkUsable(user: User, session: Session, nowMs: number): Promise<void> {
    const { settings } = deps;
    if (isBanned(user, nowMs))
      throw errors.user_banned({ message: 'Invalid Refresh Token: User Banned', httpStatus: 400 });
    const end = sessionEnd(session, settings, nowMs);
    if (end !== undefined) throw sessionExpired(end === 'inactivity' ? ' (Inactivity)' : '');
    if (isLowAssurance(session, user, { limitMs: settings.sessionAllowLowAalMs, nowMs }))
      throw sessionExpired(' (Low AAL: User Needs MFA Verification)');
    if (settings.sessionSinglePerUser && (await sessions.hasNewer(session.id, settings.sessionTags)))
      throw sessionExpired(' (Revoked by Newer Login)');
  }

  /** Answers the successor; undefined when somebody else was faster. */
  async function rotate({ token, session, user }: Found, facts: RequestFacts): Promise<string | undefined> {
    const successor = deps.random.refreshToken();
    const rotated = await sessions.rotate(
      {
        token: token.token,
        successor,
        sessionId: session.id,
        userAgent: facts.userAgent,
        ip: facts.clientAddress,
        at: new Date(facts.nowMs),
      },
      auditEntry(user, 'token_refreshed', { facts }),
    );
    return rotated ? successor : undefined;
  }

  return async (presented, facts) => {
    if (!isRefreshToken(presented)) throw errors.refresh_token_not_found();
    for (let look = 1; look <= maxLooks; look++) {
      const outcome = await attempt(presented, facts);
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
