import { auditEntry } from '../../domain/audit-entry.ts';
import { contactIdentityData } from '../../domain/identity.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { UserChanges } from '../../ports/user-store.ts';
import type { Services } from '../../services.ts';

/** What confirming changes besides. */
export interface Confirmation {
  readonly contact: 'email' | 'phone';
  readonly action: 'user_signedup' | 'invite_accepted';
  /** A password for a user without one; `null` takes it away; absent leaves it. */
  readonly passwordHash?: string | null | undefined;
}

/** Notes that the email or phone of a user is theirs. Answers the user as changed. */
export async function confirmContact(
  store: Services['store'],
  user: User,
  { contact, action, passwordHash }: Confirmation,
  facts: RequestFacts,
): Promise<User> {
  const at = new Date(facts.nowMs);
  const isEmail = contact === 'email';
  const value = isEmail ? { email: user.email } : { phone: user.phone };
  const data = contactIdentityData({ userId: user.id, contact: value, verified: true, data: {} });
  const changes: UserChanges = {
    ...(isEmail ? { emailConfirmedAt: at } : { phoneConfirmedAt: at }),
    userMetadata: isEmail ? { email_verified: true } : { phone_verified: true },
    ...(passwordHash !== undefined && { passwordHash }),
  };
  const updated = await store.users.update(user.id, changes, {
    at,
    audit: auditEntry(user, action, { facts, traits: { provider: contact } }),
    identities: [{ provider: contact, providerId: user.id, data }],
  });
  if (!updated.ok) throw errors.otp_expired();
  return updated.user;
}
