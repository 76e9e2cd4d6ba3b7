import type { Context } from '../context.ts';
import { type AuditActor, auditEntry } from '../db/audit-log.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createNotify } from '../messages/send.ts';
import { checkPassword } from '../passwords/policy.ts';
import { getUser, saveUser } from '../users/update.ts';
import type { NewIdentity, User, UserChanges } from '../users/user.ts';
import { contactIdentityData } from '../users/user.ts';
import { checkMetadata } from '../users/user-json.ts';
import {
  type AdminUserInput,
  checkOneSecret,
  hashOf,
  readBan,
  readName,
  readOptionalEmail,
  readOptionalPhone,
  subjectOf,
} from './create-user.ts';

/** Changes a user at once: nothing is to be confirmed, and nothing is sent. */
export type UpdateUser = (
  id: string,
  input: AdminUserInput,
  by: { readonly actor: AuditActor; readonly metadata: RequestMetadata },
) => Promise<User>;

/** Contacts as they will be. */
interface Contacts {
  readonly email: string;
  readonly phone: string;
}

/** Creates {@link UpdateUser}. A new password ends all sessions, and a new contact or password takes back what was sent before. */
export function createUpdateUser(deps: Context): UpdateUser {
  const { store, passwords } = deps;
  const notify = createNotify(deps);

  /** Mails of what has changed go where the user has been reached so far. */
  function notifyOf(before: User, after: User, { passwordHash }: UserChanges): void {
    if (passwordHash !== undefined) notify(after, 'PASSWORD_CHANGED_NOTIFICATION', {}, before.email);
    if (after.email !== before.email)
      notify(after, 'EMAIL_CHANGED_NOTIFICATION', { OldEmail: before.email }, before.email);
    if (after.phone !== before.phone) {
      const phones = { Phone: after.phone, OldPhone: before.phone };
      notify(after, 'PHONE_CHANGED_NOTIFICATION', phones, before.email);
    }
  }

  return async (id, input, { actor, metadata }) => {
    const user = await getUser(store, id);
    const contacts = { email: readOptionalEmail(input.email), phone: readOptionalPhone(input.phone) };
    const bannedUntil = readBan(input.banDuration, metadata);
    checkOneSecret(input);
    if (input.password) await checkPassword(deps, input.password);
    const role = readName('role', input.role);
    checkMetadata(input, user);
    const passwordHash = await hashOf(input, passwords);
    const at = new Date(metadata.nowMs);
    const changes: UserChanges = {
      ...(role !== '' && { role }),
      ...(bannedUntil !== undefined && { bannedUntil }),
      ...(passwordHash !== undefined && { passwordHash }),
      ...contactChanges(user, contacts),
      ...confirmations(user, { input, contacts, at }),
      ...metadataChanges(user, { input, contacts }),
    };
    const identities = identitiesOf(user, { input, contacts });
    const updatedUser = await store.transaction(async (transaction) => {
      const audit = auditEntry(actor, 'user_modified', { metadata, traits: subjectOf(user) });
      const updated = await saveUser(transaction, id, changes, { at, audit, identities });
      const hasNewContact = updated.email !== user.email || updated.phone !== user.phone;
      if (hasNewContact || passwordHash !== undefined) await transaction.oneTimeTokens.clear(id);
      if (passwordHash !== undefined) {
        const ended = auditEntry(actor, 'user_updated_password', { metadata, traits: subjectOf(user) });
        await transaction.sessions.end('global', { userId: id, sessionId: undefined }, ended);
      }
      return updated;
    });
    notifyOf(user, updatedUser, changes);
    return updatedUser;
  };
}

/** A change that the user has begun is overtaken. */
function contactChanges(user: User, { email, phone }: Contacts): UserChanges {
  return {
    ...(email !== '' && email !== user.email && { email, newEmail: null, emailChangeConfirmStatus: 0 }),
    ...(phone !== '' && phone !== user.phone && { phone, newPhone: null }),
  };
}

function confirmations(
  user: User,
  { input, contacts, at }: { readonly input: AdminUserInput; readonly contacts: Contacts; readonly at: Date },
): UserChanges {
  const confirmsEmail = input.emailConfirm === true && (contacts.email || user.email) !== '';
  const confirmsPhone = input.phoneConfirm === true && (contacts.phone || user.phone) !== '';
  return {
    ...(confirmsEmail && { emailConfirmedAt: at }),
    ...(confirmsPhone && { phoneConfirmedAt: at }),
    // Somebody who can be reached can sign in again.
    ...((confirmsEmail || confirmsPhone) && { isAnonymous: false }),
  };
}

function metadataChanges(
  user: User,
  { input, contacts }: { readonly input: AdminUserInput; readonly contacts: Contacts },
): UserChanges {
  const verified = {
    ...(input.emailConfirm === true && { email_verified: true }),
    ...(input.phoneConfirm === true && { phone_verified: true }),
  };
  const added = providersOf(contacts).filter((p) => !user.identities.some(({ provider }) => provider === p));
  const known = user.identities.map(({ provider }) => provider);
  const providers = added.length > 0 && {
    provider: user.appMetadata.provider ?? added[0] ?? '',
    providers: [...new Set([...known, ...added])],
  };
  const changesUserMetadata = input.userMetadata !== undefined || Object.keys(verified).length > 0;
  return {
    ...(changesUserMetadata && { userMetadata: { ...input.userMetadata, ...verified } }),
    ...((input.appMetadata || providers) && { appMetadata: { ...providers, ...input.appMetadata } }),
  };
}

function providersOf({ email, phone }: Contacts): ('email' | 'phone')[] {
  return [...(email === '' ? [] : (['email'] as const)), ...(phone === '' ? [] : (['phone'] as const))];
}

/** What the user is known by, where that changes. */
function identitiesOf(
  user: User,
  { input, contacts }: { readonly input: AdminUserInput; readonly contacts: Contacts },
): NewIdentity[] {
  const email = contacts.email || (input.emailConfirm === true ? user.email : '');
  const phone = contacts.phone || (input.phoneConfirm === true ? user.phone : '');
  return providersOf({ email, phone }).map((provider) => {
    const isEmail = provider === 'email';
    const known = user.identities.find((identity) => identity.provider === provider);
    const verified = isEmail
      ? input.emailConfirm === true || (email === user.email && user.emailConfirmedAt !== undefined)
      : input.phoneConfirm === true || (phone === user.phone && user.phoneConfirmedAt !== undefined);
    return {
      provider,
      providerId: known?.providerId ?? user.id,
      data: contactIdentityData({
        userId: user.id,
        contact: isEmail ? { email } : { phone },
        verified,
        data: {},
      }),
    };
  });
}
