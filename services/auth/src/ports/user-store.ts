import type { AuditEntry } from '../domain/audit-entry.ts';
import type { JsonObject } from '../domain/json.ts';
import type { User } from '../domain/user.ts';

/** A user to be created, with the identity they are known by. */
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
  readonly identity:
    | { readonly provider: string; readonly providerId: string; readonly data: JsonObject }
    | undefined;
}

/** Users, each with identities and factors. Deleted ones are found by nobody. */
export interface UserStore {
  findById(id: string): Promise<User | undefined>;
  findByEmail(email: string, aud: string): Promise<User | undefined>;
  findByPhone(phone: string, aud: string): Promise<User | undefined>;
  /** Answers false when somebody has that email, phone or identity: also when two ask at the same moment. */
  insert(user: NewUser, audit: AuditEntry): Promise<boolean>;
  /** Replaces the password hash if it still is `from`: a stale hash must not undo a change of password. */
  rehashPassword(id: string, change: { readonly from: string; readonly to: string }): Promise<void>;
}
