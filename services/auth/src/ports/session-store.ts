import type { AuditEntry } from '../domain/audit-entry.ts';
import type { RefreshToken } from '../domain/refresh-token.ts';
import type { Session } from '../domain/session.ts';
import type { User } from '../domain/user.ts';

/** A session to be started, with its first refresh token. */
export interface NewSession {
  readonly id: string;
  readonly userId: string;
  readonly aal: Session['aal'];
  /** Value of the claim `amr`. */
  readonly method: string;
  readonly userAgent: string;
  readonly ip: string;
  /** Empty for none. */
  readonly tag: string;
  readonly refreshToken: string;
  readonly at: Date;
}

/** The successor of a refresh token. */
export interface Rotation {
  readonly token: string;
  readonly successor: string;
  readonly sessionId: string;
  readonly userAgent: string;
  readonly ip: string;
  readonly at: Date;
}

/** More are of a program, and of no use to somebody who looks for a strange one. */
export const maxListedSessions = 100;

/** Which sessions of a user end: all, one, or all but one. */
export type LogoutScope = 'global' | 'local' | 'others';

/** Sessions and their refresh tokens. */
export interface SessionStore {
  /** Starts a session; the user has signed in at that moment. */
  start(session: NewSession, audit: AuditEntry): Promise<void>;
  /** A user and one of their sessions, in one statement. `session` is absent when it has ended or is another user's. */
  findWithUser(
    userId: string,
    sessionId: string | undefined,
  ): Promise<{ readonly user: User; readonly session: Session | undefined } | undefined>;
  /** A refresh token with all that a refresh needs to know, in one statement. */
  findByRefreshToken(
    token: string,
  ): Promise<{ readonly token: RefreshToken; readonly session: Session; readonly user: User } | undefined>;
  /** Revokes a token and issues its successor. Answers false when somebody else did so first. */
  rotate(rotation: Rotation, audit: AuditEntry): Promise<boolean>;
  /** Notes a refresh that issues no new token. */
  touch(sessionId: string, at: Date): Promise<void>;
  /** Waits for refreshes of a session that are under way, and keeps others out until the end of the transaction. */
  lock(sessionId: string): Promise<void>;
  /** Revokes all refresh tokens of a session that there are: under `lock`, or a refresh may be about to add one. */
  revokeFamily(sessionId: string, at: Date, audit: AuditEntry): Promise<void>;
  /** Sessions of a user, newest first; no more than {@link maxListedSessions}. */
  list(userId: string): Promise<readonly Session[]>;
  /**
   * Has the user signed in again since? Only sessions of the same tag count; a session without one of `tags` counts as of the first.
   */
  hasNewer(sessionId: string, tags: readonly string[]): Promise<boolean>;
  /** Ends sessions of a user. */
  end(
    scope: LogoutScope,
    ids: { readonly userId: string; readonly sessionId: string | undefined },
    audit: AuditEntry,
  ): Promise<void>;
}
