import type { Context } from '../context.ts';
import { type AuditAction, auditEntry } from '../db/audit-log.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { type Contact, findByContact, newContactIdentity } from '../users/contact.ts';
import { metadataSizeProblem } from '../users/metadata.ts';
import type { JsonObject, NewUser, User } from '../users/user.ts';

export interface FoundOrCreated {
  /** Absent if a user of another audience has the contact. */
  readonly user: User | undefined;
  readonly created: boolean;
}

/**
 * Creates a user unless the contact is taken. Runs the same two statements in both cases, and is
 * safe to race.
 */
export async function findOrCreateUser(
  { store }: Context,
  {
    newUser,
    contact,
    action,
  }: {
    readonly newUser: NewUser;
    readonly contact: Contact;
    readonly action: AuditAction;
  },
  metadata: RequestMetadata,
): Promise<FoundOrCreated> {
  const audit = auditEntry(newUser, action, { metadata, traits: { provider: contact.kind } });
  const created = await store.users.insert(newUser, audit);
  return { created, user: await findByContact(store, contact, newUser.aud) };
}

interface LatestSignUp {
  readonly contact: Contact;
  readonly data: JsonObject;
  readonly newUser: Pick<NewUser, 'passwordHash' | 'emailConfirmedAt' | 'phoneConfirmedAt'>;
}

/**
 * Gives an unconfirmed user the password of the latest sign-up, or none if that had none: an
 * earlier one may be an attacker's, who waits for the owner of the contact to confirm it. Metadata
 * are merged, because an administrator may have set some. Metadata that would exceed the limit are
 * dropped: an error would disclose that the user exists.
 */
export async function takeOver(
  { store }: Context,
  user: User,
  { contact, data: givenData, newUser }: LatestSignUp,
  metadata: RequestMetadata,
): Promise<User> {
  const sizes = { before: user.userMetadata, changes: givenData };
  const data = metadataSizeProblem('user_metadata', sizes) === undefined ? givenData : {};
  const { passwordHash, emailConfirmedAt, phoneConfirmedAt } = newUser;
  const verified = emailConfirmedAt !== undefined || phoneConfirmedAt !== undefined;
  const identity = newContactIdentity(user.id, contact, { verified, data });
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
      identities: [identity],
    },
  );
  if (!updated.ok) throw errors.user_already_exists();
  return updated.user;
}
