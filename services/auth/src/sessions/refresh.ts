import { auditEntry } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { isDigest, toStoredForm } from '../keys/secrets.ts';
import { limits } from '../limits/table.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import { isBanned, type User } from '../users/user.ts';
import { narrowClient, signAccessToken, type TokenAccess } from './access-token.ts';
import type { SessionsContext } from './context.ts';
import type { IssuedSession, RefreshOutcome } from './issue.ts';
import type { RefreshableSession, StoredRefreshToken } from './refresh-store.ts';
import {
  type CounterToken,
  findSuccessor,
  makeCounterToken,
  makeHmacKey,
  makeSuccessor,
  parseCounterToken,
} from './refresh-token.ts';
import type { Session } from './store.ts';
import { checkUsable } from './usable.ts';

/** A presented refresh token with its session. */
export interface PresentedToken extends RefreshableSession {
  readonly text: string;
  readonly token: RefreshToken;
}

/** A refresh token, and the OAuth client that has authenticated and presents it. */
export interface RefreshRequest extends TokenAccess {
  readonly refreshToken: string;
  readonly clientId?: string | undefined;
  /** The key that the client proves to have; the access token is bound to it. */
  readonly thumbprint?: string | undefined;
}

/** A concurrent refresh makes one retry necessary; a third attempt is only a bound. */
const maxAttempts = 3;

/**
 * Exchanges a refresh token for an access token and, with rotation, a new refresh token: one
 * statement that reads, and one that writes only if nothing has changed since. Reuse of a token
 * ends the session, although the request fails.
 */
export async function refreshSession(
  context: SessionsContext,
  request: RefreshRequest,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const session = await attemptRefresh(context, request, metadata);
    if (session !== undefined) return session;
  }
  throw errors.conflict({
    message: 'Too many concurrent token refresh requests on the same session or refresh token',
  });
}

/**
 * The session of a refresh token that a browser keeps in a cookie. The token is refreshed when an
 * access token of the same age would have expired, rather than with each request: requests of
 * several tabs overlap.
 *
 * @throws AppError as `refreshSession`
 */
export async function resumeSession(
  context: SessionsContext,
  refreshToken: string,
  metadata: RequestMetadata,
): Promise<{ readonly user: User; readonly session: Session; readonly refreshToken: string }> {
  const { settings } = context;
  const presented = await findPresentedToken(context, { refreshToken });
  const { token, session } = presented;
  // Twice within the inactivity timeout, so that it does not end a session that is in use.
  const inactivityMs = settings.sessionInactivityTimeoutMs || Number.POSITIVE_INFINITY;
  const lifeMs = Math.min(settings.jwtExpMs, inactivityMs / 2);
  if (token.revoked || token.updatedAt.getTime() + lifeMs <= metadata.nowMs)
    return { ...(await refreshSession(context, { refreshToken }, metadata)), session };
  await checkUsable(context, presented, metadata.nowMs);
  return { user: presented.user, session, refreshToken };
}

/**
 * Issues tokens for a session that was handed over, so that its current refresh token is unused.
 *
 * @throws AppError `session_not_found`, and as `refreshSession`
 */
export async function reissueSession(
  context: SessionsContext,
  sessionId: string,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const found = await context.store.refreshTokens.findCurrent(sessionId);
  if (found === undefined) throw errors.session_not_found();
  const { user, session, refreshCounter, storedToken } = found;
  await checkUsable(context, { user, session }, metadata.nowMs);
  const accessToken = await signAccessToken(context, { user, session, method: 'token_refresh' }, metadata);
  if (refreshCounter === undefined && isDigest(storedToken)) {
    // The token itself is unknown. Its browser gave it up.
    const refreshToken = await rotate(context, { ...found, stored: storedToken }, metadata);
    if (refreshToken === undefined) throw errors.conflict();
    return { ...accessToken, refreshToken, sessionId, user };
  }
  const refreshToken =
    refreshCounter === undefined
      ? storedToken
      : makeCounterToken({ sessionId, counter: refreshCounter.counter }, refreshCounter.hmacKey);
  return { ...accessToken, refreshToken, sessionId, user };
}

/** Returns undefined if another request has refreshed the session in the meantime. */
async function attemptRefresh(
  context: SessionsContext,
  request: RefreshRequest,
  metadata: RequestMetadata,
): Promise<IssuedSession | undefined> {
  const { store, settings } = context;
  const presented = await findPresentedToken(context, request);
  const { token, session, user } = presented;
  checkKey(session, request);
  const decision = decideRefresh(token, settings, metadata.nowMs);
  const used = { method: 'token_refresh', reason: 'refresh_token_already_used' };
  if (decision.action === 'refuse') {
    recordFailedSignIn(context, user, used, metadata);
    throw errors.refresh_token_already_used();
  }
  if (decision.action === 'end-session') {
    // Answered with 504 by now: the client may have repeated it, and used newer tokens since.
    if (context.nowMs() - metadata.nowMs >= settings.maxRequestDurationMs) throw errors.request_timeout();
    const audit = auditEntry(user, 'token_revoked', { metadata, traits: { reason: 'reuse' } });
    await store.sessions.end('reused', { userId: user.id, sessionId: session.id }, audit);
    recordFailedSignIn(context, user, used, metadata);
    throw errors.refresh_token_already_used();
  }
  if (isBanned(user, metadata.nowMs))
    recordFailedSignIn(context, user, { method: 'token_refresh', reason: 'user_banned' }, metadata);
  await checkUsable(context, presented, metadata.nowMs);
  await limitRefreshes(context, { session, repeats: decision.action === 'answer' }, metadata);
  const client = session.client && narrowClient(session.client, request);
  const { thumbprint } = request;
  const claimed = { user, session: { ...session, client }, method: 'token_refresh', thumbprint };
  const accessToken = await signAccessToken(context, claimed, metadata);
  const applied = await applyDecision(context, { decision, presented }, metadata);
  if (applied === undefined) return undefined;
  const { refreshToken, ...refresh } = applied;
  // Concurrent requests are no event, and are many.
  if (refresh.causes.length > 0 && !refresh.causes.includes('concurrent-refresh'))
    recordRepeatedRefresh(context, user, refresh.causes, metadata);
  return { ...accessToken, refreshToken, sessionId: session.id, user, client, refresh };
}

/**
 * Runs before reuse is detected: without the key, a stolen token must not even end the session.
 *
 * @throws AppError `refresh_token_not_found`
 * @see RFC 9449 §5 https://www.rfc-editor.org/rfc/rfc9449#section-5
 */
function checkKey({ client }: Session, { thumbprint }: RefreshRequest): void {
  const bound = client?.thumbprint ?? undefined;
  if (bound === undefined || bound === thumbprint) return;
  const message = 'The refresh token is bound to a key, of which the request has no DPoP proof';
  throw errors.refresh_token_not_found({ message });
}

/** Records the second use of a token whose first response was lost, or whose copy was stolen. */
function recordRepeatedRefresh(
  { store, background }: SessionsContext,
  user: User,
  causes: readonly ReuseCause[],
  metadata: RequestMetadata,
): void {
  const audit = auditEntry(user, 'token_refreshed', { metadata, traits: { reuse: causes.join() } });
  background.run('audit entry of a repeated refresh', () => store.audit.append(audit));
}

/**
 * Counts a refresh by its session. Refreshes that are further apart than the limit allows on
 * average need no statement. A client that is refused has an access token that is still valid.
 *
 * @throws AppError `over_request_rate_limit`
 */
async function limitRefreshes(
  { limiter, settings }: SessionsContext,
  { session, repeats }: { readonly session: Session; readonly repeats: boolean },
  { nowMs }: RequestMetadata,
): Promise<void> {
  const { refillEveryMs } = limits.refresh.quota(settings);
  const lastMs = (session.refreshedAt ?? session.createdAt).getTime();
  if (repeats || nowMs - lastMs < refillEveryMs) await limiter.enforce('refresh', { key: session.id, nowMs });
}

/** @throws AppError `refresh_token_not_found`, `refresh_token_already_used` */
export async function findPresentedToken(
  context: SessionsContext,
  { refreshToken: text, clientId }: RefreshRequest,
): Promise<PresentedToken> {
  const counterToken = parseCounterToken(text);
  const found =
    counterToken === undefined
      ? await findStoredToken(context, text)
      : await findCounterToken(context, counterToken);
  // RFC 6749 §6: a token is bound to its client.
  if (found === undefined || found.session.client?.id !== clientId) throw errors.refresh_token_not_found();
  return { ...found, text };
}

async function findStoredToken(
  context: SessionsContext,
  text: string,
): Promise<Omit<PresentedToken, 'text'> | undefined> {
  if (!isRefreshToken(text)) return undefined;
  const found = await context.store.refreshTokens.findByToken(text);
  if (found === 'reused') throw errors.refresh_token_already_used();
  if (found === undefined) return undefined;
  return { ...found, token: { ...found.token, successor: await storedSuccessor(context, text, found) } };
}

async function findCounterToken(
  { store }: SessionsContext,
  presented: CounterToken,
): Promise<Omit<PresentedToken, 'text'> | undefined> {
  const found = await store.refreshTokens.findBySession(presented.sessionId);
  if (found?.refreshCounter === undefined) return undefined;
  const { session, refreshCounter } = found;
  // Negative when the database was restored from a backup that is older than the token.
  const behind = refreshCounter.counter - presented.counter;
  if (!presented.isSignedWith(refreshCounter.hmacKey) || behind < 0) return undefined;
  const token = {
    revoked: behind > 0,
    updatedAt: session.refreshedAt ?? session.createdAt,
    successor: behind > 0 ? counterSuccessor(found, behind === 1) : undefined,
  };
  return { ...found, token };
}

/** The stored successor, or the current token of the session if that may be the answer. */
async function storedSuccessor(
  context: SessionsContext,
  text: string,
  found: RefreshableSession & { readonly token: StoredRefreshToken },
): Promise<Successor | undefined> {
  const { activeChild, hasChild, revoked } = found.token;
  if (activeChild !== undefined) {
    const token = findSuccessor(context, { stored: toStoredForm(text), successor: activeChild });
    return token === undefined ? undefined : { token, isNext: true };
  }
  if (revoked && found.refreshCounter === undefined && context.settings.refreshTokenAllowReuse)
    return laterSuccessor(context, found);
  return counterSuccessor(found, !hasChild && found.refreshCounter?.counter === 0);
}

/** The active token, several steps after the presented one. A digest cannot be returned. */
async function laterSuccessor(
  { store }: SessionsContext,
  { session }: RefreshableSession,
): Promise<Successor | undefined> {
  const { storedToken: token = '' } = (await store.refreshTokens.findCurrent(session.id)) ?? {};
  return token === '' || isDigest(token) ? undefined : { token, isNext: false };
}

function counterSuccessor(
  { session, refreshCounter }: RefreshableSession,
  isNext: boolean,
): Successor | undefined {
  if (refreshCounter === undefined) return undefined;
  const { counter, hmacKey } = refreshCounter;
  return { token: makeCounterToken({ sessionId: session.id, counter }, hmacKey), isNext };
}

async function applyDecision(
  context: SessionsContext,
  {
    decision,
    presented,
  }: {
    readonly decision: Exclude<RefreshDecision, { action: 'end-session' | 'refuse' }>;
    readonly presented: PresentedToken;
  },
  metadata: RequestMetadata,
): Promise<(RefreshOutcome & { readonly refreshToken: string }) | undefined> {
  switch (decision.action) {
    case 'rotate': {
      const refreshToken = await rotate(
        context,
        { ...presented, stored: toStoredForm(presented.text) },
        metadata,
      );
      return refreshToken === undefined ? undefined : { refreshToken, rotated: true, causes: [] };
    }
    case 'keep':
      await context.store.refreshTokens.touch(presented.session.id, new Date(metadata.nowMs));
      return { refreshToken: presented.text, rotated: false, causes: [] };
    case 'answer':
      return { refreshToken: decision.token, rotated: false, causes: decision.causes };
  }
}

/** Returns the successor; undefined if a concurrent request was faster. */
async function rotate(
  context: SessionsContext,
  { stored, session, user, refreshCounter }: RefreshableSession & { readonly stored: string },
  metadata: RequestMetadata,
): Promise<string | undefined> {
  const { store, random, settings } = context;
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
    const advanced = await store.refreshTokens.advance({ ...refresh, from: counter }, audit);
    return advanced ? makeCounterToken({ sessionId, counter: counter + 1 }, hmacKey) : undefined;
  }
  const { refreshTokenAlgorithmVersion: version, refreshTokenUpgradePercentage: percentage } = settings;
  if (version === 2 && isSampled(sessionId, percentage)) {
    const hmacKey = makeHmacKey(random);
    const upgraded = await store.refreshTokens.upgrade({ ...refresh, token: stored, hmacKey }, audit);
    return upgraded ? makeCounterToken({ sessionId, counter: 0 }, hmacKey) : undefined;
  }
  const successor = makeSuccessor(context, stored);
  const rotated = await store.refreshTokens.rotate({ ...refresh, token: stored, successor }, audit);
  return rotated ? successor : undefined;
}

/** State of a presented refresh token. */
interface RefreshToken {
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** The current token of the session; absent if it is unknown. */
  readonly successor: Successor | undefined;
}

interface Successor {
  readonly token: string;
  /** Whether it directly follows the presented token, and was therefore never used. */
  readonly isNext: boolean;
}

/** Why a token may be used again: concurrent refreshes, a lost response. Values of a header. */
export type ReuseCause = 'concurrent-refresh' | 'fail-to-save';

type RefreshDecision =
  /** Revoke it and issue a successor. */
  | { readonly action: 'rotate' }
  /** Rotation is disabled: record the refresh and return the same token. */
  | { readonly action: 'keep' }
  /** Return this token, the current one. */
  | { readonly action: 'answer'; readonly token: string; readonly causes: readonly ReuseCause[] }
  /** Reject it. Without rotation, reuse of a replaced token does not indicate theft. */
  | { readonly action: 'refuse' }
  /** Token reuse, which indicates theft: end the session. */
  | { readonly action: 'end-session' };

type RotationSettings = Pick<
  Settings,
  'refreshTokenRotationEnabled' | 'refreshTokenReuseIntervalMs' | 'refreshTokenAllowReuse'
>;

function decideRefresh(token: RefreshToken, settings: RotationSettings, nowMs: number): RefreshDecision {
  if (!token.revoked) return { action: settings.refreshTokenRotationEnabled ? 'rotate' : 'keep' };
  const { successor } = token;
  const causes = reuseCauses(token, settings, nowMs);
  if (successor !== undefined && causes.length > 0)
    return { action: 'answer', token: successor.token, causes };
  return { action: settings.refreshTokenRotationEnabled ? 'end-session' : 'refuse' };
}

/**
 * Why a second use is legitimate. A successor that was never used may have been lost with its
 * response, however long ago: the client could not use another token since.
 */
function reuseCauses(
  { updatedAt, successor }: RefreshToken,
  { refreshTokenReuseIntervalMs: intervalMs, refreshTokenAllowReuse }: RotationSettings,
  nowMs: number,
): readonly ReuseCause[] {
  const isRecent = nowMs - updatedAt.getTime() < intervalMs;
  const mayBeLost = successor?.isNext === true && (intervalMs > 0 || refreshTokenAllowReuse);
  return [
    ...(isRecent ? (['concurrent-refresh'] as const) : []),
    ...(mayBeLost ? (['fail-to-save'] as const) : []),
  ];
}

/** Whether the text has the form of a refresh token of version 1. Saves a query for other texts. */
function isRefreshToken(text: string): boolean {
  return /^[a-z0-9_-]{12,64}$/i.test(text);
}

/** Whether a session is among `percentage` percent of all sessions; deterministic. */
function isSampled(sessionId: string, percentage: number): boolean {
  return Number.parseInt(sessionId.slice(0, 8), 16) % 100 < percentage;
}
