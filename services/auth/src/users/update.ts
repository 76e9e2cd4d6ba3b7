import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import type { Store } from '../db/store.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { sendLink } from '../messages/links.ts';
import { sendPhoneCode } from '../messages/phone-codes.ts';
import { notify } from '../messages/send.ts';
import type { ChosenPassword } from '../passwords/change.ts';
import { type CodeChallenge, flowType, startFlow } from '../sign-in/pkce.ts';
import type { OneTimeTokenType } from '../verification/store.ts';
import { type Owner, type OwnUpdatePlan, type OwnUpdateRequest, planOwnUpdate } from './check-update.ts';
import type { Contact } from './contact.ts';
import { newContactIdentity, type User, type UserChanges } from './user.ts';

/** @throws AppError `user_not_found`. */
export async function getUser(store: Store, id: string): Promise<User> {
  const user = await store.users.findById(id);
  if (user === undefined) throw errors.user_not_found();
  return user;
}

/** @throws AppError `user_not_found`, `email_exists`, `phone_exists`. */
export async function saveUser(
  store: Store,
  id: string,
  changes: UserChanges,
  options: Parameters<Store['users']['update']>[2],
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
  store: Store,
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
      audit: auditEntry(user, 'user_modified', { metadata }),
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

interface OwnUpdateInput extends OwnUpdateRequest {
  /** The link in the mail then returns a code. */
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
}

/**
 * Changes the calling user. A new email or phone is confirmed first unless confirmation is off.
 * Codes are sent before anything is written, so the user stays as they are when sending fails.
 */
export async function updateOwnUser(
  context: Context,
  owner: Owner,
  input: OwnUpdateInput,
  metadata: RequestMetadata,
): Promise<User> {
  const { store } = context;
  const plan = await planOwnUpdate(context, owner, input, metadata);
  const keep = await sendCodes(context, owner.user, { plan, input, metadata });
  let user = await writeUpdate(store, owner, { plan, input, keep, metadata });
  if (plan.chosen !== undefined) notify(context, { user, kind: 'PASSWORD_CHANGED_NOTIFICATION' });
  if (plan.emailChange === 'now')
    user = await changeContact(store, user, {
      contact: { kind: 'email', email: plan.email },
      metadata,
      keep,
    });
  if (plan.phoneChange === 'now') {
    user = await changeContact(store, user, {
      contact: { kind: 'phone', phone: plan.phone },
      metadata,
      keep,
    });
    notify(context, {
      user,
      kind: 'PHONE_CHANGED_NOTIFICATION',
      variables: { Phone: user.phone, OldPhone: owner.user.phone },
    });
  }
  return user;
}

interface PlannedUpdate {
  readonly plan: OwnUpdatePlan;
  readonly input: OwnUpdateInput;
  readonly metadata: RequestMetadata;
}

/** Returns the types of the tokens that were sent. */
async function sendCodes(
  context: Context,
  user: User,
  { plan, input, metadata }: PlannedUpdate,
): Promise<OneTimeTokenType[]> {
  const sent: OneTimeTokenType[] = [];
  if (plan.emailChange === 'confirmed') {
    const { challenge, redirectTo } = input;
    const link = { redirectTo, flow: flowType(challenge), newEmail: plan.email } as const;
    await sendLink(context, user, { kind: 'email_change', ...link }, metadata);
    // After the link: a rejected request must not replace the challenge of a link sent before.
    if (challenge !== undefined)
      await startFlow(
        context,
        { ...challenge, userId: user.id, authenticationMethod: 'email_change' },
        metadata,
      );
    sent.push('email_change_token_new', 'email_change_token_current');
  }
  if (plan.phoneChange === 'confirmed') {
    const { phone, channel } = plan;
    await sendPhoneCode(context, user, { kind: 'phone_change', phone, channel }, metadata);
    sent.push('phone_change_token');
  }
  return sent;
}

/** Without a new password this is a single statement. */
async function writeUpdate(
  store: Store,
  owner: Owner,
  { plan, input, keep, metadata }: PlannedUpdate & { readonly keep: readonly OneTimeTokenType[] },
): Promise<User> {
  const { user } = owner;
  const { chosen } = plan;
  const changes = toUserChanges(plan, input);
  const options = {
    at: new Date(metadata.nowMs),
    audit: auditEntry(user, 'user_modified', { metadata }),
  };
  if (chosen === undefined) return saveUser(store, user.id, changes, options);
  return store.transaction(async (transaction) => {
    await revokeOtherAccess(transaction, owner, { chosen, keep, metadata });
    return saveUser(transaction, user.id, changes, options);
  });
}

function toUserChanges(plan: OwnUpdatePlan, { data, appMetadata }: OwnUpdateInput): UserChanges {
  return {
    ...(plan.chosen && { passwordHash: plan.chosen.hash }),
    ...(data && { userMetadata: data }),
    ...(appMetadata && { appMetadata }),
    ...(plan.emailChange === 'confirmed' && { newEmail: plan.email, emailChangeConfirmStatus: 0 }),
    ...(plan.phoneChange === 'confirmed' && { newPhone: plan.phone }),
  };
}

/** Ends access by the old password: all other sessions, and all tokens except those in `keep`. */
async function revokeOtherAccess(
  store: Store,
  { user, session }: Owner,
  options: {
    readonly chosen: ChosenPassword;
    readonly keep: readonly OneTimeTokenType[];
    readonly metadata: RequestMetadata;
  },
): Promise<void> {
  const { chosen, keep, metadata } = options;
  const { nonceToken } = chosen;
  if (nonceToken !== undefined && !(await store.oneTimeTokens.spend(nonceToken)))
    throw errors.reauthentication_not_valid();
  await store.oneTimeTokens.clear(user.id, { except: keep });
  const audit = auditEntry(user, 'user_updated_password', { metadata });
  await store.sessions.end('others', { userId: user.id, sessionId: session?.id }, audit);
}
