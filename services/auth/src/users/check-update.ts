import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { readChannel } from '../messages/phone-codes.ts';
import type { SmsChannel } from '../messages/sms.ts';
import { type ChosenPassword, choosePassword } from '../passwords/change.ts';
import { checkPassword } from '../passwords/policy.ts';
import type { Session } from '../sessions/sessions.ts';
import { readEmail, readPhone } from '../sign-up/input.ts';
import type { User } from './user.ts';
import { checkMetadata, type JsonObject } from './user-json.ts';

/** What users may change of themselves, contacts as they are kept; absent and, for contacts, empty: no change. */
interface OwnUpdate {
  readonly email: string;
  readonly phone: string;
  readonly password: string | undefined;
  readonly nonce: string;
  readonly changesAppMetadata: boolean;
}

/** Who asks for it. */
export interface Owner {
  readonly user: User;
  readonly session: Session | undefined;
}

/** One rule of the update. @throws AppError when it is broken. */
type Check = (update: OwnUpdate, owner: Owner, settings: OwnUpdateSettings) => void;

type OwnUpdateSettings = Context['settings'];

/** The rules that need nothing but the update and its owner, in the order that clients of GoTrue know. */
const checks: readonly Check[] = [checkAdmin, checkAssurance, checkAnonymous, checkSso];

/** Checks what a user wants to change of themselves. @throws AppError of the first rule that is broken. */
function checkOwnUpdate(update: OwnUpdate, owner: Owner, settings: OwnUpdateSettings): void {
  for (const check of checks) check(update, owner, settings);
}

/** Does the update give the user another email? */
function changesEmail({ email }: OwnUpdate, user: User): boolean {
  return email !== '' && email !== user.email;
}

/** Does the update give the user another phone? */
function changesPhone({ phone }: OwnUpdate, user: User): boolean {
  return phone !== '' && phone !== user.phone;
}

function changesCredentials(update: OwnUpdate, user: User): boolean {
  return update.password !== undefined || changesEmail(update, user) || changesPhone(update, user);
}

function checkAdmin({ changesAppMetadata }: OwnUpdate, { user }: Owner, settings: OwnUpdateSettings): void {
  if (changesAppMetadata && !settings.jwtAdminRoles.includes(user.role))
    throw errors.not_admin({ message: 'Updating app_metadata requires admin privileges' });
}

function checkAssurance(update: OwnUpdate, { user, session }: Owner): void {
  const hasMfa = user.factors.some(({ status }) => status === 'verified');
  if (hasMfa && session?.aal !== 'aal2' && changesCredentials(update, user)) throw errors.insufficient_aal();
}

function checkAnonymous({ password, email, phone }: OwnUpdate, { user }: Owner): void {
  if (user.isAnonymous && password !== undefined && email === '' && phone === '')
    throw errors.validation_failed({
      message: 'Updating password of an anonymous user without an email or phone is not allowed',
      httpStatus: 422,
    });
}

function checkSso(update: OwnUpdate, { user }: Owner): void {
  if (user.isSsoUser && (changesCredentials(update, user) || update.nonce !== ''))
    throw errors.user_sso_managed();
}

/** Of what a user asks to be changed, that which has to be read and checked. */
export interface OwnUpdateRequest {
  readonly email?: string | undefined;
  readonly phone?: string | undefined;
  readonly password?: string | undefined;
  readonly currentPassword?: string | undefined;
  readonly nonce?: string | undefined;
  /** Merged into what the user says of themselves. */
  readonly data?: JsonObject | undefined;
  /** Merged into what the operator says of them; for administrators. */
  readonly appMetadata?: JsonObject | undefined;
  readonly channel?: string | undefined;
}

/** When a new contact becomes the user's: at once, or when a code that is sent to it comes back. */
type ContactChange = 'now' | 'confirmed' | undefined;

/** An update that may be made. */
export interface OwnUpdatePlan {
  readonly email: string;
  readonly emailChange: ContactChange;
  readonly phone: string;
  readonly phoneChange: ContactChange;
  readonly channel: SmsChannel;
  /** A new password, hashed; absent for none. */
  readonly chosen: ChosenPassword | undefined;
}

/** Reads and checks what a user wants to change of themselves. Nothing has changed when it throws. */
export type PlanOwnUpdate = (
  owner: Owner,
  request: OwnUpdateRequest,
  metadata: RequestMetadata,
) => Promise<OwnUpdatePlan>;

/** Creates {@link PlanOwnUpdate}. The order of the checks is that which clients of GoTrue know. */
export function createPlanOwnUpdate(deps: Context): PlanOwnUpdate {
  const { store, settings } = deps;

  async function checkFree(update: OwnUpdate, user: User): Promise<void> {
    if (changesEmail(update, user) && (await store.users.findByEmail(update.email, user.aud)))
      throw errors.email_exists();
    if (changesPhone(update, user) && (await store.users.findByPhone(update.phone, user.aud)))
      throw errors.phone_exists();
  }

  function emailChangeOf(update: OwnUpdate, user: User): ContactChange {
    if (!changesEmail(update, user)) return undefined;
    // Somebody who was anonymous signs up with this; everybody else could take over an address that is not theirs.
    return settings.mailerAutoconfirm && user.isAnonymous ? 'now' : 'confirmed';
  }

  function phoneChangeOf(update: OwnUpdate, user: User): ContactChange {
    if (!changesPhone(update, user)) return undefined;
    return settings.smsAutoconfirm ? 'now' : 'confirmed';
  }

  return async (owner, request, metadata) => {
    const { user } = owner;
    const { email = '', phone = '', password, currentPassword, nonce = '' } = request;
    const update: OwnUpdate = {
      email: email === '' ? '' : readEmail(email),
      phone: phone === '' ? '' : readPhone(phone),
      password,
      nonce,
      changesAppMetadata: request.appMetadata !== undefined,
    };
    const channel = readChannel(phone === '' ? undefined : request.channel, settings);
    if (password !== undefined) await checkPassword(deps, password);
    checkOwnUpdate(update, owner, settings);
    checkMetadata({ userMetadata: request.data, appMetadata: request.appMetadata }, user);
    await checkFree(update, user);
    return {
      email: update.email,
      emailChange: emailChangeOf(update, user),
      phone: update.phone,
      phoneChange: phoneChangeOf(update, user),
      channel,
      chosen:
        password === undefined
          ? undefined
          : await choosePassword(deps, { ...owner, password, currentPassword, nonce }, metadata),
    };
  };
}
