import type { JsonObject } from '@tollgate/kit/json';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { CodeChallenge } from '../flows/store.ts';
import { checkNewUser, reportNewUser } from '../hooks/hooks.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { readChannel } from '../messages/phone-codes.ts';
import { enforceContactSpacing, enforceMessageQuota } from '../messages/quotas.ts';
import { type SendingKind, sendToContact } from '../messages/send.ts';
import type { SmsChannel } from '../messages/sms-gateway.ts';
import { type FoundOrCreated, findOrCreateUser, takeOver } from '../sign-up/sign-up.ts';
import { checkMetadata, withLocale } from '../users/metadata.ts';
import { confirmsAutomatically, newContactUser } from '../users/new-user.ts';
import { type Contact, hasConfirmed, readContact, readEmail, type User } from '../users/user.ts';
import { checkLoginEnabled, type SignInContext } from './password.ts';

interface OtpInput {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  /** Whether an unknown user is signed up. Default true. */
  readonly createUser?: boolean | undefined;
  /** User metadata of a new user. */
  readonly data?: JsonObject | undefined;
  readonly channel?: string | undefined;
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/**
 * Sends a link and a code by mail, or a code by text message, to sign in with. Returns the SMS
 * gateway's message id.
 *
 * @throws AppError `validation_failed`, `email_provider_disabled`, `phone_provider_disabled`;
 * `otp_disabled` or `signup_disabled` for an unknown user who may not sign up, unless answers are
 * uniform; errors of sending
 */
export async function sendOtp(
  context: SignInContext,
  input: OtpInput,
  metadata: RequestMetadata,
): Promise<{ readonly messageId?: string }> {
  const { store, settings } = context;
  const checked = readOtp(input, context);
  const read = { ...checked, data: withLocale(checked.data, settings, metadata) };
  const { user, created } = await findUser(context, read, metadata);
  if (user === undefined && !settings.uniformAnswers)
    throw read.createUser && settings.disableSignup ? errors.signup_disabled() : errors.otp_disabled();
  const recipient = user && toRecipient(user, read.contact, settings);
  try {
    const { sent, ...answer } = await sendToContact(
      context,
      { ...read, purpose: 'sign_in', recipient, simulated: { kind: 'magiclink' } },
      metadata,
    );
    // Removes the password that an attacker may have set in an unconfirmed sign-up.
    if (sent && recipient?.kind === 'confirmation' && !created)
      await takeOver(context, recipient.user, { ...read, newUser: withoutPassword }, metadata);
    if (created && user !== undefined) reportNewUser(context, user, metadata);
    return answer;
  } catch (error) {
    if (created && user !== undefined) await store.users.discardUnconfirmed(user.id);
    throw error;
  }
}

const withoutPassword = {
  passwordHash: undefined,
  emailConfirmedAt: undefined,
  phoneConfirmedAt: undefined,
};

interface ReadOtp extends Pick<OtpInput, 'challenge' | 'redirectTo' | 'aud'> {
  readonly contact: Contact;
  readonly channel: SmsChannel;
  readonly data: JsonObject;
  readonly createUser: boolean;
}

function readOtp(input: OtpInput, { settings, sms }: SignInContext): ReadOtp {
  const { email = '', phone = '', channel = '', createUser = true, data = {} } = input;
  const { challenge, redirectTo, aud } = input;
  if (email !== '' && channel !== '')
    throw errors.validation_failed({ message: 'Channel should only be specified with Phone OTP' });
  if (email !== '' && !settings.externalEmailEnabled) throw errors.email_provider_disabled();
  if (email !== '' && !settings.externalEmailMagicLinkEnabled)
    throw errors.email_provider_disabled({ message: 'Login with magic link is disabled' });
  if (email === '' && phone !== '' && !settings.externalPhoneEnabled)
    throw errors.phone_provider_disabled({ httpStatus: 400, message: 'Unsupported phone provider' });
  checkMetadata({ userMetadata: data });
  const contact = readContact(
    { email, phone },
    {
      both: 'Only an email address or phone number should be provided',
      neither: 'One of email or phone must be set',
    },
  );
  return { contact, channel: readChannel(channel, sms), createUser, data, challenge, redirectTo, aud };
}

/** Beyond the limit of new accounts, known users still sign in. */
async function findUser(
  context: SignInContext,
  read: ReadOtp,
  metadata: RequestMetadata,
): Promise<FoundOrCreated> {
  const { store, limiter, settings } = context;
  const mayCreate = read.createUser && !settings.disableSignup;
  const refusal = mayCreate ? limiter.takeSignUp(metadata.client) : undefined;
  if (!mayCreate || refusal !== undefined) {
    const user = await store.users.findByContact(read.contact, read.aud);
    if (user === undefined && refusal !== undefined && !settings.uniformAnswers) throw refusal;
    return { user, created: false };
  }
  const found = await findOrCreate(context, read, metadata);
  if (!found.created) limiter.giveBackSignUp(metadata.client);
  return found;
}

async function findOrCreate(
  context: SignInContext,
  { contact, aud, data }: ReadOtp,
  metadata: RequestMetadata,
): Promise<FoundOrCreated> {
  const { store, random, settings } = context;
  const newUser = newContactUser({
    id: random.uuid(),
    aud,
    role: settings.jwtDefaultGroupName,
    contact,
    passwordHash: undefined,
    confirmed: confirmsAutomatically(contact, settings),
    userMetadata: data,
    at: new Date(metadata.nowMs),
  });
  if (context.hooks.enabled.has('BEFORE_USER_CREATED')) {
    const known = await store.users.findByContact(contact, aud);
    if (known !== undefined) return { user: known, created: false };
    await checkNewUser(context, newUser, metadata);
  }
  return findOrCreateUser(context, { newUser, contact, action: 'user_signedup' }, metadata);
}

/** An unconfirmed user gets the confirmation of a sign-up, whose link signs in as well. */
function toRecipient(user: User, contact: Contact, settings: Settings) {
  const confirms = !hasConfirmed(user, contact) && !confirmsAutomatically(contact, settings);
  return { user, kind: confirms ? 'confirmation' : 'magiclink' } as const;
}

/**
 * Mails a link that signs in, so that the user can set a new password, without disclosing whether
 * there is a user. With `SVC_SECURITY_UNIFORM_ANSWERS` the user is looked up after the response, so
 * that its time does not disclose it either.
 */
export async function recover(
  context: SignInContext,
  {
    email: text = '',
    challenge,
    redirectTo,
    aud,
  }: {
    readonly email?: string | undefined;
    readonly challenge: CodeChallenge | undefined;
    readonly redirectTo: string;
    readonly aud: string;
  },
  metadata: RequestMetadata,
): Promise<void> {
  const { store, background, settings } = context;
  if (text === '') throw errors.validation_failed({ message: 'Password recovery requires an email' });
  const email = readEmail(text);
  const contact = { kind: 'email', email } as const;
  const purpose = 'sign_in';

  async function send(afterResponse: boolean): Promise<void> {
    const user = await store.users.findByEmail(email, aud);
    const recipient = user && ({ user, kind: 'recovery' } as const);
    const simulated = { kind: 'recovery' } as const;
    await sendToContact(
      context,
      { contact, purpose, recipient, simulated, challenge, redirectTo, afterResponse },
      metadata,
    );
  }

  if (!settings.uniformAnswers) return send(false);
  await enforceContactSpacing(context, { contact, purpose }, metadata);
  await enforceMessageQuota(context, 'email', metadata.nowMs);
  background.run('recovery', () => send(true));
}

interface ResendInput {
  readonly type?: string | undefined;
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

interface ResendType {
  /** How the code is sent. A confirmation is sent to the contact of the request. */
  readonly by: Contact['kind'];
  readonly purpose: 'confirmation' | 'change';
  /** Message that the user still has to confirm. */
  readonly pending: (user: User) => SendingKind | undefined;
}

const resendTypes = {
  signup: {
    by: 'email',
    purpose: 'confirmation',
    pending: ({ emailConfirmedAt }) => (emailConfirmedAt === undefined ? 'confirmation' : undefined),
  },
  sms: {
    by: 'phone',
    purpose: 'confirmation',
    pending: ({ phoneConfirmedAt }) => (phoneConfirmedAt === undefined ? 'confirmation' : undefined),
  },
  email_change: {
    by: 'email',
    purpose: 'change',
    pending: ({ newEmail }) => (newEmail === '' ? undefined : 'change'),
  },
  phone_change: {
    by: 'phone',
    purpose: 'change',
    pending: ({ newPhone }) => (newPhone === '' ? undefined : 'change'),
  },
} as const satisfies Readonly<Record<string, ResendType>>;

const contactMessages = {
  both: 'Only an email address or phone number should be provided.',
  neither: 'Missing either an email address or a phone number',
};

/**
 * Sends a link or a code again to a user who still has a contact to confirm, without disclosing
 * whether there is such a user. Returns the SMS gateway's message id.
 */
export async function resend(
  context: SignInContext,
  { type = '', email = '', phone = '', challenge, redirectTo, aud }: ResendInput,
  metadata: RequestMetadata,
): Promise<{ readonly messageId?: string }> {
  const resendType = parseType(type, { email, phone });
  const contact = readContact({ email, phone }, contactMessages);
  checkLoginEnabled(contact.kind, context.settings);
  const user = await context.store.users.findByContact(contact, aud);
  const kind = user && resendType.pending(user);
  const recipient = kind && { user, kind };
  const { by, purpose } = resendType;
  const { messageId } = await sendToContact(
    context,
    { contact, by, purpose, recipient, simulated: { kind: purpose }, challenge, redirectTo },
    metadata,
  );
  return messageId === undefined ? {} : { messageId };
}

function parseType(
  text: string,
  { email, phone }: { readonly email: string; readonly phone: string },
): ResendType {
  if (!isResendType(text))
    throw errors.validation_failed({
      message: 'Missing one of these types: signup, email_change, sms, phone_change',
    });
  const type = resendTypes[text];
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: contactMessages.both });
  if (type.purpose === 'change') return type;
  if (type.by === 'email' && email === '')
    throw errors.validation_failed({ message: 'Type provided requires an email address' });
  if (type.by === 'phone' && phone === '')
    throw errors.validation_failed({ message: 'Type provided requires a phone number' });
  return type;
}

function isResendType(text: string): text is keyof typeof resendTypes {
  return Object.hasOwn(resendTypes, text);
}
