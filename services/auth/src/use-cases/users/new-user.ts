import { contactIdentityData } from '../../domain/identity.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { User } from '../../domain/user.ts';
import type { NewUser } from '../../ports/user-store.ts';
import type { Contact } from '../contact/read-contact.ts';

/** What a new user is made of. */
export interface NewUserOptions {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  readonly contact: Contact;
  readonly passwordHash: string | undefined;
  /** Whether the contact needs no confirmation. */
  readonly confirmed: boolean;
  /** What the user says of themselves. */
  readonly userMetadata: JsonObject;
  readonly at: Date;
}

/** A user known by email or phone, with the identity of that. */
export function newContactUser(options: NewUserOptions): NewUser {
  const { id, aud, role, contact, passwordHash, confirmed, userMetadata, at } = options;
  const value = contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone };
  const data = contactIdentityData({ userId: id, contact: value, verified: confirmed, data: userMetadata });
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
    userMetadata: data,
    isAnonymous: false,
    createdAt: at,
    identities: [{ provider: contact.kind, providerId: id, data }],
  };
}

/** The audit log's view of a user who is about to be. */
export function actorOf(user: NewUser): Pick<User, 'id' | 'email' | 'phone' | 'isSsoUser' | 'userMetadata'> {
  return { ...user, isSsoUser: false };
}
