import { type AuditAction, auditEntry } from '../../domain/audit-entry.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import type { NewUser } from '../../ports/user-store.ts';
import type { Services } from '../../services.ts';
import type { Contact } from '../contact/read-contact.ts';
import { actorOf } from '../users/new-user.ts';

/** The user of a contact; absent where another audience has it. */
export interface FoundOrCreated {
  readonly user: User | undefined;
  readonly created: boolean;
}

/** Creates a user, unless somebody has the contact: the same two statements for both, also when many come at once. */
export type FindOrCreateUser = (
  newUser: NewUser,
  of: { readonly contact: Contact; readonly action: AuditAction },
  facts: RequestFacts,
) => Promise<FoundOrCreated>;

/** Creates {@link FindOrCreateUser}. */
export function createFindOrCreateUser({ store }: Pick<Services, 'store'>): FindOrCreateUser {
  return async (newUser, { contact, action }, facts) => {
    const audit = auditEntry(actorOf(newUser), action, { facts, traits: { provider: contact.kind } });
    const created = await store.users.insert(newUser, audit);
    return { created, user: await findByContact(store, contact, newUser.aud) };
  };
}

/** The user who is known by a contact. */
export function findByContact(
  store: Services['store'],
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
