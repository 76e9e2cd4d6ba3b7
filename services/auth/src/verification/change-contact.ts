import { auditEntry } from '../audit/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { describeUserChanges } from '../users/changed-fields.ts';
import { newContactIdentity } from '../users/new-user.ts';
import { saveUser } from '../users/save-user.ts';
import type { OneTimeTokenType } from '../users/token-columns.ts';
import type { Contact, User, UserChanges } from '../users/user.ts';
import type { VerificationContext } from './context.ts';

/**
 * Replaces the user's email or phone with a confirmed one and adds its identity. An anonymous user
 * becomes a permanent one. All one-time tokens of the user except those in `keep` are deleted.
 */
export async function changeContact(
  store: VerificationContext['store'],
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
    const changes = toContactChanges(user, contact, at);
    const updated = await saveUser(transaction, user.id, changes, {
      at,
      audit: auditEntry(user, 'user_modified', { metadata, traits: describeUserChanges(user, changes) }),
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
