import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import { createSendLink, type SendLinkDeps } from '../links/send-link.ts';
import { createSendPhoneCode, type PhoneCodeDeps } from '../phone/send-phone-code.ts';

/**
 * Sends a user a nonce that proves they are still there: by mail, or to the phone of a user without email.
 *
 * @throws AppError `validation_failed` without either, `email_not_confirmed`, `phone_not_confirmed`, and as `SendLink` and `SendPhoneCode`.
 */
export type SendNonce = (user: User, facts: RequestFacts) => Promise<{ readonly messageId?: string }>;

/** Creates {@link SendNonce}. */
export function createSendNonce(deps: SendLinkDeps & PhoneCodeDeps): SendNonce {
  const sendLink = createSendLink(deps);
  const sendPhoneCode = createSendPhoneCode(deps);
  return async (user, facts) => {
    checkReachable(user);
    if (user.email === '')
      return sendPhoneCode(user, { kind: 'reauthentication', phone: user.phone, channel: 'sms' }, facts);
    const redirectTo = deps.settings.siteUrl;
    await sendLink(user, { kind: 'reauthentication', redirectTo, flow: 'implicit' }, facts);
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
