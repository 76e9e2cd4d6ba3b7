import { parseDuration } from '@tollgate/kit/time';
import type { Factor } from '../mfa/factors.ts';
import type { Contact } from './contact.ts';
import type { JsonObject } from './user-json.ts';

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
  /** In lower case; empty for none. */
  readonly email: string;
  /** Digits without `+`; empty for none. */
  readonly phone: string;
  /** As stored, possibly encrypted; undefined for a user without password. */
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

/** An identity to be stored. */
export type NewIdentity = Pick<Identity, 'provider' | 'providerId' | 'data'>;

/** A user to be created. */
export interface NewUser
  extends Pick<
    User,
    | 'id'
    | 'aud'
    | 'role'
    | 'email'
    | 'phone'
    | 'passwordHash'
    | 'emailConfirmedAt'
    | 'phoneConfirmedAt'
    | 'appMetadata'
    | 'userMetadata'
    | 'isAnonymous'
    | 'createdAt'
  > {
  readonly invitedAt?: Date | undefined;
  readonly bannedUntil?: Date | undefined;
  readonly identities: readonly NewIdentity[];
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

/** Creates an email or phone identity. */
export function newContactIdentity(
  userId: string,
  contact: Contact,
  options: {
    readonly verified: boolean;
    /** User metadata of the sign-up. */
    readonly data?: JsonObject;
  },
): NewIdentity {
  const { verified, data = {} } = options;
  return {
    provider: contact.kind,
    providerId: userId,
    data: {
      ...data,
      sub: userId,
      ...(contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone }),
      email_verified: verified && contact.kind === 'email',
      phone_verified: verified && contact.kind === 'phone',
    },
  };
}

export function isBanned(user: Pick<User, 'bannedUntil'>, nowMs: number): boolean {
  return user.bannedUntil !== undefined && user.bannedUntil.getTime() > nowMs;
}

/** A date this far ahead is still valid in JavaScript and PostgreSQL. */
const maxBanMs = 100 * 366 * 24 * 3_600_000;

/**
 * Converts a ban duration in Go's syntax to the end of the ban. `none` and durations that are not
 * positive lift the ban (`null`). Undefined for an invalid duration.
 */
export function parseBan(text: string, nowMs: number): Date | null | undefined {
  if (text === 'none') return null;
  const durationMs = parseDuration(text);
  if (durationMs === undefined) return undefined;
  return durationMs > 0 ? new Date(nowMs + Math.min(durationMs, maxBanMs)) : null;
}

/** Creates a user with a single email or phone identity. */
export function newContactUser(options: {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  readonly contact: Contact;
  readonly passwordHash: string | undefined;
  readonly confirmed: boolean;
  readonly userMetadata: JsonObject;
  readonly at: Date;
}): NewUser {
  const { id, aud, role, contact, passwordHash, confirmed, userMetadata, at } = options;
  const identity = newContactIdentity(id, contact, { verified: confirmed, data: userMetadata });
  return {
    id,
    aud,
    role,
    email: contact.kind === 'email' ? contact.email : '',
    phone: contact.kind === 'phone' ? contact.phone : '',
    passwordHash,
    emailConfirmedAt: confirmed && contact.kind === 'email' ? at : undefined,
    phoneConfirmedAt: confirmed && contact.kind === 'phone' ? at : undefined,
    appMetadata: { provider: contact.kind, providers: [contact.kind] },
    userMetadata: identity.data,
    isAnonymous: false,
    createdAt: at,
    identities: [identity],
  };
}
