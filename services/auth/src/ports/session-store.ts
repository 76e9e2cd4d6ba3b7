import type { AuditEntry } from '../domain/audit-entry.ts';
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
  /** Its first refresh token. */
  readonly refreshToken: string;
  /** Signs its refresh tokens, of which that is the first (counter 0); none of them is kept then. */
  readonly hmacKey?: string;
  readonly at: Date;
}

/** What is kept of a session whose refresh tokens are not kept. */
export interface RefreshCounter {
  /** Signs them; in base64url. */
  readonly hmacKey: string;
  /** Of the one that is good now. */
  readonly counter: number;
}

/** A refresh of a session. */
export interface Refresh {
  readonly sessionId: string;
  readonly userAgent: string;
  readonly ip: string;
  readonly at: Date;
}

/** A session with what a refresh needs to know besides its token. */
export interface RefreshableSession {
  readonly session: Session;
  readonly user: User;
  /** Of a session whose refresh tokens are not kept. */
  readonly refreshCounter: RefreshCounter | undefined;
}

/** The successor of a refresh token. */
export interface Rotation extends Refresh {
  readonly token: string;
  readonly successor: string;
}

/** More are of a program, and of no use to somebody who looks for a strange one. */
export const maxListedSessions = 100;

/** Which sessions of a user end: all, one, or all but one. */
export type LogoutScope = 'global' | 'local' | 'others';

/** A refresh token that is kept. */
export interface StoredRefreshToken {
  readonly revoked: boolean;
  /** When it was revoked, if it is; otherwise when it was issued. */
  readonly updatedAt: Date;
  /** Its successor, if that is kept and good now. */
  readonly activeChild: string | undefined;
  /** Has it a successor that is kept, good or not? */
  readonly hasChild: boolean;
}

/** Sessions and their refresh tokens. */
export interface SessionStore {
  /** Starts a session; the user has signed in at that moment. */
  start(session: NewSession, audit: AuditEntry): Promise<void>;
  /** A user and one of their sessions, in one statement. `session` is absent when it has ended or is another user's. */
  findWithUser(
    userId: string,
    sessionId: string | undefined,
  ): Promise<{ readonly user: User; readonly session: Session | undefined } | undefined>;
  /** A refresh token that is kept, with all that a refresh needs to know, in one statement. */
  findByRefreshToken(
    token: string,
  ): Promise<(RefreshableSession & { readonly token: StoredRefreshToken }) | undefined>;
  /** A session whose refresh tokens are not kept, with all that a refresh needs to know, in one statement. */
  findForRefresh(sessionId: string): Promise<RefreshableSession | undefined>;
  /** Revokes a token and issues its successor. Answers false when somebody else did so first. */
  rotate(rotation: Rotation, audit: AuditEntry): Promise<boolean>;
  /** Raises the counter by one. Answers false when it is not `from` any more. */
  advance(refresh: Refresh & { readonly from: number }, audit: AuditEntry): Promise<boolean>;
  /** Revokes a token that is kept; those that follow are not, and begin with the counter 0. Answers false when somebody else was first. */
  upgrade(
    refresh: Refresh & { readonly token: string; readonly hmacKey: string },
    audit: AuditEntry,
  ): Promise<boolean>;
  /** Notes a refresh that issues no new token. */
  touch(sessionId: string, at: Date): Promise<void>;
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
