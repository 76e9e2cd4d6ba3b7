import type { JsonObject } from '../../domain/json.ts';
import type { CodeChallenge } from '../../domain/pkce.ts';
import { errors } from '../../errors.ts';
import type { SmsChannel } from '../../ports/sms-gateway.ts';
import type { DepsWith } from '../../services.ts';
import type { Settings } from '../../settings/settings.ts';
import { type Contact, readContact } from '../contact/read-contact.ts';
import { type CheckPasswordDeps, checkPassword } from '../passwords/check-password.ts';
import { readChannel } from '../phone/read-channel.ts';
import { checkMetadata } from '../users/check-metadata.ts';

/** What somebody signs up with. */
export interface SignUpInput {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  /** What the user says of themselves. */
  readonly data?: JsonObject | undefined;
  readonly channel?: string | undefined;
  /** Asks that the link in the mail answers a code. */
  readonly challenge?: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/** The same, read and checked. */
export interface ReadSignUp {
  readonly contact: Contact;
  readonly password: string;
  readonly data: JsonObject;
  readonly channel: SmsChannel;
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/** The settings that say who may sign up. */
export type SignUpSettingName =
  | 'disableSignup'
  | 'externalEmailEnabled'
  | 'externalPhoneEnabled'
  | 'mailerAutoconfirm'
  | 'smsAutoconfirm'
  | 'smsProvider';

/** What reading a sign-up takes. */
export type ReadSignUpDeps = CheckPasswordDeps & DepsWith<never, SignUpSettingName>;

const oneContact = 'Only an email address or phone number should be provided on signup.';

/**
 * Checks a sign-up, in the order that clients of GoTrue know.
 *
 * @throws AppError `signup_disabled`, `validation_failed`, `weak_password`, `email_provider_disabled`, `phone_provider_disabled`.
 */
export async function readSignUp(input: SignUpInput, deps: ReadSignUpDeps): Promise<ReadSignUp> {
  const { settings } = deps;
  const { email = '', phone = '', password = '', data = {}, challenge, redirectTo, aud } = input;
  if (settings.disableSignup) throw errors.signup_disabled();
  if (password === '') throw errors.validation_failed({ message: 'Signup requires a valid password' });
  await checkPassword(password, deps);
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: oneContact });
  const channel = readChannel(phone === '' ? undefined : input.channel, settings);
  if (phone !== '' && challenge !== undefined)
    throw errors.validation_failed({ message: 'PKCE not supported for phone signups' });
  checkEnabled(phone === '' ? 'email' : 'phone', settings);
  checkMetadata({ userMetadata: data });
  const contact = readContact({ email, phone }, { both: oneContact, neither: oneContact });
  return { contact, password, data, channel, challenge, redirectTo, aud };
}

function checkEnabled(kind: Contact['kind'], settings: Pick<Settings, SignUpSettingName>): void {
  if (kind === 'email' && !settings.externalEmailEnabled)
    throw errors.email_provider_disabled({ httpStatus: 400, message: 'Email signups are disabled' });
  if (kind === 'phone' && !settings.externalPhoneEnabled)
    throw errors.phone_provider_disabled({ httpStatus: 400, message: 'Phone signups are disabled' });
}
