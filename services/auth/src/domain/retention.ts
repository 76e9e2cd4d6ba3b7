import type { Millis } from '@tollgate/kit/duration';
import { knownNetworkMs, rememberMs } from './guessing.ts';
import { flowLifeMs } from './pkce.ts';
import type { Quota } from './quota.ts';

/** Kinds of rows that nobody needs any more after a while. */
export const expiringKinds = [
  'revoked_refresh_tokens',
  'ended_sessions',
  'old_sessions',
  'idle_sessions',
  'one_time_tokens',
  'flow_states',
  'mfa_challenges',
  'unverified_factors',
  'rate_limits',
  'known_networks',
  'anonymous_users',
] as const;

/** A kind of rows that expire. */
export type ExpiringKind = (typeof expiringKinds)[number];

/** The settings that say how long things are good for. */
export interface RetentionPolicy {
  /** 0 for no end. */
  readonly sessionTimeboxMs: Millis;
  /** 0 for any. */
  readonly sessionInactivityTimeoutMs: Millis;
  readonly mailerOtpExpMs: Millis;
  readonly smsOtpExpMs: Millis;
  readonly rateLimitEmailSent: Quota;
  readonly rateLimitSmsSent: Quota;
}

const dayMs = 24 * 60 * 60 * 1000;
/** Whoever looks at what went wrong yesterday finds it. */
const graceMs = dayMs;
/** Whoever has not come back by then has lost the token that would have let them in, most likely. */
const anonymousUsersMs = 30 * dayMs;
/** A stolen token that is used so much later is not found, which is a refusal too; what is lost is that its family is revoked. */
const revokedTokensMs = 30 * dayMs;

/** The moment before which rows of a kind are removed: made, or over, then. Undefined where they never expire. */
export function removeBefore(kind: ExpiringKind, policy: RetentionPolicy, nowMs: number): Date | undefined {
  const lifeMs = lifeOf(kind, policy);
  return lifeMs === undefined ? undefined : new Date(nowMs - lifeMs - graceMs);
}

function lifeOf(kind: ExpiringKind, policy: RetentionPolicy): Millis | undefined {
  switch (kind) {
    case 'revoked_refresh_tokens':
      return revokedTokensMs;
    case 'anonymous_users':
      return anonymousUsersMs;
    case 'old_sessions':
      return policy.sessionTimeboxMs || undefined;
    case 'idle_sessions':
      return policy.sessionInactivityTimeoutMs || undefined;
    case 'one_time_tokens':
      return Math.max(policy.mailerOtpExpMs, policy.smsOtpExpMs);
    case 'flow_states':
      return policy.mailerOtpExpMs + flowLifeMs;
    case 'rate_limits':
      return Math.max(
        ...[periodOf(policy.rateLimitEmailSent), periodOf(policy.rateLimitSmsSent)],
        // A code without guesses left stays refused until it has expired.
        ...[policy.mailerOtpExpMs, policy.smsOtpExpMs, rememberMs],
      );
    case 'known_networks':
      return knownNetworkMs;
    default:
      return 0;
  }
}

/** How long what has happened counts: a bucket is full again after so much time. */
function periodOf(quota: Quota): Millis {
  return quota.kind === 'window' ? quota.periodMs : quota.size * quota.refillEveryMs;
}
