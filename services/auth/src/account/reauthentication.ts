import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { sendLink } from '../messages/links.ts';
import { sendPhoneCode } from '../messages/phone-codes.ts';
import { oneTimeTokenHashes } from '../one-time-tokens/hash.ts';
import type { FoundOneTimeToken } from '../one-time-tokens/store.ts';
import type { User } from '../users/user.ts';
import { findPhoneToken } from '../verification/find-token.ts';
import type { AccountContext } from './context.ts';

/**
 * Verifies the nonce that the user was sent. The caller spends the returned token with the change.
 *
 * @throws AppError `reauthentication_not_valid`, `over_request_rate_limit` after too many attempts.
 */
export async function checkNonce(
  context: AccountContext,
  user: User,
  nonce: string,
  { nowMs }: RequestMetadata,
): Promise<FoundOneTimeToken> {
  const { settings, limiter } = context;
  await limiter.enforce('reauthentication_attempt', { key: user.id, nowMs });
  const lifeMs = user.email === '' ? settings.smsOtpExpMs : settings.mailerOtpExpMs;
  const found = await findNonce(context, user, nonce, nowMs);
  const isValid = found?.user.id === user.id && found.token.at.getTime() + lifeMs > nowMs;
  if (!isValid) throw errors.reauthentication_not_valid();
  return found.token;
}

function findNonce(context: AccountContext, { email, phone }: User, nonce: string, nowMs: number) {
  const types = ['reauthentication_token'] as const;
  if (email === '') return findPhoneToken(context, { phone, code: nonce, types }, nowMs);
  const { store, settings } = context;
  return store.oneTimeTokens.find(oneTimeTokenHashes(email, nonce, settings), types);
}

/**
 * Sends the user a nonce by mail, or by text message to a user without email.
 *
 * @throws AppError `validation_failed` for a user without either, `email_not_confirmed`,
 * `phone_not_confirmed`, and errors of sending.
 */
export async function sendNonce(
  context: AccountContext,
  user: User,
  metadata: RequestMetadata,
): Promise<{ readonly messageId?: string }> {
  checkReachable(user);
  if (user.email === '') {
    const code = { kind: 'reauthentication', phone: user.phone, channel: 'sms' } as const;
    return sendPhoneCode(context, user, code, metadata);
  }
  const redirectTo = context.settings.siteUrl;
  await sendLink(context, user, { kind: 'reauthentication', redirectTo, flow: 'implicit' }, metadata);
  return {};
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
