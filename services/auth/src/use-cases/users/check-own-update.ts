import type { Session } from '../../domain/session.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';

/** What users may change of themselves, contacts as they are kept; absent and, for contacts, empty: no change. */
export interface OwnUpdate {
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

type OwnUpdateSettings = DepsWith<never, 'jwtAdminRoles'>['settings'];

/** The rules that need nothing but the update and its owner, in the order that clients of GoTrue know. */
const checks: readonly Check[] = [checkAdmin, checkAssurance, checkAnonymous, checkSso];

/** Checks what a user wants to change of themselves. @throws AppError of the first rule that is broken. */
export function checkOwnUpdate(update: OwnUpdate, owner: Owner, settings: OwnUpdateSettings): void {
  for (const check of checks) check(update, owner, settings);
}

/** Does the update give the user another email? */
export function changesEmail({ email }: OwnUpdate, user: User): boolean {
  return email !== '' && email !== user.email;
}

/** Does the update give the user another phone? */
export function changesPhone({ phone }: OwnUpdate, user: User): boolean {
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
