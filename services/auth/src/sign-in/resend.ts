import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createSendToContact, type SendingKind } from '../messages/send.ts';
import { findByContact } from '../sign-up/existing-user.ts';
import { type Contact, readContact } from '../sign-up/input.ts';
import type { User } from '../users/user.ts';
import type { CodeChallenge } from './pkce.ts';

/** What is to be sent once more, and to whom: the contact that the user has now. */
interface ResendInput {
  readonly type?: string | undefined;
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/**
 * Sends a link or a code once more to somebody who still has something to confirm. Nobody is told whether there is such a user.
 * Answers the SMS gateway's id of the message.
 */
export type Resend = (
  input: ResendInput,
  metadata: RequestMetadata,
) => Promise<{ readonly messageId?: string }>;

/** What a type of resending needs, and what there is to send to a user; undefined for nothing. */
interface ResendType {
  readonly contact: Contact['kind'];
  readonly purpose: 'confirmation' | 'change';
  readonly pending: (user: User) => SendingKind | undefined;
}

const resendTypes = {
  signup: {
    contact: 'email',
    purpose: 'confirmation',
    pending: ({ emailConfirmedAt }) => (emailConfirmedAt === undefined ? 'confirmation' : undefined),
  },
  sms: {
    contact: 'phone',
    purpose: 'confirmation',
    pending: ({ phoneConfirmedAt }) => (phoneConfirmedAt === undefined ? 'confirmation' : undefined),
  },
  email_change: {
    contact: 'email',
    purpose: 'change',
    pending: ({ newEmail }) => (newEmail === '' ? undefined : 'change'),
  },
  phone_change: {
    contact: 'phone',
    purpose: 'change',
    pending: ({ newPhone }) => (newPhone === '' ? undefined : 'change'),
  },
} as const satisfies Readonly<Record<string, ResendType>>;

function isResendType(text: string): text is keyof typeof resendTypes {
  return Object.hasOwn(resendTypes, text);
}

/** Creates {@link Resend}. */
export function createResend(deps: Context): Resend {
  const { store, settings } = deps;
  const sendToContact = createSendToContact(deps);

  return async ({ type = '', email = '', phone = '', challenge, redirectTo, aud }, metadata) => {
    const resendType = readType(type, { email, phone });
    checkEnabled(resendType.contact, settings);
    const contact = readContact({ email, phone }, contactMessages);
    const user = await findByContact(store, contact, aud);
    const kind = user && resendType.pending(user);
    const { purpose } = resendType;
    return sendToContact(
      { contact, purpose, instead: purpose, challenge, redirectTo },
      kind && { user, kind },
      metadata,
    );
  };
}

const contactMessages = {
  both: 'Only an email address or phone number should be provided.',
  neither: 'Missing either an email address or a phone number',
};

function readType(
  text: string,
  { email, phone }: { readonly email: string; readonly phone: string },
): ResendType {
  if (!isResendType(text))
    throw errors.validation_failed({
      message: 'Missing one of these types: signup, email_change, sms, phone_change',
    });
  const type = resendTypes[text];
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: contactMessages.both });
  if (type.contact === 'email' && email === '')
    throw errors.validation_failed({ message: 'Type provided requires an email address' });
  if (type.contact === 'phone' && phone === '')
    throw errors.validation_failed({ message: 'Type provided requires a phone number' });
  return type;
}

function checkEnabled(kind: Contact['kind'], settings: Settings): void {
  if (kind === 'email' && !settings.externalEmailEnabled) throw errors.email_provider_disabled();
  if (kind === 'phone' && !settings.externalPhoneEnabled) throw errors.phone_provider_disabled();
}
