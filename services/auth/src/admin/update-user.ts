import type { Context } from '../context.ts';
import { notify } from '../messages/send.ts';
import { checkPassword } from '../passwords/policy.ts';
import { newContactIdentity } from '../users/contact.ts';
import { checkMetadata } from '../users/metadata.ts';
import { getUser, saveUser } from '../users/update.ts';
import type { NewIdentity, User, UserChanges } from '../users/user.ts';
import {
  type AdminRequest,
  type AdminUserInput,
  checkSecret,
  readBan,
  readName,
  readOptionalEmail,
  readOptionalPhone,
  toPasswordHash,
  userAuditEntry,
} from './input.ts';

/** Contacts of the input, normalized; empty for no change. */
interface Contacts {
  readonly email: string;
  readonly phone: string;
}

/**
 * Changes a user at once, without any confirmation. A new password ends all sessions; a new contact
 * or password also invalidates all one-time tokens.
 */
export async function updateUser(
  context: Context,
  id: string,
  input: AdminUserInput,
  request: AdminRequest,
): Promise<User> {
  const { store, passwords } = context;
  const { metadata } = request;
  const user = await getUser(store, id);
  const contacts = { email: readOptionalEmail(input.email), phone: readOptionalPhone(input.phone) };
  const bannedUntil = readBan(input.banDuration, metadata);
  checkSecret(input);
  if (input.password) await checkPassword(context, input.password);
  const role = readName('role', input.role);
  checkMetadata(input, user);
  const passwordHash = await toPasswordHash(input, passwords);
  const at = new Date(metadata.nowMs);
  const changes: UserChanges = {
    ...(role !== '' && { role }),
    ...(bannedUntil !== undefined && { bannedUntil }),
    ...(passwordHash !== undefined && { passwordHash }),
    ...toContactChanges(user, contacts),
    ...toConfirmations(user, { input, contacts, at }),
    ...toMetadataChanges(user, { input, contacts }),
  };
  const identities = toIdentities(user, { input, contacts });
  const updatedUser = await store.transaction(async (transaction) => {
    const audit = userAuditEntry(request, 'user_modified', user);
    const updated = await saveUser(transaction, id, changes, { at, audit, identities });
    const hasNewContact = updated.email !== user.email || updated.phone !== user.phone;
    if (hasNewContact || passwordHash !== undefined) await transaction.oneTimeTokens.clear(id);
    if (passwordHash !== undefined) {
      const ended = userAuditEntry(request, 'user_updated_password', user);
      await transaction.sessions.end('global', { userId: id, sessionId: undefined }, ended);
    }
    return updated;
  });
  notifyUser(context, { before: user, after: updatedUser, changes });
  return updatedUser;
}

/** Notifications go to the previous email. */
function notifyUser(
  context: Context,
  options: { readonly before: User; readonly after: User; readonly changes: UserChanges },
): void {
  const { before, after, changes } = options;
  if (changes.passwordHash !== undefined)
    notify(context, { user: after, kind: 'PASSWORD_CHANGED_NOTIFICATION', to: before.email });
  if (after.email !== before.email)
    notify(context, {
      user: after,
      kind: 'EMAIL_CHANGED_NOTIFICATION',
      variables: { OldEmail: before.email },
      to: before.email,
    });
  if (after.phone !== before.phone) {
    const phones = { Phone: after.phone, OldPhone: before.phone };
    notify(context, { user: after, kind: 'PHONE_CHANGED_NOTIFICATION', variables: phones, to: before.email });
  }
}

/** Cancels a pending change of the contact. */
function toContactChanges(user: User, { email, phone }: Contacts): UserChanges {
  return {
    ...(email !== '' && email !== user.email && { email, newEmail: null, emailChangeConfirmStatus: 0 }),
    ...(phone !== '' && phone !== user.phone && { phone, newPhone: null }),
  };
}

function toConfirmations(
  user: User,
  { input, contacts, at }: { readonly input: AdminUserInput; readonly contacts: Contacts; readonly at: Date },
): UserChanges {
  const confirmsEmail = input.emailConfirm === true && (contacts.email || user.email) !== '';
  const confirmsPhone = input.phoneConfirm === true && (contacts.phone || user.phone) !== '';
  return {
    ...(confirmsEmail && { emailConfirmedAt: at }),
    ...(confirmsPhone && { phoneConfirmedAt: at }),
    // With a confirmed contact the user can sign in again.
    ...((confirmsEmail || confirmsPhone) && { isAnonymous: false }),
  };
}

function toMetadataChanges(
  user: User,
  { input, contacts }: { readonly input: AdminUserInput; readonly contacts: Contacts },
): UserChanges {
  const verified = {
    ...(input.emailConfirm === true && { email_verified: true }),
    ...(input.phoneConfirm === true && { phone_verified: true }),
  };
  const known = user.identities.map(({ provider }) => provider);
  const added = toProviders(contacts).filter((provider) => !known.includes(provider));
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

function toProviders({ email, phone }: Contacts): ('email' | 'phone')[] {
  return [...(email === '' ? [] : (['email'] as const)), ...(phone === '' ? [] : (['phone'] as const))];
}

/** Identities of changed or confirmed contacts. */
function toIdentities(
  user: User,
  { input, contacts }: { readonly input: AdminUserInput; readonly contacts: Contacts },
): NewIdentity[] {
  const email = contacts.email || (input.emailConfirm === true ? user.email : '');
  const phone = contacts.phone || (input.phoneConfirm === true ? user.phone : '');
  return toProviders({ email, phone }).map((provider) => {
    const isEmail = provider === 'email';
    const known = user.identities.find((identity) => identity.provider === provider);
    const verified = isEmail
      ? input.emailConfirm === true || (email === user.email && user.emailConfirmedAt !== undefined)
      : input.phoneConfirm === true || (phone === user.phone && user.phoneConfirmedAt !== undefined);
    const contact = isEmail ? ({ kind: 'email', email } as const) : ({ kind: 'phone', phone } as const);
    const identity = newContactIdentity(user.id, contact, { verified });
    return { ...identity, providerId: known?.providerId ?? user.id };
  });
}
