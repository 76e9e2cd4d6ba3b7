import { bucketQuota } from '../../domain/quota.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors, RetryLaterError } from '../../errors.ts';
import type { FoundOneTimeToken } from '../../ports/one-time-token-store.ts';
import type { DepsWith } from '../../services.ts';
import { hashOneTimeToken } from '../../tokens/hash-one-time-token.ts';

/** A nonce has six digits and, in a mail, a day: nobody may try all of them in that. */
const attempts = bucketQuota(10, 10 * 60_000);

/**
 * Checks the nonce that a user was sent. Answers its token, which the caller spends with the change that the nonce is for.
 *
 * @throws AppError `reauthentication_not_valid`, `over_request_rate_limit` after too many attempts.
 */
export type CheckNonce = (user: User, nonce: string, facts: RequestFacts) => Promise<FoundOneTimeToken>;

/** Creates {@link CheckNonce}. */
export function createCheckNonce({
  store,
  settings,
}: DepsWith<'store', 'mailerOtpExpMs' | 'smsOtpExpMs' | 'jwtSecret'>): CheckNonce {
  return async (user, nonce, { nowMs }) => {
    const limiter = 'reauthentication_attempt';
    const attempt = await store.quotas.take({ limiter, key: user.id, quota: attempts }, nowMs);
    if (!attempt.allowed)
      throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(attempt.retryAfterMs / 1000));
    const [contact, lifeMs] =
      user.email === '' ? [user.phone, settings.smsOtpExpMs] : [user.email, settings.mailerOtpExpMs];
    const hash = hashOneTimeToken(contact, nonce, settings.jwtSecret);
    const found = await store.oneTimeTokens.find([hash], ['reauthentication_token']);
    const isValid = found?.user.id === user.id && found.token.at.getTime() + lifeMs > nowMs;
    if (!isValid) throw errors.reauthentication_not_valid();
    return found.token;
  };
}
