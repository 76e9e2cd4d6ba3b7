import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { readChannel } from '../messages/phone-codes.ts';
import type { SmsChannel } from '../messages/sms.ts';
import { type ChosenPassword, choosePassword } from '../passwords/change.ts';
import { checkPassword } from '../passwords/policy.ts';
import type { Session } from '../sessions/sessions.ts';
import { readEmail, readPhone } from './contact.ts';
import type { User } from './user.ts';
import { checkMetadata, type JsonObject } from './user-json.ts';

/** The user who sends the update. */
export interface Owner {
  readonly user: User;
  readonly session: Session | undefined;
}

/** An update as sent; absent values, and empty contacts, leave the user as they are. */
export interface OwnUpdateRequest {
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
export interface OwnUpdatePlan {
  readonly email: string;
  readonly emailChange: ContactChange;
  readonly phone: string;
  readonly phoneChange: ContactChange;
  readonly channel: SmsChannel;
  /** The new password, hashed. */
  readonly chosen: ChosenPassword | undefined;
}

/** Validates an update. The order of the checks is GoTrue's, which its clients rely on. */
export async function planOwnUpdate(
  context: Context,
  owner: Owner,
  request: OwnUpdateRequest,
  metadata: RequestMetadata,
): Promise<OwnUpdatePlan> {
  const { settings } = context;
  const { user } = owner;
  const { phone = '', password, currentPassword, nonce = '' } = request;
  const update = readUpdate(request);
  const channel = readChannel(phone === '' ? undefined : request.channel, settings);
  if (password !== undefined) await checkPassword(context, password);
  checkAllowed(update, owner, settings);
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
  const hasMfa = user.factors.some(({ status }) => status === 'verified');
  if (hasMfa && session?.aal !== 'aal2' && changesCredentials) throw errors.insufficient_aal();
  if (user.isAnonymous && password !== undefined && email === '' && phone === '')
    throw errors.validation_failed({
      message: 'Updating password of an anonymous user without an email or phone is not allowed',
      httpStatus: 422,
    });
  if (user.isSsoUser && (changesCredentials || nonce !== '')) throw errors.user_sso_managed();
}

async function checkAvailable({ store }: Context, update: OwnUpdate, user: User): Promise<void> {
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
