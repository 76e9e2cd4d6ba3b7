import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { JsonObject, NewIdentity, NewUser, User } from './user.ts';

/** A normalized email address or phone number. */
export type Contact =
  | { readonly kind: 'email'; readonly email: string }
  | { readonly kind: 'phone'; readonly phone: string };

/** HTML's form of an email address, with bounded labels to avoid quadratic matching. */
const emailForm =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const maxEmailChars = 255;
/** E.164 without the plus. */
const phoneForm = /^[1-9][0-9]{1,14}$/;

/** The email address in lower case; undefined if the text is not one. */
export function normalizeEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  return email.length <= maxEmailChars && emailForm.test(email) ? email : undefined;
}

/** The digits of a phone number; undefined if the text is not one. */
function normalizePhone(text: string): string | undefined {
  const phone = text.replaceAll(' ', '').replace(/^\+/, '');
  return phoneForm.test(phone) ? phone : undefined;
}

/** @throws AppError `validation_failed` */
export function readEmail(text: string): string {
  const email = normalizeEmail(text);
  if (email === undefined)
    throw errors.validation_failed({ message: 'Unable to validate email address: invalid format' });
  return email;
}

/** @throws AppError `validation_failed` */
export function readPhone(text: string): string {
  const phone = normalizePhone(text);
  if (phone === undefined)
    throw errors.validation_failed({ message: 'Invalid phone number format (E.164 required)' });
  return phone;
}

/**
 * Reads the contact of a request, which must have an email or a phone, not both.
 *
 * @throws AppError `validation_failed`, with the message of `both` or `neither`
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

export function getAddress(contact: Contact): string {
  return contact.kind === 'email' ? contact.email : contact.phone;
}

export function findByContact(
  store: Context['store'],
  contact: Contact,
  aud: string,
): Promise<User | undefined> {
  return contact.kind === 'email'
    ? store.users.findByEmail(contact.email, aud)
    : store.users.findByPhone(contact.phone, aud);
}

export function hasConfirmed(user: User, { kind }: Contact): boolean {
  return (kind === 'email' ? user.emailConfirmedAt : user.phoneConfirmedAt) !== undefined;
}

/** Whether new users need not confirm this kind of contact. */
export function confirmsAutomatically({ kind }: Contact, settings: Settings): boolean {
  return kind === 'email' ? settings.mailerAutoconfirm : settings.smsAutoconfirm;
}

/** Creates an email or phone identity. */
export function newContactIdentity(
  userId: string,
  contact: Contact,
  options: {
    readonly verified: boolean;
    /** User metadata of the sign-up. */
    readonly data?: JsonObject;
  },
): NewIdentity {
  const { verified, data = {} } = options;
  return {
    provider: contact.kind,
    providerId: userId,
    data: {
      ...data,
      sub: userId,
      ...(contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone }),
      email_verified: verified && contact.kind === 'email',
      phone_verified: verified && contact.kind === 'phone',
    },
  };
}

/** Creates a user with a single email or phone identity. */
export function newContactUser(options: {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  readonly contact: Contact;
  readonly passwordHash: string | undefined;
  readonly confirmed: boolean;
  readonly userMetadata: JsonObject;
  readonly at: Date;
}): NewUser {
  const { id, aud, role, contact, passwordHash, confirmed, userMetadata, at } = options;
  const identity = newContactIdentity(id, contact, { verified: confirmed, data: userMetadata });
  return {
    id,
    aud,
    role,
    email: contact.kind === 'email' ? contact.email : '',
    phone: contact.kind === 'phone' ? contact.phone : '',
    passwordHash,
    emailConfirmedAt: confirmed && contact.kind === 'email' ? at : undefined,
    phoneConfirmedAt: confirmed && contact.kind === 'phone' ? at : undefined,
    appMetadata: { provider: contact.kind, providers: [contact.kind] },
    userMetadata: identity.data,
    isAnonymous: false,
    createdAt: at,
    identities: [identity],
  };
}
