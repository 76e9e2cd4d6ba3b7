import type { JsonObject } from '@tollgate/kit/json';
import { isUuid } from '@tollgate/kit/text';
import { errors } from '../errors.ts';
import { notify } from '../messages/send.ts';
import type { MfaContext } from '../mfa/context.ts';
import { checkPassword, checkPasswordLength } from '../passwords/passwords.ts';
import { type AdminRequest, checkRoles, userAuditEntry } from '../sessions/admin-request.ts';
import { describeUserChanges } from '../users/changed-fields.ts';
import { checkMetadata } from '../users/metadata.ts';
import { type NewIdentity, type NewUser, newContactIdentity, passwordIdentity } from '../users/new-user.ts';
import { getUser, saveUser } from '../users/save-user.ts';
import type { Contact, User, UserChanges } from '../users/user.ts';
import type { ImportStore } from './import/store.ts';
import {
  type AdminUserInput,
  checkSecret,
  readBan,
  readName,
  readOptionalEmail,
  readOptionalPhone,
  toPasswordHash,
} from './input.ts';

export type AdminContext = MfaContext & { readonly store: { readonly imports: ImportStore } };

/** @throws AppError `user_not_found`, `insufficient_scope` */
export async function deleteUser(
  { store, settings }: Pick<AdminContext, 'store' | 'settings'>,
  { id, soft }: { readonly id: string; readonly soft: boolean },
  request: AdminRequest,
): Promise<void> {
  const user = await getUser(store, id);
  checkRoles(request, [user.role], settings);
  const audit = userAuditEntry(request, 'user_deleted', user);
  const isDeleted = soft
    ? await store.users.softDelete(id, { at: new Date(request.metadata.nowMs), audit })
    : await store.users.delete(id, audit);
  if (!isDeleted) throw errors.user_not_found();
}

interface NewUserInput extends AdminUserInput {
  /** Generated when absent. */
  readonly id?: string | undefined;
  readonly aud: string;
}

const nilUuid = '00000000-0000-0000-0000-000000000000';

/**
 * Creates a user without sending anything. The order of the checks is GoTrue's, which its clients
 * rely on. The password policy does not apply to administrators.
 */
export async function createUser(
  context: AdminContext,
  input: NewUserInput,
  request: AdminRequest,
): Promise<User> {
  const { store, random, passwords, settings } = context;
  const at = new Date(request.metadata.nowMs);
  if ((input.email ?? '') === '' && (input.phone ?? '') === '')
    throw errors.validation_failed({ message: 'Cannot create a user without either an email or phone' });
  checkRoles(request, [input.role], settings);
  const email = readOptionalEmail(input.email);
  const phone = readOptionalPhone(input.phone);
  const id = readId(input.id) ?? random.uuid();
  await checkAvailable(context, { id, email, phone });
  checkSecret(input);
  checkPasswordLength(input.password ?? '', settings);
  checkMetadata(input);
  const bannedUntil = readBan(input.banDuration, request.metadata) ?? undefined;
  const user: NewUser = {
    id,
    aud: readName('aud', input.aud),
    role: readName('role', input.role) || settings.jwtDefaultGroupName,
    email,
    phone,
    passwordHash: await toPasswordHash(input, passwords),
    emailConfirmedAt: confirmsEmail(input, { email, phone }) ? at : undefined,
    phoneConfirmedAt: confirmsPhone(input, { email, phone }) ? at : undefined,
    isAnonymous: false,
    createdAt: at,
    bannedUntil,
    ...createMetadata(input, id, { email, phone }),
  };
  if (!(await store.users.insert(user, userAuditEntry(request, 'user_signedup', user)))) {
    await checkAvailable(context, user); // inserted concurrently
    throw errors.conflict();
  }
  return getUser(store, id);
}

async function checkAvailable(
  { store }: AdminContext,
  user: Pick<NewUser, 'id' | 'email' | 'phone'>,
): Promise<void> {
  const taken = await store.users.findTaken(user);
  if (taken === 'email') throw errors.email_exists();
  if (taken === 'phone') throw errors.phone_exists();
  if (taken === 'id') throw errors.user_already_exists({ message: 'A user with this id already exists' });
}

export function readId(id = ''): string | undefined {
  if (id === '') return undefined;
  if (!isUuid(id)) throw errors.validation_failed({ message: 'ID must conform to the uuid v4 format' });
  if (id === nilUuid) throw errors.validation_failed({ message: 'ID cannot be a nil uuid' });
  return id.toLowerCase();
}

function confirmsEmail(input: AdminUserInput, { email }: Contacts): boolean {
  return email !== '' && input.emailConfirm === true;
}

function confirmsPhone(input: AdminUserInput, { phone }: Contacts): boolean {
  return phone !== '' && input.phoneConfirm === true;
}

export function createMetadata(
  input: AdminUserInput,
  id: string,
  contacts: Contacts,
): Pick<NewUser, 'identities' | 'appMetadata' | 'userMetadata'> {
  const isEmailConfirmed = confirmsEmail(input, contacts);
  const isPhoneConfirmed = confirmsPhone(input, contacts);
  const identities = toContacts(contacts).map((contact) => {
    const verified = contact.kind === 'email' ? isEmailConfirmed : isPhoneConfirmed;
    return newContactIdentity(id, contact, { verified });
  });
  const providers = identities.map(({ provider }) => provider);
  return {
    identities,
    appMetadata: withoutNulls({ provider: providers[0] ?? '', providers, ...input.appMetadata }),
    userMetadata: {
      ...input.userMetadata,
      ...(isEmailConfirmed && { email_verified: true }),
      ...(isPhoneConfirmed && { phone_verified: true }),
    },
  };
}

/** A `null` in app metadata removes the key, as in an update. */
function withoutNulls(metadata: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null));
}

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
  context: AdminContext,
  id: string,
  input: AdminUserInput,
  request: AdminRequest,
): Promise<User> {
  const { store, passwords } = context;
  const { metadata } = request;
  const user = await getUser(store, id);
  checkRoles(request, [user.role, input.role], context.settings);
  const contacts = { email: readOptionalEmail(input.email), phone: readOptionalPhone(input.phone) };
  const bannedUntil = readBan(input.banDuration, metadata);
  checkSecret(input);
  if (input.password !== undefined)
    await checkPassword(context, input.password, [user.email, user.phone, contacts.email, contacts.phone]);
  const role = readName('role', input.role);
  checkMetadata(input, user);
  const passwordHash = await toPasswordHash(input, passwords);
  const at = new Date(metadata.nowMs);
  const contactIdentities = toIdentities(user, { input, contacts });
  const isNew = !contactIdentities.some(({ provider }) => provider === 'email');
  const added =
    passwordHash !== undefined && isNew ? passwordIdentity(user, context.settings) : { identities: [] };
  const metadataChanges = toMetadataChanges(user, { input, contacts });
  const changes: UserChanges = {
    ...(role !== '' && { role }),
    ...(bannedUntil !== undefined && { bannedUntil }),
    ...(passwordHash !== undefined && { passwordHash }),
    ...toContactChanges(user, contacts),
    ...toConfirmations(user, { input, contacts, at }),
    ...metadataChanges,
    ...(added.appMetadata && { appMetadata: { ...metadataChanges.appMetadata, ...added.appMetadata } }),
  };
  const identities = [...contactIdentities, ...added.identities];
  const updatedUser = await store.transaction(async (transaction) => {
    const audit = userAuditEntry(request, 'user_modified', user, describeUserChanges(user, changes));
    const updated = await saveUser(transaction, id, changes, { at, audit, identities });
    const hasNewContact = updated.email !== user.email || updated.phone !== user.phone;
    const clearSentAt = passwordHash !== undefined;
    if (hasNewContact || clearSentAt) await transaction.oneTimeTokens.clear(id, { clearSentAt });
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
  context: AdminContext,
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
  const added = toContacts(contacts).flatMap(({ kind }) => (known.includes(kind) ? [] : kind));
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

function toContacts({ email, phone }: Contacts): Contact[] {
  return [
    ...(email === '' ? [] : [{ kind: 'email', email } as const]),
    ...(phone === '' ? [] : [{ kind: 'phone', phone } as const]),
  ];
}

/** Identities of changed or confirmed contacts. */
function toIdentities(
  user: User,
  { input, contacts }: { readonly input: AdminUserInput; readonly contacts: Contacts },
): NewIdentity[] {
  const email = contacts.email || (input.emailConfirm === true ? user.email : '');
  const phone = contacts.phone || (input.phoneConfirm === true ? user.phone : '');
  return toContacts({ email, phone }).map((contact) => {
    const known = user.identities.find(({ provider }) => provider === contact.kind);
    const verified =
      contact.kind === 'email'
        ? input.emailConfirm === true || (email === user.email && user.emailConfirmedAt !== undefined)
        : input.phoneConfirm === true || (phone === user.phone && user.phoneConfirmedAt !== undefined);
    const identity = newContactIdentity(user.id, contact, { verified });
    return { ...identity, providerId: known?.providerId ?? user.id };
  });
}
