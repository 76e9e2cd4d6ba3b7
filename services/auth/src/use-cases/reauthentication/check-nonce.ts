import { bucketQuota } from '../../domain/quota.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors, RetryLaterError } from '../../errors.ts';
import type { FoundOneTimeToken } from '../../ports/one-time-token-store.ts';
import type { DepsWith } from '../../services.ts';
import { oneTimeTokenHashes } from '../../tokens/hash-one-time-token.ts';
import { createFindPhoneToken, type FindPhoneTokenDeps } from '../phone/find-phone-token.ts';

/** A nonce has six digits and, in a mail, a day: nobody may try all of them in that. */
const attempts = bucketQuota(10, 10 * 60_000);

/**
 * Checks the nonce that a user was sent. Answers its token, which the caller spends with the change that the nonce is for.
 *
 * @throws AppError `reauthentication_not_valid`, `over_request_rate_limit` after too many attempts.
 */
export type CheckNonce = (user: User, nonce: string, facts: RequestFacts) => Promise<FoundOneTimeToken>;

/** What that takes. */
export type CheckNonceDeps = FindPhoneTokenDeps & DepsWith<'store', 'mailerOtpExpMs' | 'smsOtpExpMs'>;

const types = ['reauthentication_token'] as const;

/** Creates {@link CheckNonce}. */
export function createCheckNonce(deps: CheckNonceDeps): CheckNonce {
  const { store, settings } = deps;
  const findPhoneToken = createFindPhoneToken(deps);

  function find({ email, phone }: User, nonce: string, nowMs: number) {
    if (email === '') return findPhoneToken({ phone, code: nonce, types }, nowMs);
    return store.oneTimeTokens.find(oneTimeTokenHashes(email, nonce, settings), types);
  }

  return async (user, nonce, { nowMs }) => {
    const limiter = 'reauthentication_attempt';
    const attempt = await store.quotas.take({ limiter, key: user.id, quota: attempts }, nowMs);
    if (!attempt.allowed)
      throw new RetryLaterError(errors.over_request_rate_limit(), Math.ceil(attempt.retryAfterMs / 1000));
    const lifeMs = user.email === '' ? settings.smsOtpExpMs : settings.mailerOtpExpMs;
    const found = await find(user, nonce, nowMs);
    const isValid = found?.user.id === user.id && found.token.at.getTime() + lifeMs > nowMs;
    if (!isValid) throw errors.reauthentication_not_valid();
    return found.token;
  };
}
