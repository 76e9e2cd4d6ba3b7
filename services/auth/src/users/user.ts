import { parseDuration } from '@tollgate/kit/time';
import type { Factor } from '../mfa/factors.ts';
import type { Contact } from '../sign-up/input.ts';
import type { NewUser } from './store.ts';
import type { JsonObject } from './user-json.ts';

/** One way in which a user is known: email, phone, or an account with an external provider. */
export interface Identity {
  readonly id: string;
  readonly userId: string;
  readonly provider: string;
  /** The user there; for email and phone the id of the user here. */
  readonly providerId: string;
  readonly data: JsonObject;
  /** Empty for none. */
  readonly email: string;
  readonly lastSignInAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** The identity of a user who signs up by email or phone. */
export function contactIdentityData(options: {
  readonly userId: string;
  readonly contact: { readonly email: string } | { readonly phone: string };
  readonly verified: boolean;
  /** What the user said of themselves at sign-up. */
  readonly data: JsonObject;
}): JsonObject {
  const { userId, contact, verified, data } = options;
  return {
    ...data,
    sub: userId,
    ...contact,
    email_verified: verified && 'email' in contact,
    phone_verified: verified && 'phone' in contact,
  };
}

/** A user with identities and factors, as it is kept. What callers see of it is `toUserJson`. */
export interface User {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  /** In lower case; empty for none. */
  readonly email: string;
  /** Digits without `+`; empty for none. */
  readonly phone: string;
  /** Absent for a user without password. */
  /** As it is kept, which may be encrypted. */
  readonly passwordHash: string | undefined;
  readonly emailConfirmedAt: Date | undefined;
  readonly phoneConfirmedAt: Date | undefined;
  readonly confirmedAt: Date | undefined;
  readonly invitedAt: Date | undefined;
  readonly confirmationSentAt: Date | undefined;
  readonly recoverySentAt: Date | undefined;
  /** Address that the email is to be changed to; empty for none. */
  readonly newEmail: string;
  readonly emailChangeSentAt: Date | undefined;
  /** 1 once one of two addresses has confirmed a change of email. */
  readonly emailChangeConfirmStatus: number;
  /** Number that the phone is to be changed to; empty for none. */
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

/** Is the user banned at that time? */
export function isBanned(user: Pick<User, 'bannedUntil'>, nowMs: number): boolean {
  return user.bannedUntil !== undefined && user.bannedUntil.getTime() > nowMs;
}

/** Far enough in the future to be for ever, and near enough for every clock and database. */
const longestMs = 100 * 366 * 24 * 3_600_000;

/**
 * Reads how long a user is banned, a duration in Go's syntax; `none`, and any that is not longer than nothing, lifts a ban. Answers when
 * the ban ends, `null` for no ban, and undefined for what is no duration.
 */
export function parseBan(text: string, nowMs: number): Date | null | undefined {
  if (text === 'none') return null;
  const durationMs = parseDuration(text);
  if (durationMs === undefined) return undefined;
  return durationMs > 0 ? new Date(nowMs + Math.min(durationMs, longestMs)) : null;
}

/** What a new user is made of. */
export interface NewUserOptions {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  readonly contact: Contact;
  readonly passwordHash: string | undefined;
  /** Whether the contact needs no confirmation. */
  readonly confirmed: boolean;
  /** What the user says of themselves. */
  readonly userMetadata: JsonObject;
  readonly at: Date;
}

/** A user known by email or phone, with the identity of that. */
export function newContactUser(options: NewUserOptions): NewUser {
  const { id, aud, role, contact, passwordHash, confirmed, userMetadata, at } = options;
  const value = contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone };
  const data = contactIdentityData({ userId: id, contact: value, verified: confirmed, data: userMetadata });
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
    userMetadata: data,
    isAnonymous: false,
    createdAt: at,
    identities: [{ provider: contact.kind, providerId: id, data }],
  };
}

/** The audit log's view of a user who is about to be. */
export function actorOf(user: NewUser): Pick<User, 'id' | 'email' | 'phone' | 'isSsoUser' | 'userMetadata'> {
  return { ...user, isSsoUser: false };
}
