import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { readChannel } from '../messages/phone-codes.ts';
import type { SmsChannel } from '../messages/sms.ts';
import { checkPassword } from '../passwords/policy.ts';
import type { CodeChallenge } from '../sign-in/pkce.ts';
import { type Contact, readContact } from '../users/contact.ts';
import { checkMetadata } from '../users/metadata.ts';
import type { JsonObject } from '../users/user.ts';

/** A sign-up as it was sent. */
export interface SignUpInput {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  /** User metadata. */
  readonly data?: JsonObject | undefined;
  readonly channel?: string | undefined;
  readonly challenge?: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/** A validated sign-up. */
export interface ReadSignUp {
  readonly contact: Contact;
  readonly password: string;
  readonly data: JsonObject;
  readonly channel: SmsChannel;
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

const oneContact = 'Only an email address or phone number should be provided on signup.';

/**
 * Validates a sign-up. The order of the checks is GoTrue's, which its clients rely on.
 *
 * @throws AppError `signup_disabled`, `validation_failed`, `weak_password`,
 * `email_provider_disabled`, `phone_provider_disabled`
 */
export async function readSignUp(context: Context, input: SignUpInput): Promise<ReadSignUp> {
  const { settings } = context;
  const { email = '', phone = '', password = '', data = {}, challenge, redirectTo, aud } = input;
  if (settings.disableSignup) throw errors.signup_disabled();
  if (password === '') throw errors.validation_failed({ message: 'Signup requires a valid password' });
  await checkPassword(context, password);
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: oneContact });
  const channel = readChannel(phone === '' ? undefined : input.channel, settings);
  if (phone !== '' && challenge !== undefined)
    throw errors.validation_failed({ message: 'PKCE not supported for phone signups' });
  checkEnabled(phone === '' ? 'email' : 'phone', settings);
  checkMetadata({ userMetadata: data });
  const contact = readContact({ email, phone }, { both: oneContact, neither: oneContact });
  return { contact, password, data, channel, challenge, redirectTo, aud };
}

function checkEnabled(kind: Contact['kind'], settings: Settings): void {
  if (kind === 'email' && !settings.externalEmailEnabled)
    throw errors.email_provider_disabled({ httpStatus: 400, message: 'Email signups are disabled' });
  if (kind === 'phone' && !settings.externalPhoneEnabled)
    throw errors.phone_provider_disabled({ httpStatus: 400, message: 'Phone signups are disabled' });
}
