import type { Context } from '../context.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createSendPhoneCode } from '../messages/phone-codes.ts';
import { bucketQuota } from '../messages/quotas.ts';
import { createSendLink } from '../messages/send-link.ts';
import { createFindPhoneToken } from '../verification/find-token.ts';
import { oneTimeTokenHashes } from '../verification/one-time-tokens.ts';
import type { FoundOneTimeToken } from '../verification/store.ts';
import type { User } from './user.ts';

/** A nonce has six digits and, in a mail, a day: nobody may try all of them in that. */
const attempts = bucketQuota(10, 10 * 60_000);

/**
 * Checks the nonce that a user was sent. Answers its token, which the caller spends with the change that the nonce is for.
 *
 * @throws AppError `reauthentication_not_valid`, `over_request_rate_limit` after too many attempts.
 */
export type CheckNonce = (user: User, nonce: string, metadata: RequestMetadata) => Promise<FoundOneTimeToken>;

const types = ['reauthentication_token'] as const;

/** Creates {@link CheckNonce}. */
export function createCheckNonce(deps: Context): CheckNonce {
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

/**
 * Sends a user a nonce that proves they are still there: by mail, or to the phone of a user without email.
 *
 * @throws AppError `validation_failed` without either, `email_not_confirmed`, `phone_not_confirmed`, and as `SendLink` and `SendPhoneCode`.
 */
export type SendNonce = (user: User, metadata: RequestMetadata) => Promise<{ readonly messageId?: string }>;

/** Creates {@link SendNonce}. */
export function createSendNonce(deps: Context): SendNonce {
  const sendLink = createSendLink(deps);
  const sendPhoneCode = createSendPhoneCode(deps);
  return async (user, metadata) => {
    checkReachable(user);
    if (user.email === '')
      return sendPhoneCode(user, { kind: 'reauthentication', phone: user.phone, channel: 'sms' }, metadata);
    const redirectTo = deps.settings.siteUrl;
    await sendLink(user, { kind: 'reauthentication', redirectTo, flow: 'implicit' }, metadata);
    return {};
  };
}

function checkReachable(user: User): void {
  if (user.email === '' && user.phone === '')
    throw errors.validation_failed({
      message: 'Reauthentication requires the user to have an email or a phone number',
    });
  if (user.email !== '' && user.emailConfirmedAt === undefined)
    throw errors.email_not_confirmed({ httpStatus: 422, message: 'Please verify your email first.' });
  if (user.email === '' && user.phoneConfirmedAt === undefined)
    throw errors.phone_not_confirmed({ httpStatus: 422, message: 'Please verify your phone first.' });
}
