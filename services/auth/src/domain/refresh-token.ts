import type { Millis } from '@tollgate/kit/duration';

/** A refresh token as it is kept, with its successor. */
export interface RefreshToken {
  readonly token: string;
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** The successor that is good now; absent when there is none or it has been used itself. */
  readonly activeChild: string | undefined;
}

/** What is to happen with a refresh token that was presented. */
export type RefreshDecision =
  /** Revoke it and issue a successor. */
  | { readonly action: 'rotate' }
  /** It stays good: note that it was used, and answer it. */
  | { readonly action: 'keep' }
  /** Answer this token, which is good now. */
  | { readonly action: 'answer'; readonly token: string }
  /** It was stolen or used twice: the session ends. */
  | { readonly action: 'revoke-family' };

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
  const ageMs = nowMs - token.updatedAt.getTime();
  const mayComeAgain = policy.refreshTokenAllowReuse || ageMs < policy.refreshTokenReuseIntervalMs;
  return mayComeAgain && token.activeChild !== undefined
    ? { action: 'answer', token: token.activeChild }
    : { action: 'revoke-family' };
}

/** Has the text the form of a refresh token? Whatever has not is unknown without a look at the database. */
export function isRefreshToken(text: string): boolean {
  return /^[a-z0-9_-]{12,64}$/i.test(text);
}
