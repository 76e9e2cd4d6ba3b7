import type { JsonObject } from '../domain/json.ts';

/** What may have changed since an access token was issued. */
export interface IdentityState {
  readonly role: string;
  readonly appMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly bannedUntil: Date | undefined;
  /** Absent when the session has ended, or none was asked for. */
  readonly session: { readonly createdAt: Date; readonly notAfter: Date | undefined } | undefined;
}

/** Tells the state of users and sessions, no older than the bound that its maker was given. */
export interface IdentityStates {
  /**
   * At once where it is known, so that most checks wait for nothing. Undefined: there is no such user (any more).
   * Rejects when nobody can tell: the database does not answer and what is known is too old.
   */
  find(
    userId: string,
    sessionId: string | undefined,
  ): IdentityState | undefined | Promise<IdentityState | undefined>;
}
