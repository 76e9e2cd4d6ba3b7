import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import { checkFactorAttempt } from '../hooks/hooks.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { bucketQuota, enforceQuota } from '../messages/quotas.ts';
import { notify } from '../messages/send.ts';
import {
  type IssuedSession,
  makeCounterToken,
  makeRefreshToken,
  signAccessToken,
} from '../sessions/issue.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import { type FactorBody, getFactorType } from './factor-types.ts';
import { type Factor, getFactor, hasExpired } from './factors.ts';
import type { Challenge } from './store.ts';

interface FactorVerification {
  readonly user: User;
  readonly session: Session;
  readonly factorId: string;
  readonly challengeId: string;
  readonly body: FactorBody;
}

const minuteMs = 60_000;

/** Verifies the answer to a challenge, raises the session to `aal2`, and issues its tokens. */
export async function verifyFactor(
  context: Context,
  verification: FactorVerification,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const { store, random } = context;
  const { user, session, challengeId, body } = verification;
  const { nowMs } = metadata;
  const factor = getFactor(user, verification.factorId);
  const { method, invalidMessage, verify } = getFactorType(context, 'verify', factor.type);
  const key = { challengeId, factorId: factor.id, ip: metadata.clientAddress };
  const challenge = checkChallenge(context, await store.factors.findChallenge(key), nowMs);
  await countAttempt(context, factor, nowMs);
  const columns = await verify(context, { user, factor, challenge, body }, metadata);
  await checkFactorAttempt(context, { user, factor, valid: columns !== undefined }, metadata);
  if (columns === undefined) throw errors.mfa_verification_failed({ message: invalidMessage });
  const at = new Date(nowMs);
  const methods = [{ method, at }, ...session.methods.filter((earlier) => earlier.method !== method)];
  const raised = { id: session.id, aal: 'aal2', methods } as const;
  const token = await signAccessToken(context, { user, session: raised, method }, metadata);
  const storedToken = makeRefreshToken(random);
  const traits = { factor_id: factor.id, challenge_id: challengeId, factor_type: factor.type };
  const verified = await store.factors.verify(
    {
      ...key,
      userId: user.id,
      sessionId: session.id,
      method,
      refreshToken: storedToken,
      at,
      ...columns,
    },
    auditEntry(user, 'verification_attempted', { metadata, traits }),
  );
  // The challenge or the code has been spent concurrently.
  if (!verified) throw errors.mfa_ip_address_mismatch();
  const latest = await store.sessions.findWithUser(user.id, session.id);
  if (latest?.session === undefined) throw errors.session_not_found();
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
  const { refreshCounter } = verified;
  const refreshToken =
    refreshCounter === undefined
      ? storedToken
      : makeCounterToken({ sessionId: session.id, counter: refreshCounter.counter }, refreshCounter.hmacKey);
  return { ...token, refreshToken, sessionId: session.id, user: latest.user };
}

function checkChallenge({ settings }: Context, challenge: Challenge | undefined, nowMs: number): Challenge {
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

/** Per factor rather than per address: an attacker with the password can use many addresses. */
async function countAttempt(context: Context, { id: key }: Factor, nowMs: number): Promise<void> {
  const quota = bucketQuota(context.settings.rateLimitFactorVerify, minuteMs);
  const error = errors.over_request_rate_limit;
  await enforceQuota(context, { limiter: 'factor_attempt', key, quota, nowMs, error });
}
