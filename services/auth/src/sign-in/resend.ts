import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type SendingKind, sendToContact } from '../messages/send.ts';
import { type Contact, findByContact, readContact } from '../users/contact.ts';
import type { User } from '../users/user.ts';
import { checkLoginEnabled } from './password.ts';
import type { CodeChallenge } from './pkce.ts';

interface ResendInput {
  readonly type?: string | undefined;
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

interface ResendType {
  readonly contact: Contact['kind'];
  readonly purpose: 'confirmation' | 'change';
  /** What the user still has to confirm. */
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

const contactMessages = {
  both: 'Only an email address or phone number should be provided.',
  neither: 'Missing either an email address or a phone number',
};

/**
 * Sends a link or a code again to a user who still has a contact to confirm, without disclosing
 * whether there is such a user. Returns the SMS gateway's message id.
 */
export async function resend(
  context: Context,
  { type = '', email = '', phone = '', challenge, redirectTo, aud }: ResendInput,
  metadata: RequestMetadata,
): Promise<{ readonly messageId?: string }> {
  const resendType = parseType(type, { email, phone });
  checkLoginEnabled(resendType.contact, context.settings);
  const contact = readContact({ email, phone }, contactMessages);
  const user = await findByContact(context.store, contact, aud);
  const kind = user && resendType.pending(user);
  const recipient = kind && { user, kind };
  const { purpose } = resendType;
  const { messageId } = await sendToContact(
    context,
    { contact, purpose, recipient, simulated: { kind: purpose }, challenge, redirectTo },
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
  if (type.contact === 'email' && email === '')
    throw errors.validation_failed({ message: 'Type provided requires an email address' });
  if (type.contact === 'phone' && phone === '')
    throw errors.validation_failed({ message: 'Type provided requires a phone number' });
  return type;
}

function isResendType(text: string): text is keyof typeof resendTypes {
  return Object.hasOwn(resendTypes, text);
}
