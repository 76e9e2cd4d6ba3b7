import { auditEntry } from '../../domain/audit-entry.ts';
import { contactIdentityData } from '../../domain/identity.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { OneTimeTokenType } from '../../ports/one-time-token-store.ts';
import type { UserChanges } from '../../ports/user-store.ts';
import type { Services } from '../../services.ts';
import type { Contact } from '../contact/read-contact.ts';

/**
 * Gives a user an email or a phone that they have confirmed, or need not: it takes the place of the one they had, and becomes an
 * identity. A user who was anonymous no longer is. All their one-time tokens are taken out of use, but those of the types in `keep`.
 * Answers the user as changed.
 *
 * @throws AppError `email_exists` or `phone_exists` when somebody else has it by now.
 */
export type ChangeContact = (
  user: User,
  contact: Contact,
  facts: RequestFacts,
  options?: { readonly keep?: readonly OneTimeTokenType[] },
) => Promise<User>;

/** Creates {@link ChangeContact}. */
export function createChangeContact({ store }: Pick<Services, 'store'>): ChangeContact {
  return (user, contact, facts, { keep = [] } = {}) => {
    const at = new Date(facts.nowMs);
    const value = contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone };
    const data = contactIdentityData({ userId: user.id, contact: value, verified: true, data: {} });
    return store.transaction(async (transaction) => {
      const updated = await transaction.users.update(user.id, changesOf(user, contact, at), {
        at,
        audit: auditEntry(user, 'user_modified', { facts }),
        identities: [{ provider: contact.kind, providerId: user.id, data }],
      });
      if (!updated.ok) throw errors[updated.reason === 'not_found' ? 'user_not_found' : updated.reason]();
      await transaction.oneTimeTokens.clear(user.id, { except: keep });
      return updated.user;
    });
  };
}

function changesOf(user: User, contact: Contact, at: Date): UserChanges {
  const common = { isAnonymous: false, appMetadata: providersWith(user, contact.kind) };
  return contact.kind === 'email'
    ? {
        ...common,
        email: contact.email,
        emailConfirmedAt: at,
        newEmail: null,
        emailChangeConfirmStatus: 0,
      }
    : { ...common, phone: contact.phone, phoneConfirmedAt: at, newPhone: null };
}

function providersWith({ appMetadata, identities }: User, provider: string) {
  const providers = new Set([...identities.map((identity) => identity.provider), provider]);
  return { provider: appMetadata.provider ?? provider, providers: [...providers] };
}
