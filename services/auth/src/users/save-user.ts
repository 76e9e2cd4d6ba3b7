import { auditEntry } from '../audit/audit-log.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { newContactIdentity } from './new-user.ts';
import type { OneTimeTokenType } from './token-columns.ts';
import type { Contact, User, UserChanges } from './user.ts';

/** @throws AppError `user_not_found`. */
export async function getUser(store: Context['store'], id: string): Promise<User> {
  const user = await store.users.findById(id);
  if (user === undefined) throw errors.user_not_found();
  return user;
}

/** @throws AppError `user_not_found`, `email_exists`, `phone_exists`. */
export async function saveUser(
  store: Context['store'],
  id: string,
  changes: UserChanges,
  options: Parameters<Context['store']['users']['update']>[2],
): Promise<User> {
  const updated = await store.users.update(id, changes, options);
  if (!updated.ok) throw errors[updated.reason === 'not_found' ? 'user_not_found' : updated.reason]();
  return updated.user;
}

/**
 * Replaces the user's email or phone with a confirmed one and adds its identity. An anonymous user
 * becomes a permanent one. All one-time tokens of the user except those in `keep` are deleted.
 */
export async function changeContact(
  store: Context['store'],
  user: User,
  options: {
    readonly contact: Contact;
    readonly metadata: RequestMetadata;
    readonly keep?: readonly OneTimeTokenType[];
  },
): Promise<User> {
  const { contact, metadata, keep = [] } = options;
  const at = new Date(metadata.nowMs);
  return store.transaction(async (transaction) => {
    const updated = await saveUser(transaction, user.id, toContactChanges(user, contact, at), {
      at,
      audit: auditEntry(user, 'user_modified', { metadata, traits: { changed: [contact.kind] } }),
      identities: [newContactIdentity(user.id, contact, { verified: true })],
    });
    await transaction.oneTimeTokens.clear(user.id, { except: keep });
    return updated;
  });
}

function toContactChanges({ appMetadata, identities }: User, contact: Contact, at: Date): UserChanges {
  const providers = [...new Set([...identities.map(({ provider }) => provider), contact.kind])];
  const common = {
    isAnonymous: false,
    appMetadata: { provider: appMetadata.provider ?? contact.kind, providers },
  };
  if (contact.kind === 'phone')
    return { ...common, phone: contact.phone, phoneConfirmedAt: at, newPhone: null };
  return {
    ...common,
    email: contact.email,
    emailConfirmedAt: at,
    newEmail: null,
    emailChangeConfirmStatus: 0,
  };
}
