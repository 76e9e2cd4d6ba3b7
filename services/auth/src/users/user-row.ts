import type { Row } from '../db/connection.ts';
import type { Factor } from '../mfa/factors.ts';
import type { Identity, User } from './user.ts';
import type { JsonObject } from './user-json.ts';

/** Columns of a user with identities and factors, for `select … from users u`. */
export const userColumns = `
  u.id, u.aud, u.role, u.email, u.phone, u.encrypted_password, u.email_confirmed_at, u.phone_confirmed_at, u.confirmed_at,
  u.invited_at, u.confirmation_sent_at, u.recovery_sent_at, u.email_change, u.email_change_sent_at,
  u.email_change_confirm_status, u.phone_change, u.phone_change_sent_at, u.reauthentication_sent_at, u.last_sign_in_at,
  u.raw_app_meta_data, u.raw_user_meta_data, u.is_anonymous, u.is_sso_user, u.banned_until, u.deleted_at, u.created_at,
  u.updated_at,
  (select json_agg(i order by i.created_at, i.provider, i.id) from identities i where i.user_id = u.id) as identities,
  (select json_agg(f order by f.created_at, f.id) from (
    select id, status, factor_type, friendly_name, phone, last_challenged_at, created_at, updated_at
    from mfa_factors where user_id = u.id) f) as factors`;

/** Converts a row of {@link userColumns}. */
export function toUser(row: Row): User {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as UserRow;
  return {
    id: r.id,
    aud: r.aud ?? '',
    role: r.role ?? '',
    email: r.email ?? '',
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
    appMetadata: r.raw_app_meta_data ?? {},
    userMetadata: r.raw_user_meta_data ?? {},
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

interface UserRow {
  readonly id: string;
  readonly aud: string | null;
  readonly role: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  readonly encrypted_password: string | null;
  readonly email_confirmed_at: Date | null;
  readonly phone_confirmed_at: Date | null;
  readonly confirmed_at: Date | null;
  readonly invited_at: Date | null;
  readonly confirmation_sent_at: Date | null;
  readonly recovery_sent_at: Date | null;
  readonly email_change: string | null;
  readonly email_change_sent_at: Date | null;
  readonly email_change_confirm_status: number | null;
  readonly phone_change: string | null;
  readonly phone_change_sent_at: Date | null;
  readonly reauthentication_sent_at: Date | null;
  readonly last_sign_in_at: Date | null;
  readonly raw_app_meta_data: JsonObject | null;
  readonly raw_user_meta_data: JsonObject | null;
  readonly is_anonymous: boolean;
  readonly is_sso_user: boolean;
  readonly banned_until: Date | null;
  readonly deleted_at: Date | null;
  readonly created_at: Date | null;
  readonly updated_at: Date | null;
  readonly identities: readonly IdentityRow[] | null;
  readonly factors: readonly FactorRow[] | null;
}

/** Aggregated as JSON, so times are text. */
interface IdentityRow {
  readonly id: string;
  readonly user_id: string;
  readonly provider: string;
  readonly provider_id: string;
  readonly identity_data: JsonObject;
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
    data: row.identity_data,
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

/**
 * Part of a statement that deletes rows (sessions, factors, tokens) of the user whose id is
 * `parameter`. The other parts read the id from it, so they start once the user row is locked:
 * otherwise two such statements could deadlock. Sign-ins and refreshes delete nothing and do not
 * wait.
 */
export function lockOwner(parameter: `$${number}`): string {
  return `select id from users where id = ${parameter} for no key update`;
}
