import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { readChannel } from '../messages/phone-codes.ts';
import type { SmsChannel } from '../messages/sms.ts';
import { checkPassword } from '../passwords/policy.ts';
import type { CodeChallenge } from '../sign-in/pkce.ts';
import { checkMetadata, type JsonObject } from '../users/user-json.ts';

/** HTML's form of an email address, without its quadratic corner: each label is bounded. */
const emailForm =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const maxEmailChars = 255;
/** E.164 without the plus. */
const phoneForm = /^[1-9][0-9]{1,14}$/;

/** An email address as it is kept, in lower case; undefined for what is none. */
export function normalizeEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  return email.length <= maxEmailChars && emailForm.test(email) ? email : undefined;
}

/** A phone number as it is kept: digits, no `+`, no spaces; undefined for what is none. */
function normalizePhone(text: string): string | undefined {
  const phone = text.replaceAll(' ', '').replace(/^\+/, '');
  return phoneForm.test(phone) ? phone : undefined;
}

/** Where a user can be reached, as it is kept. */
export type Contact =
  | { readonly kind: 'email'; readonly email: string }
  | { readonly kind: 'phone'; readonly phone: string };

/**
 * Reads the one contact of a request: an email or a phone, not both.
 *
 * @throws AppError `validation_failed` with the message of `both` or `neither`, or what is wrong with the form.
 */
export function readContact(
  { email = '', phone = '' }: { readonly email?: string | undefined; readonly phone?: string | undefined },
  messages: { readonly both: string; readonly neither: string },
): Contact {
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: messages.both });
  if (email !== '') return { kind: 'email', email: readEmail(email) };
  if (phone !== '') return { kind: 'phone', phone: readPhone(phone) };
  throw errors.validation_failed({ message: messages.neither });
}

/** An email address as it is kept. @throws AppError `validation_failed`. */
export function readEmail(text: string): string {
  const email = normalizeEmail(text);
  if (email === undefined)
    throw errors.validation_failed({ message: 'Unable to validate email address: invalid format' });
  return email;
}

/** A phone number as it is kept. @throws AppError `validation_failed`. */
export function readPhone(text: string): string {
  const phone = normalizePhone(text);
  if (phone === undefined)
    throw errors.validation_failed({ message: 'Invalid phone number format (E.164 required)' });
  return phone;
}

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
type SignUpSettingName =
  | 'disableSignup'
  | 'externalEmailEnabled'
  | 'externalPhoneEnabled'
  | 'mailerAutoconfirm'
  | 'smsAutoconfirm'
  | 'smsProvider';

const oneContact = 'Only an email address or phone number should be provided on signup.';

/**
 * Checks a sign-up, in the order that clients of GoTrue know.
 *
 * @throws AppError `signup_disabled`, `validation_failed`, `weak_password`, `email_provider_disabled`, `phone_provider_disabled`.
 */
export async function readSignUp(input: SignUpInput, deps: Context): Promise<ReadSignUp> {
  const { settings } = deps;
  const { email = '', phone = '', password = '', data = {}, challenge, redirectTo, aud } = input;
  if (settings.disableSignup) throw errors.signup_disabled();
  if (password === '') throw errors.validation_failed({ message: 'Signup requires a valid password' });
  await checkPassword(deps, password);
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
