import type { Factor } from './factor.ts';
import type { Identity } from './identity.ts';
import type { JsonObject } from './json.ts';

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
