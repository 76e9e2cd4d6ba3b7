import type { JsonObject } from '@tollgate/kit/json';
import type { Settings } from '../config/settings.ts';
import type { Contact, Identity, User } from './user.ts';

/** An identity to be stored. */
export type NewIdentity = Pick<Identity, 'provider' | 'providerId' | 'data'>;

/** A user to be created. */
export interface NewUser
  extends Pick<
    User,
    | 'id'
    | 'aud'
    | 'role'
    | 'email'
    | 'phone'
    | 'passwordHash'
    | 'emailConfirmedAt'
    | 'phoneConfirmedAt'
    | 'appMetadata'
    | 'userMetadata'
    | 'isAnonymous'
    | 'createdAt'
  > {
  readonly invitedAt?: Date | undefined;
  readonly bannedUntil?: Date | undefined;
  readonly identities: readonly NewIdentity[];
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

/**
 * The first password adds the identity of a confirmed email to a user who signed up with a
 * provider, if the setting wants it.
 */
export function passwordIdentity(
  user: User,
  { createEmailIdentityOnPasswordSet: isWanted }: Pick<Settings, 'createEmailIdentityOnPasswordSet'>,
): { readonly identities: readonly NewIdentity[]; readonly appMetadata?: JsonObject } {
  const known = user.identities.map(({ provider }) => provider);
  const { email, emailConfirmedAt, isAnonymous, isSsoUser } = user;
  const canHaveOne = email !== '' && emailConfirmedAt !== undefined && !isAnonymous && !isSsoUser;
  if (!isWanted || !canHaveOne || known.includes('email')) return { identities: [] };
  const identity = newContactIdentity(user.id, { kind: 'email', email }, { verified: true });
  const providers = [...new Set([...known, 'email'])];
  return {
    identities: [identity],
    appMetadata: { provider: user.appMetadata.provider ?? 'email', providers },
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
