import type { Context } from '../context.ts';
import { type AuditAction, auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { NewUser } from '../users/user.ts';
import { contactIdentityData, type User } from '../users/user.ts';
import { type JsonObject, metadataSizeProblem } from '../users/user-json.ts';
import type { Contact } from './input.ts';

/** The user of a contact; absent where another audience has it. */
export interface FoundOrCreated {
  readonly user: User | undefined;
  readonly created: boolean;
}

/** Creates a user, unless somebody has the contact: the same two statements for both, also when many come at once. */
export type FindOrCreateUser = (
  newUser: NewUser,
  of: { readonly contact: Contact; readonly action: AuditAction },
  metadata: RequestMetadata,
) => Promise<FoundOrCreated>;

/** Creates {@link FindOrCreateUser}. */
export function createFindOrCreateUser({ store }: Context): FindOrCreateUser {
  return async (newUser, { contact, action }, metadata) => {
    const audit = auditEntry(newUser, action, { metadata, traits: { provider: contact.kind } });
    const created = await store.users.insert(newUser, audit);
    return { created, user: await findByContact(store, contact, newUser.aud) };
  };
}

/** The user who is known by a contact. */
export function findByContact(
  store: Context['store'],
  contact: Contact,
  aud: string,
): Promise<User | undefined> {
  return contact.kind === 'email'
    ? store.users.findByEmail(contact.email, aud)
    : store.users.findByPhone(contact.phone, aud);
}

/** Has the user shown that the contact is theirs? */
export function hasConfirmed(user: User, { kind }: Contact): boolean {
  return (kind === 'email' ? user.emailConfirmedAt : user.phoneConfirmedAt) !== undefined;
}

/** The latest sign-up for a contact. */
interface LatestSignUp {
  readonly contact: Contact;
  readonly data: JsonObject;
  /** With its password and whether it is confirmed. */
  readonly newUser: Pick<NewUser, 'passwordHash' | 'emailConfirmedAt' | 'phoneConfirmedAt'>;
}

/**
 * Gives a user whom nobody has confirmed the password of the latest sign-up, or none if that had none: an earlier one may be of
 * somebody else, who waits for the owner of the contact to confirm it. Metadata are merged, an administrator may have set some; those
 * that would make them too large are left out, as an error would tell that there is somebody.
 * Answers the user as changed.
 */
export type TakeOver = (user: User, latest: LatestSignUp, metadata: RequestMetadata) => Promise<User>;

/** Creates {@link TakeOver}: one statement. */
export function createTakeOver({ store }: Context): TakeOver {
  return async (user, { contact, data: given, newUser }, metadata) => {
    const sizes = { before: user.userMetadata, changes: given };
    const data = metadataSizeProblem('user_metadata', sizes) === undefined ? given : {};
    const { passwordHash, emailConfirmedAt, phoneConfirmedAt } = newUser;
    const verified = emailConfirmedAt !== undefined || phoneConfirmedAt !== undefined;
    const value = contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone };
    const identityData = contactIdentityData({ userId: user.id, contact: value, verified, data });
    const updated = await store.users.update(
      user.id,
      {
        passwordHash: passwordHash ?? null,
        userMetadata: verified ? { ...data, [`${contact.kind}_verified`]: true } : data,
        ...(emailConfirmedAt && { emailConfirmedAt }),
        ...(phoneConfirmedAt && { phoneConfirmedAt }),
      },
      {
        at: new Date(metadata.nowMs),
        audit: auditEntry(user, verified ? 'user_signedup' : 'user_repeated_signup', { metadata }),
        identities: [{ provider: contact.kind, providerId: user.id, data: identityData }],
      },
    );
    if (!updated.ok) throw errors.user_already_exists();
    return updated.user;
  };
}

/** What is known of a user who has just signed up. */
export type SignedUpUser = Pick<
  User,
  'id' | 'aud' | 'role' | 'email' | 'phone' | 'appMetadata' | 'userMetadata' | 'identities'
>;

/** Somebody who has just signed up and been sent a confirmation: what callers see, whether or not there is such a user. */
export function userAwaitingConfirmation(known: SignedUpUser, at: Date): User {
  return {
    ...known,
    passwordHash: undefined,
    emailConfirmedAt: undefined,
    phoneConfirmedAt: undefined,
    confirmedAt: undefined,
    invitedAt: undefined,
    confirmationSentAt: at,
    recoverySentAt: undefined,
    newEmail: '',
    emailChangeSentAt: undefined,
    emailChangeConfirmStatus: 0,
    newPhone: '',
    phoneChangeSentAt: undefined,
    reauthenticationSentAt: undefined,
    lastSignInAt: undefined,
    isAnonymous: false,
    isSsoUser: false,
    bannedUntil: undefined,
    deletedAt: undefined,
    createdAt: at,
    updatedAt: at,
    factors: [],
  };
}
