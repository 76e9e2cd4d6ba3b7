import type { Json, JsonObject } from '@tollgate/kit/json';
import { toObject } from '../db/connection.ts';
import { noInstance } from '../db/fragments.ts';
import { boolean, integer, json, jsonOf, type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { columnNames, type Fragment, fragment } from '../db/statement.ts';
import { errors } from '../errors.ts';
import type { Factor } from './factor.ts';

/** A way to sign in: email, phone, or an account at an external provider. */
export interface Identity {
  readonly id: string;
  readonly userId: string;
  readonly provider: string;
  /** Id of the user at the provider; the user's own id for email and phone. */
  readonly providerId: string;
  readonly data: JsonObject;
  /** Empty for none. */
  readonly email: string;
  readonly lastSignInAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A user with identities and factors, as stored. `toUserJson` is the public view. */
export interface User {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  /** A lower-case address; empty for none. */
  readonly email: string;
  /** Digits without `+`; empty for none. */
  readonly phone: string;
  /** The stored form, possibly encrypted; undefined for a user without password. */
  readonly passwordHash: string | undefined;
  readonly emailConfirmedAt: Date | undefined;
  readonly phoneConfirmedAt: Date | undefined;
  readonly confirmedAt: Date | undefined;
  readonly invitedAt: Date | undefined;
  readonly confirmationSentAt: Date | undefined;
  readonly recoverySentAt: Date | undefined;
  /** New address of a pending email change; empty for none. */
  readonly newEmail: string;
  readonly emailChangeSentAt: Date | undefined;
  /** 1 once one of the two addresses has confirmed the email change. */
  readonly emailChangeConfirmStatus: number;
  /** New number of a pending phone change; empty for none. */
  readonly newPhone: string;
  readonly phoneChangeSentAt: Date | undefined;
  readonly reauthenticationSentAt: Date | undefined;
  readonly lastSignInAt: Date | undefined;
  readonly appMetadata: JsonObject;
  readonly userMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly isSsoUser: boolean;
  readonly bannedUntil: Date | undefined;
  readonly deletedAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly identities: readonly Identity[];
  readonly factors: readonly Factor[];
}

/** Changes to a user: `null` clears a value, absent keys stay as they are. */
export interface UserChanges {
  readonly aud?: string;
  readonly role?: string;
  readonly email?: string | null;
  readonly phone?: string | null;
  readonly passwordHash?: string | null;
  readonly emailConfirmedAt?: Date | null;
  readonly phoneConfirmedAt?: Date | null;
  readonly invitedAt?: Date | null;
  readonly newEmail?: string | null;
  readonly emailChangeConfirmStatus?: number;
  readonly newPhone?: string | null;
  readonly bannedUntil?: Date | null;
  readonly isAnonymous?: boolean;
  /** Merged at the top level; a `null` removes its key. */
  readonly appMetadata?: JsonObject;
  /** Merged like `appMetadata`. */
  readonly userMetadata?: JsonObject;
}

export function isBanned(user: Pick<User, 'bannedUntil'>, nowMs: number): boolean {
  return user.bannedUntil !== undefined && user.bannedUntil.getTime() > nowMs;
}

/** A normalized email address or phone number. */
export type Contact =
  | { readonly kind: 'email'; readonly email: string }
  | { readonly kind: 'phone'; readonly phone: string };

/** HTML's form of an email address, with bounded labels to avoid quadratic matching. */
const emailForm =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const maxEmailChars = 255;
/** E.164 without the plus. */
const phoneForm = /^[1-9][0-9]{1,14}$/;

/** The email address in lower case; undefined if the text is not one. */
export function normalizeEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  return email.length <= maxEmailChars && emailForm.test(email) ? email : undefined;
}

/** The digits of a phone number; undefined if the text is not one. */
export function normalizePhone(text: string): string | undefined {
  const phone = text.replaceAll(' ', '').replace(/^\+/, '');
  return phoneForm.test(phone) ? phone : undefined;
}

/** @throws AppError `validation_failed` */
export function readEmail(text: string): string {
  const email = normalizeEmail(text);
  if (email === undefined)
    throw errors.validation_failed({ message: 'Unable to validate email address: invalid format' });
  return email;
}

/** @throws AppError `validation_failed` */
export function readPhone(text: string): string {
  const phone = normalizePhone(text);
  if (phone === undefined)
    throw errors.validation_failed({ message: 'Invalid phone number format (E.164 required)' });
  return phone;
}

/**
 * Reads the contact of a request, which must have an email or a phone, not both.
 *
 * @throws AppError `validation_failed`, with the message of `both` or `neither`
 */
export function readContact(
  { email = '', phone = '' }: { readonly email?: string | undefined; readonly phone?: string | undefined },
  messages: { readonly both: string; readonly neither: string },
): Contact {
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: messages.both });
  if (email !== '') return { kind: 'email', email: readEmail(email) };
  if (phone !== '') return { kind: 'phone', phone: readPhone(phone) };
  throw errors.validation_failed({ message: messages.neither });
}

export function getAddress(contact: Contact): string {
  return contact.kind === 'email' ? contact.email : contact.phone;
}

export function hasConfirmed(user: User, { kind }: Contact): boolean {
  return (kind === 'email' ? user.emailConfirmedAt : user.phoneConfirmedAt) !== undefined;
}

const storedRow = {
  id: uuid,
  aud: text.orNull,
  role: text.orNull,
  email: text.orNull,
  phone: text.orNull,
  encrypted_password: text.orNull,
  email_confirmed_at: timestamptz.orNull,
  phone_confirmed_at: timestamptz.orNull,
  confirmed_at: timestamptz.orNull,
  invited_at: timestamptz.orNull,
  confirmation_sent_at: timestamptz.orNull,
  recovery_sent_at: timestamptz.orNull,
  email_change: text.orNull,
  email_change_sent_at: timestamptz.orNull,
  email_change_confirm_status: integer.orNull,
  phone_change: text.orNull,
  phone_change_sent_at: timestamptz.orNull,
  reauthentication_sent_at: timestamptz.orNull,
  last_sign_in_at: timestamptz.orNull,
  raw_app_meta_data: json.orNull,
  raw_user_meta_data: json.orNull,
  is_anonymous: boolean,
  is_sso_user: boolean,
  banned_until: timestamptz.orNull,
  deleted_at: timestamptz.orNull,
  created_at: timestamptz.orNull,
  updated_at: timestamptz.orNull,
};

export const userRow = {
  ...storedRow,
  identities: jsonOf<readonly IdentityRow[]>().orNull,
  factors: jsonOf<readonly FactorRow[]>().orNull,
};

/** Columns of a user with identities and factors, for `select … from users u`: {@link userRow}. */
export const userColumns = fragment`${columnNames(storedRow, 'u')},
  (select json_agg(i order by i.created_at, i.provider, i.id) from identities i where i.user_id = u.id) as identities,
  (select json_agg(f order by f.created_at, f.id) from (
    select id, status, factor_type, friendly_name, phone, last_challenged_at, created_at, updated_at
    from mfa_factors where user_id = u.id) f) as factors`;

/**
 * SQL for the ids of users with one of the emails, which are in lower case. As in GoTrue, rows that
 * an import has written may have upper case; each part has an index.
 */
export function idsByEmail<V>(emails: Fragment<V>): Fragment<V> {
  return fragment`select id from users where email = any(${emails}) and is_sso_user = false
    union select id from users where instance_id = ${noInstance} and lower(email) = any(${emails})`;
}

/** Converts a row of {@link userColumns}. */
export function toUser(r: RowOf<typeof userRow>): User {
  return {
    id: r.id,
    aud: r.aud ?? '',
    role: r.role ?? '',
    // Imports by SQL leave upper case.
    email: (r.email ?? '').toLowerCase(),
    phone: r.phone ?? '',
    passwordHash: r.encrypted_password || undefined,
    emailConfirmedAt: r.email_confirmed_at ?? undefined,
    phoneConfirmedAt: r.phone_confirmed_at ?? undefined,
    confirmedAt: r.confirmed_at ?? undefined,
    invitedAt: r.invited_at ?? undefined,
    confirmationSentAt: r.confirmation_sent_at ?? undefined,
    recoverySentAt: r.recovery_sent_at ?? undefined,
    newEmail: r.email_change ?? '',
    emailChangeSentAt: r.email_change_sent_at ?? undefined,
    emailChangeConfirmStatus: r.email_change_confirm_status ?? 0,
    newPhone: r.phone_change ?? '',
    phoneChangeSentAt: r.phone_change_sent_at ?? undefined,
    reauthenticationSentAt: r.reauthentication_sent_at ?? undefined,
    lastSignInAt: r.last_sign_in_at ?? undefined,
    appMetadata: toObject(r.raw_app_meta_data),
    userMetadata: toObject(r.raw_user_meta_data),
    isAnonymous: r.is_anonymous,
    isSsoUser: r.is_sso_user,
    bannedUntil: r.banned_until ?? undefined,
    deletedAt: r.deleted_at ?? undefined,
    createdAt: r.created_at ?? new Date(0),
    updatedAt: r.updated_at ?? new Date(0),
    identities: r.identities?.map(toIdentity) ?? [],
    factors: r.factors?.map(toFactor) ?? [],
  };
}

/** Aggregated as JSON, so times are text. */
interface IdentityRow {
  readonly id: string;
  readonly user_id: string;
  readonly provider: string;
  readonly provider_id: string;
  readonly identity_data: Json;
  readonly email: string | null;
  readonly last_sign_in_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

interface FactorRow {
  readonly id: string;
  readonly status: Factor['status'];
  readonly factor_type: Factor['type'];
  readonly friendly_name: string | null;
  readonly phone: string | null;
  readonly last_challenged_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

function toIdentity(row: IdentityRow): Identity {
  return {
    id: row.id,
    userId: row.user_id,
    provider: row.provider,
    providerId: row.provider_id,
    data: toObject(row.identity_data),
    email: row.email ?? '',
    lastSignInAt: toDate(row.last_sign_in_at),
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  };
}

function toFactor(row: FactorRow): Factor {
  return {
    id: row.id,
    status: row.status,
    type: row.factor_type,
    friendlyName: row.friendly_name ?? '',
    phone: row.phone ?? '',
    lastChallengedAt: toDate(row.last_challenged_at),
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  };
}

function toDate(text: string | null): Date | undefined {
  return text === null ? undefined : new Date(text);
}

/** Absent values are omitted, except email and phone, which are empty. */
export function toUserJson(user: User): JsonObject {
  return {
    id: user.id,
    aud: user.aud,
    role: user.role,
    email: user.email,
    ...time('email_confirmed_at', user.emailConfirmedAt),
    ...time('invited_at', user.invitedAt),
    phone: user.phone,
    ...time('phone_confirmed_at', user.phoneConfirmedAt),
    ...time('confirmation_sent_at', user.confirmationSentAt),
    ...time('confirmed_at', user.confirmedAt),
    ...time('recovery_sent_at', user.recoverySentAt),
    ...(user.newEmail !== '' && { new_email: user.newEmail }),
    ...time('email_change_sent_at', user.emailChangeSentAt),
    ...(user.newPhone !== '' && { new_phone: user.newPhone }),
    ...time('phone_change_sent_at', user.phoneChangeSentAt),
    ...time('reauthentication_sent_at', user.reauthenticationSentAt),
    ...time('last_sign_in_at', user.lastSignInAt),
    app_metadata: user.appMetadata,
    user_metadata: user.userMetadata,
    ...(user.factors.length > 0 && { factors: user.factors.map(toFactorJson) }),
    identities: user.identities.map(toIdentityJson),
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
    ...time('banned_until', user.bannedUntil),
    ...time('deleted_at', user.deletedAt),
    is_anonymous: user.isAnonymous,
  };
}

export function toFactorJson(factor: Factor): JsonObject {
  return {
    id: factor.id,
    created_at: factor.createdAt.toISOString(),
    updated_at: factor.updatedAt.toISOString(),
    status: factor.status,
    ...(factor.friendlyName !== '' && { friendly_name: factor.friendlyName }),
    factor_type: factor.type,
    ...(factor.phone !== '' && { phone: factor.phone }),
    ...time('last_challenged_at', factor.lastChallengedAt),
  };
}

function toIdentityJson(identity: Identity): JsonObject {
  return {
    identity_id: identity.id,
    id: identity.providerId,
    user_id: identity.userId,
    identity_data: identity.data,
    provider: identity.provider,
    ...time('last_sign_in_at', identity.lastSignInAt),
    created_at: identity.createdAt.toISOString(),
    updated_at: identity.updatedAt.toISOString(),
    ...(identity.email !== '' && { email: identity.email }),
  };
}

function time(key: string, value: Date | undefined): Readonly<Record<string, Json>> {
  return value === undefined ? {} : { [key]: value.toISOString() };
}
