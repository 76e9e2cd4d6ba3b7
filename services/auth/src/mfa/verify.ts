import { auditEntry } from '../audit/audit-log.ts';
import { errors, UsedCodeError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { notify } from '../messages/send.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import type { Session } from '../sessions/store.ts';
import { recordFailedSignIn } from '../users/failed-sign-in.ts';
import type { User } from '../users/user.ts';
import { hasExpired, type MfaContext } from './context.ts';
import { checkFactorAttempt, factorGuess } from './factor-guess.ts';
import type { FactorBody } from './factor-type.ts';
import { getFactorType } from './factor-types.ts';
import { checkMayUse, getFactor } from './factors.ts';
import { raiseSession } from './raise-session.ts';
import type { Challenge } from './store.ts';

interface FactorVerification {
  readonly user: User;
  readonly session: Session;
  readonly factorId: string;
  readonly challengeId: string;
  readonly body: FactorBody;
}

/** Verifies the answer to a challenge, raises the session to `aal2`, and issues its tokens. */
export async function verifyFactor(
  context: MfaContext,
  verification: FactorVerification,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const { store } = context;
  const { user, session, challengeId, body } = verification;
  const { nowMs } = metadata;
  const factor = getFactor(user, verification.factorId);
  checkMayUse(user, session, factor);
  const { method, invalidMessage, verify, isUsed } = getFactorType(context, 'verify', factor.type);
  const key = { challengeId, factorId: factor.id, ip: metadata.clientAddress };
  const challenge = checkChallenge(await store.factors.findChallenge(key));
  if (hasExpired(challenge.createdAt, context.settings.mfaChallengeExpiryMs, nowMs)) {
    await store.factors.deleteChallenge(challengeId);
    throw errors.mfa_challenge_expired();
  }
  const attempt = `${factor.id} ${metadata.clientNetwork ?? ''}`;
  await context.limiter.enforce('factor_attempt', { key: attempt, nowMs });
  const columns = await context.limiter.guess(
    factorGuess(context, { kind: 'factor', user }, metadata),
    metadata,
    () => verify(context, { user, factor, challenge, body }, metadata),
  );
  await checkFactorAttempt(context, { user, factor, valid: columns !== undefined }, metadata);
  if (columns === undefined) {
    const failure = { method, reason: 'wrong_code', factor_id: factor.id };
    if (factor.status === 'verified') recordFailedSignIn(context, user, failure, metadata);
    if (isUsed?.(challenge, body, nowMs)) throw new UsedCodeError(invalidMessage);
    throw errors.mfa_verification_failed({ message: invalidMessage });
  }
  const traits = { factor_id: factor.id, challenge_id: challengeId, factor_type: factor.type };
  const issued = await raiseSession(
    context,
    { user, session, factorId: factor.id, method },
    (raised) =>
      store.factors.verify(
        { ...raised, ...columns, challengeId },
        auditEntry(user, 'verification_attempted', { metadata, traits }),
      ),
    metadata,
  );
  // The challenge or the code has been spent concurrently.
  if (issued === undefined) throw errors.mfa_ip_address_mismatch();
  if (factor.status === 'unverified')
    notify(
      context,
      {
        user,
        kind: 'MFA_FACTOR_ENROLLED_NOTIFICATION',
        variables: { FactorType: factor.type },
      },
      metadata,
    );
  return issued;
}

function checkChallenge(challenge: Challenge | undefined): Challenge {
  if (challenge === undefined)
    throw errors.mfa_factor_not_found({
      message: 'MFA factor with the provided challenge ID not found',
      httpStatus: 422,
    });
  if (challenge.isSpent || !challenge.isSameAddress) throw errors.mfa_ip_address_mismatch();
  return challenge;
}
