import type { Millis } from '@tollgate/kit/duration';

/** What is known of a refresh token that was presented. */
export interface RefreshToken {
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** The token that is good now in its place; absent when nobody can tell. */
  readonly successor: Successor | undefined;
}

/** The token that took the place of another one. */
export interface Successor {
  readonly token: string;
  /** Is it the very next one? */
  readonly isNext: boolean;
}

/** Why a token may be used again: clients that refresh at once, a lost answer, a setting. Values of a header. */
export type ReuseCause = 'concurrent-refresh' | 'fail-to-save' | 'always-allow';

/** What is to happen with a refresh token that was presented. */
export type RefreshDecision =
  /** Revoke it and issue a successor. */
  | { readonly action: 'rotate' }
  /** It stays good: note that it was used, and answer it. */
  | { readonly action: 'keep' }
  /** Answer this token, which is good now. */
  | { readonly action: 'answer'; readonly token: string; readonly causes: readonly ReuseCause[] }
  /** Refuse it: without rotation a token that another one has replaced says nothing of a theft. */
  | { readonly action: 'refuse' }
  /** It was stolen or used twice: the session ends. */
  | { readonly action: 'end-session' };

/** The settings that say what reuse means. */
export interface RotationPolicy {
  readonly refreshTokenRotationEnabled: boolean;
  readonly refreshTokenReuseIntervalMs: Millis;
  /** The previous token is no sign of a theft, however long after. */
  readonly refreshTokenAllowReuse: boolean;
}

/** Decides what a refresh token is good for. */
export function decideRefresh(token: RefreshToken, policy: RotationPolicy, nowMs: number): RefreshDecision {
  if (!token.revoked) {
    return { action: policy.refreshTokenRotationEnabled ? 'rotate' : 'keep' };
  }
  const { successor } = token;
  const causes = reuseCauses(token, policy, nowMs);
  if (successor !== undefined && causes.length > 0)
    return { action: 'answer', token: successor.token, causes };
  return { action: policy.refreshTokenRotationEnabled ? 'end-session' : 'refuse' };
}

/** What speaks for a second use; a lost answer alone does not, unless the settings say so. */
function reuseCauses(token: RefreshToken, policy: RotationPolicy, nowMs: number): readonly ReuseCause[] {
  const isRecent = nowMs - token.updatedAt.getTime() < policy.refreshTokenReuseIntervalMs;
  const isNext = token.successor?.isNext === true;
  const isAllowed = isNext && policy.refreshTokenAllowReuse;
  if (!isRecent && !isAllowed) return [];
  return [
    ...(isRecent ? (['concurrent-refresh'] as const) : []),
    ...(isNext ? (['fail-to-save'] as const) : []),
    ...(isAllowed ? (['always-allow'] as const) : []),
  ];
}

/** Has the text the form of a refresh token of version 1? Whatever has not is unknown without a look at the database. */
export function isRefreshToken(text: string): boolean {
  return /^[a-z0-9_-]{12,64}$/i.test(text);
}

/** Does a session belong to so many percent of all? The answer is the same each time. */
export function isAmongPercent(sessionId: string, percentage: number): boolean {
  // Ids are random.
  return Number.parseInt(sessionId.slice(0, 8), 16) % 100 < percentage;
}
