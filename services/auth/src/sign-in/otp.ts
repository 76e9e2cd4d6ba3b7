import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { readChannel } from '../messages/phone-codes.ts';
import { createTakeTurn, takeMailQuota } from '../messages/quotas.ts';
import { createSendToContact } from '../messages/send.ts';
import type { SmsChannel } from '../messages/sms.ts';
import {
  createFindOrCreateUser,
  createTakeOver,
  type FoundOrCreated,
  findByContact,
  hasConfirmed,
} from '../sign-up/existing-user.ts';
import { type Contact, readContact, readEmail } from '../sign-up/input.ts';
import { newContactUser, type User } from '../users/user.ts';
import { checkMetadata, type JsonObject } from '../users/user-json.ts';
import type { CodeChallenge } from './pkce.ts';

/** Who wants to sign in without a password. */
interface OtpInput {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  /** Whether somebody who is not known signs up by it. Default true. */
  readonly createUser?: boolean | undefined;
  /** What a new user says of themselves. */
  readonly data?: JsonObject | undefined;
  readonly channel?: string | undefined;
  /** Asks that the link in the mail answers a code. */
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/**
 * Sends a link and a code by mail, or a code by text message, to sign in with. Answers the SMS gateway's id of the message.
 *
 * @throws AppError `validation_failed`, `email_provider_disabled`, `phone_provider_disabled`; for somebody who is not known and must
 * not sign up `otp_disabled` or `signup_disabled`, unless answers are to be uniform; what sending throws.
 */
export type SendOtp = (
  input: OtpInput,
  metadata: RequestMetadata,
) => Promise<{ readonly messageId?: string }>;

interface ReadOtp extends Pick<OtpInput, 'challenge' | 'redirectTo' | 'aud'> {
  readonly contact: Contact;
  readonly channel: SmsChannel;
  readonly data: JsonObject;
  readonly createUser: boolean;
}

/** Creates {@link SendOtp}. */
export function createSendOtp(deps: Context): SendOtp {
  const { store, random, settings } = deps;
  const findOrCreateUser = createFindOrCreateUser(deps);
  const sendToContact = createSendToContact(deps);
  const takeOver = createTakeOver(deps);

  function confirmsAtOnce({ kind }: Contact): boolean {
    return kind === 'email' ? settings.mailerAutoconfirm : settings.smsAutoconfirm;
  }

  function find(
    { contact, aud, data, createUser }: ReadOtp,
    metadata: RequestMetadata,
  ): Promise<FoundOrCreated> {
    if (!createUser || settings.disableSignup)
      return findByContact(store, contact, aud).then((user) => ({ user, created: false }));
    const newUser = newContactUser({
      id: random.uuid(),
      aud,
      role: settings.jwtDefaultGroupName,
      contact,
      passwordHash: undefined,
      confirmed: confirmsAtOnce(contact),
      userMetadata: data,
      at: new Date(metadata.nowMs),
    });
    return findOrCreateUser(newUser, { contact, action: 'user_signedup' }, metadata);
  }

  /** Whoever has not confirmed yet is sent what a sign-up sends; the link of it signs in as well. */
  function recipientOf(user: User, contact: Contact) {
    const confirms = !hasConfirmed(user, contact) && !confirmsAtOnce(contact);
    return { user, kind: confirms ? 'confirmation' : 'magiclink' } as const;
  }

  return async (input, metadata) => {
    const read = readOtp(input, settings);
    const { user, created } = await find(read, metadata);
    if (user === undefined && !settings.uniformAnswers)
      throw read.createUser && settings.disableSignup ? errors.signup_disabled() : errors.otp_disabled();
    const recipient = user && recipientOf(user, read.contact);
    try {
      const { sent, ...answer } = await sendToContact(
        { ...read, purpose: 'sign_in', instead: 'magiclink' },
        recipient,
        metadata,
      );
      if (sent && recipient?.kind === 'confirmation' && !created)
        await takeOver(recipient.user, { ...read, newUser: nothingKnown }, metadata);
      return answer;
    } catch (error) {
      if (created && user !== undefined) await store.users.discardUnconfirmed(user.id);
      throw error;
    }
  };
}

/** Who comes without a password leaves none that somebody else has chosen. */
const nothingKnown = { passwordHash: undefined, emailConfirmedAt: undefined, phoneConfirmedAt: undefined };

function readOtp(input: OtpInput, settings: Settings): ReadOtp {
  const {
    email = '',
    phone = '',
    channel = '',
    createUser = true,
    data = {},
    challenge,
    redirectTo,
    aud,
  } = input;
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
  return { contact, channel: readChannel(channel, settings), createUser, data, challenge, redirectTo, aud };
}

/** Who has lost their password. */
interface RecoverInput {
  readonly email?: string | undefined;
  /** Asks that the link in the mail answers a code. */
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/** Mails a link that signs in, so that a new password can be set. Nobody is told whether there is such a user. */
export type Recover = (input: RecoverInput, metadata: RequestMetadata) => Promise<void>;

/**
 * Creates {@link Recover}. With `SVC_SECURITY_UNIFORM_ANSWERS` the user is looked up after the answer, so that how long it takes does
 * not tell whether there is one.
 */
export function createRecover(deps: Context): Recover {
  const { store, background, settings } = deps;
  const sendToContact = createSendToContact(deps);
  const takeTurn = createTakeTurn(deps);

  return async ({ email: text = '', challenge, redirectTo, aud }, metadata) => {
    if (text === '') throw errors.validation_failed({ message: 'Password recovery requires an email' });
    const email = readEmail(text);
    const contact = { kind: 'email', email } as const;
    const purpose = 'sign_in';

    async function send(afterAnswer: boolean): Promise<void> {
      const user = await store.users.findByEmail(email, aud);
      await sendToContact(
        { contact, purpose, instead: 'recovery', challenge, redirectTo, afterAnswer },
        user && { user, kind: 'recovery' },
        metadata,
      );
    }

    if (!settings.uniformAnswers) return send(false);
    await takeTurn(contact, purpose, metadata);
    await takeMailQuota(deps, metadata.nowMs);
    background.run('recovery', () => send(true));
  };
}
