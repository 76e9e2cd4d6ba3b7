import type { JsonObject } from '@tollgate/kit/json';
import { auditEntry } from '../audit/audit-log.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { flowType, startFlow } from '../flows/pkce.ts';
import type { CodeChallenge } from '../flows/store.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { sendLink } from '../messages/links.ts';
import { readChannel, sendPhoneCode } from '../messages/phone-codes.ts';
import { notify } from '../messages/send.ts';
import type { SmsChannel } from '../messages/sms-gateway.ts';
import { checkPassword } from '../passwords/passwords.ts';
import { requireSecondFactor } from '../sessions/assurance.ts';
import type { Session } from '../sessions/store.ts';
import { describeUserChanges } from '../users/changed-fields.ts';
import { checkMetadata } from '../users/metadata.ts';
import { passwordIdentity } from '../users/new-user.ts';
import { saveUser } from '../users/save-user.ts';
import type { OneTimeTokenType } from '../users/token-columns.ts';
import { readEmail, readPhone, type User, type UserChanges } from '../users/user.ts';
import { changeContact } from '../verification/change-contact.ts';
import { type ChosenPassword, choosePassword, confirmChange } from './change-password.ts';
import type { AccountContext } from './context.ts';

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
  context: AccountContext,
  owner: Owner,
  input: OwnUpdateInput,
  metadata: RequestMetadata,
): Promise<User> {
  const { store } = context;
  const plan = await planOwnUpdate(context, owner, input, metadata);
  const keep = await sendCodes(context, owner.user, { plan, input, metadata });
  let user = await writeUpdate(context, owner, { plan, input, keep, metadata });
  if (plan.chosen !== undefined) notify(context, { user, kind: 'PASSWORD_CHANGED_NOTIFICATION' }, metadata);
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
    notify(
      context,
      {
        user,
        kind: 'PHONE_CHANGED_NOTIFICATION',
        variables: { Phone: user.phone, OldPhone: owner.user.phone },
      },
      metadata,
    );
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
  context: AccountContext,
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
  { store, settings }: AccountContext,
  owner: Owner,
  { plan, input, keep, metadata }: PlannedUpdate & { readonly keep: readonly OneTimeTokenType[] },
): Promise<User> {
  const { user } = owner;
  const { chosen } = plan;
  const { identities, appMetadata: added } =
    chosen === undefined ? { identities: [] } : passwordIdentity(user, settings);
  const changes = toUserChanges(plan, { ...input, appMetadata: mergeDefined(input.appMetadata, added) });
  const options = {
    identities,
    at: new Date(metadata.nowMs),
    audit: auditEntry(user, 'user_modified', { metadata, traits: describeUserChanges(user, changes) }),
  };
  if (chosen === undefined) return saveUser(store, user.id, changes, options);
  return store.transaction(async (transaction) => {
    await revokeOtherAccess(transaction, owner, { chosen, keep, metadata });
    return saveUser(transaction, user.id, changes, options);
  });
}

function mergeDefined(first: JsonObject | undefined, second: JsonObject | undefined): JsonObject | undefined {
  return first === undefined && second === undefined ? undefined : { ...first, ...second };
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
  store: AccountContext['store'],
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
  await store.oneTimeTokens.clear(user.id, { except: keep, clearSentAt: true });
  const audit = auditEntry(user, 'user_updated_password', { metadata });
  await store.sessions.end('others', { userId: user.id, sessionId: session?.id }, audit);
}

/** The user who sends the update. */
export interface Owner {
  readonly user: User;
  readonly session: Session | undefined;
}

/** An update as sent; absent values, and empty contacts, leave the user as they are. */
interface OwnUpdateRequest {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  readonly currentPassword?: string | undefined;
  readonly nonce?: string | undefined;
  /** Merged into the user metadata. */
  readonly data?: JsonObject | undefined;
  /** Merged into the app metadata; for administrators. */
  readonly appMetadata?: JsonObject | undefined;
  readonly channel?: string | undefined;
}

/**
 * A change of contact takes effect at once, or when the code sent to the new contact is verified.
 */
type ContactChange = 'now' | 'confirmed' | undefined;

/** A validated update. */
interface OwnUpdatePlan {
  readonly email: string;
  readonly emailChange: ContactChange;
  readonly phone: string;
  readonly phoneChange: ContactChange;
  readonly channel: SmsChannel;
  /** The new password, hashed. */
  readonly chosen: ChosenPassword | undefined;
}

/** Validates an update. The order of the checks is GoTrue's, which its clients rely on. */
async function planOwnUpdate(
  context: AccountContext,
  owner: Owner,
  request: OwnUpdateRequest,
  metadata: RequestMetadata,
): Promise<OwnUpdatePlan> {
  const { settings } = context;
  const { user } = owner;
  const { phone = '', password, currentPassword, nonce = '' } = request;
  const update = readUpdate(request);
  const channel = readChannel(phone === '' ? undefined : request.channel, context.sms);
  if (password !== undefined)
    await checkPassword(context, password, [user.email, user.phone, update.email, update.phone]);
  checkAllowed(update, owner, settings);
  const changesContact = changesEmail(update, user) || changesPhone(update, user);
  if (changesContact || password !== undefined)
    await confirmChange(context, { ...owner, currentPassword, nonce, isPassword: !changesContact }, metadata);
  checkMetadata({ userMetadata: request.data, appMetadata: request.appMetadata }, user);
  await checkAvailable(context, update, user);
  return {
    email: update.email,
    emailChange: planEmailChange(update, user, settings),
    phone: update.phone,
    phoneChange: planPhoneChange(update, user, settings),
    channel,
    chosen:
      password === undefined
        ? undefined
        : await choosePassword(context, { ...owner, password, currentPassword, nonce }, metadata),
  };
}

/** An update with normalized contacts, empty for no change. */
interface OwnUpdate {
  readonly email: string;
  readonly phone: string;
  readonly password: string | undefined;
  readonly nonce: string;
  readonly changesAppMetadata: boolean;
}

function readUpdate({
  email = '',
  phone = '',
  password,
  nonce = '',
  appMetadata,
}: OwnUpdateRequest): OwnUpdate {
  return {
    email: email === '' ? '' : readEmail(email),
    phone: phone === '' ? '' : readPhone(phone),
    password,
    nonce,
    changesAppMetadata: appMetadata !== undefined,
  };
}

function changesEmail({ email }: OwnUpdate, user: User): boolean {
  return email !== '' && email !== user.email;
}

function changesPhone({ phone }: OwnUpdate, user: User): boolean {
  return phone !== '' && phone !== user.phone;
}

function checkAllowed(update: OwnUpdate, { user, session }: Owner, settings: Settings): void {
  const { email, phone, password, nonce } = update;
  if (update.changesAppMetadata && !settings.jwtAdminRoles.includes(user.role))
    throw errors.not_admin({ message: 'Updating app_metadata requires admin privileges' });
  const changesCredentials =
    password !== undefined || changesEmail(update, user) || changesPhone(update, user);
  if (changesCredentials || update.changesAppMetadata) requireSecondFactor(user, session);
  if (user.isAnonymous && password !== undefined && email === '' && phone === '')
    throw errors.validation_failed({
      message: 'Updating password of an anonymous user without an email or phone is not allowed',
      httpStatus: 422,
    });
  if (user.isSsoUser && (changesCredentials || nonce !== '')) throw errors.user_sso_managed();
}

async function checkAvailable({ store }: AccountContext, update: OwnUpdate, user: User): Promise<void> {
  if (changesEmail(update, user) && (await store.users.findByEmail(update.email, user.aud)))
    throw errors.email_exists();
  if (changesPhone(update, user) && (await store.users.findByPhone(update.phone, user.aud)))
    throw errors.phone_exists();
}

function planEmailChange(update: OwnUpdate, user: User, settings: Settings): ContactChange {
  if (!changesEmail(update, user)) return undefined;
  // For an anonymous user this is a sign-up. Others could take over an address that is not theirs.
  return settings.mailerAutoconfirm && user.isAnonymous ? 'now' : 'confirmed';
}

function planPhoneChange(update: OwnUpdate, user: User, settings: Settings): ContactChange {
  if (!changesPhone(update, user)) return undefined;
  return settings.smsAutoconfirm ? 'now' : 'confirmed';
}
