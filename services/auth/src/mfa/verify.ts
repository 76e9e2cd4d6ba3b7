import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { bucketQuota } from '../messages/quotas.ts';
import { createNotify } from '../messages/send.ts';
import { type IssuedSession, issueTokens } from '../sessions/issue.ts';
import { makeCounterToken } from '../sessions/refresh-token.ts';
import type { Session } from '../sessions/sessions.ts';
import type { User } from '../users/user.ts';
import { totpPeriodOf } from './enroll.ts';
import { type Factor, hasExpired, ownFactor } from './factors.ts';
import type { Challenge } from './store.ts';

/** A code for a challenge. */
interface FactorVerification {
  readonly user: User;
  readonly session: Session;
  readonly factorId: string;
  readonly challengeId: string;
  readonly code: string;
}

/** Verifies a code: the session then has proved two factors. */
export type VerifyFactor = (
  verification: FactorVerification,
  metadata: RequestMetadata,
) => Promise<IssuedSession>;

const minuteMs = 60_000;

/** Creates {@link VerifyFactor}. */
export function createVerifyFactor(deps: Context): VerifyFactor {
  const { store, random, settings } = deps;
  const notify = createNotify(deps);
  const quota = bucketQuota(settings.rateLimitFactorVerify, minuteMs);

  /** Per factor, whatever the address: whoever has the password has a million codes to guess, and many addresses perhaps. */
  async function countAttempt(factor: Factor, nowMs: number): Promise<void> {
    const answer = await store.quotas.take({ limiter: 'factor_attempt', key: factor.id, quota }, nowMs);
    if (!answer.allowed)
      throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(answer.retryAfterMs / 1000));
  }

  function checkChallenge(challenge: Challenge | undefined, nowMs: number): Challenge {
    if (challenge === undefined)
      throw errors.mfa_factor_not_found({
        message: 'MFA factor with the provided challenge ID not found',
        httpStatus: 422,
      });
    if (challenge.isSpent || !challenge.isSameAddress) throw errors.mfa_ip_address_mismatch();
    if (hasExpired(challenge.createdAt, settings.mfaChallengeExpiryMs, nowMs))
      throw errors.mfa_challenge_expired();
    return challenge;
  }

  /** User and session as they are after the verification. */
  async function afterwards({ user, session }: FactorVerification) {
    const found = await store.sessions.findWithUser(user.id, session.id);
    if (found?.session === undefined) throw errors.session_not_found();
    return { user: found.user, session: found.session };
  }

  return async (verification, metadata) => {
    const { user, session, challengeId, code } = verification;
    const factor = ownFactor(user, verification.factorId);
    if (factor.type !== 'totp' || !settings.mfaTotpVerifyEnabled) throw errors.mfa_totp_verify_not_enabled();
    const key = { challengeId, factorId: factor.id, ip: metadata.clientAddress };
    const challenge = checkChallenge(await store.factors.findChallenge(key), metadata.nowMs);
    await countAttempt(factor, metadata.nowMs);
    const period = totpPeriodOf(code, challenge.secret, metadata.nowMs);
    const isFresh = period !== undefined && period > challenge.lastPeriod;
    if (!isFresh) throw errors.mfa_verification_failed();
    const kept = random.refreshToken();
    const at = new Date(metadata.nowMs);
    const traits = { factor_id: factor.id, challenge_id: challengeId, factor_type: factor.type };
    const verified = await store.factors.verify(
      { ...key, userId: user.id, sessionId: session.id, method: 'totp', period, refreshToken: kept, at },
      auditEntry(user, 'verification_attempted', { metadata, traits }),
    );
    // Somebody else has spent the challenge or the code in the meantime.
    if (!verified) throw errors.mfa_ip_address_mismatch();
    const after = await afterwards(verification);
    if (factor.status === 'unverified')
      notify(user, 'MFA_FACTOR_ENROLLED_NOTIFICATION', { FactorType: factor.type });
    const { refreshCounter } = verified;
    const refreshToken =
      refreshCounter === undefined
        ? kept
        : makeCounterToken(
            { sessionId: session.id, counter: refreshCounter.counter },
            refreshCounter.hmacKey,
          );
    return issueTokens(deps, { ...after, refreshToken, nowMs: metadata.nowMs });
  };
}
