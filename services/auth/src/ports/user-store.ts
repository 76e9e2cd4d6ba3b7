import type { AuditEntry } from '../domain/audit-entry.ts';
import type { JsonObject } from '../domain/json.ts';
import type { User } from '../domain/user.ts';
import type { Page, PageRequest } from './page.ts';

/** A way in which a user is known: `providerId` is who they are there, for email and phone their own id. */
export interface NewIdentity {
  readonly provider: string;
  readonly providerId: string;
  readonly data: JsonObject;
}

/** A user to be created, with the identities they are known by. */
export interface NewUser {
  readonly id: string;
  readonly aud: string;
  readonly role: string;
  /** Empty for none. */
  readonly email: string;
  /** Empty for none. */
  readonly phone: string;
  readonly passwordHash: string | undefined;
  readonly emailConfirmedAt: Date | undefined;
  readonly phoneConfirmedAt: Date | undefined;
  readonly appMetadata: JsonObject;
  readonly userMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly createdAt: Date;
  readonly invitedAt?: Date | undefined;
  readonly bannedUntil?: Date | undefined;
  readonly identities: readonly NewIdentity[];
}

/** What is to change of a user; `null` takes a value away, what is absent stays. */
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
  /** Merged into what is there, at the top level only; a `null` in it takes that key away. */
  readonly appMetadata?: JsonObject;
  /** Merged as `appMetadata` is. */
  readonly userMetadata?: JsonObject;
}

/** The user as changed, or why there is none. */
export type UserUpdate =
  | { readonly ok: true; readonly user: User }
  | { readonly ok: false; readonly reason: 'not_found' | 'email_exists' | 'phone_exists' };

/** Which users are listed, and in which order of their creation. */
export interface UserQuery extends PageRequest {
  readonly aud: string;
  /** Part of email, phone or `full_name`; empty for all. */
  readonly filter: string;
  readonly order: 'asc' | 'desc';
}

/** Users, each with identities and factors. Deleted ones are found by nobody. */
export interface UserStore {
  findById(id: string): Promise<User | undefined>;
  findByEmail(email: string, aud: string): Promise<User | undefined>;
  findByPhone(phone: string, aud: string): Promise<User | undefined>;
  /** A part of the users. */
  list(query: UserQuery): Promise<Page<User>>;
  /** What of a user-to-be somebody has already, of whatever audience, if anything. */
  findTaken(of: Pick<NewUser, 'id' | 'email' | 'phone'>): Promise<'email' | 'phone' | 'id' | undefined>;
  /** Answers false when somebody has that email, phone or identity: also when two ask at the same moment. */
  insert(user: NewUser, audit: AuditEntry): Promise<boolean>;
  /**
   * Changes a user, in one statement. Of `identities` those that the user has get the new data merged in, the others are added;
   * what `appMetadata` says of providers is for the caller to change.
   */
  update(
    id: string,
    changes: UserChanges,
    of: { readonly at: Date; readonly audit: AuditEntry; readonly identities?: readonly NewIdentity[] },
  ): Promise<UserUpdate>;
  /** Deletes a user and whatever is theirs. Answers false when there is none. */
  delete(id: string, audit: AuditEntry): Promise<boolean>;
  /**
   * Leaves of a user only what references need: contacts and identities become hashes, and metadata, sessions, factors and tokens go.
   * Answers false when there is none.
   */
  softDelete(id: string, of: { readonly at: Date; readonly audit: AuditEntry }): Promise<boolean>;
  /** Removes a user who could not be told to confirm, unless somebody has been told, or has confirmed, since. */
  discardUnconfirmed(id: string): Promise<void>;
  /** Counts one of the two addresses that confirm a change of email; answers how many have by now. */
  countEmailConfirmation(id: string, at: Date): Promise<number>;
  /** Replaces the password hash if it still is `from`, as it was found: a stale hash must not undo a change of password. */
  rehashPassword(id: string, change: { readonly from: string; readonly to: string }): Promise<void>;
}
