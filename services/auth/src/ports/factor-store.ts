import type { AuditEntry } from '../domain/audit-entry.ts';
import type { RefreshCounter } from './session-store.ts';

/** A TOTP factor that its user has still to prove. */
export interface NewTotpFactor {
  readonly id: string;
  readonly userId: string;
  /** Empty for none. */
  readonly friendlyName: string;
  /** In base32. */
  readonly secret: string;
  readonly at: Date;
}

/** The start of a verification. */
export interface NewChallenge {
  readonly id: string;
  readonly factorId: string;
  /** Address of the client, which is to send the code too. */
  readonly ip: string;
  readonly at: Date;
}

/** A challenge as it is kept, with what verifies it. */
export interface Challenge {
  readonly createdAt: Date;
  /** Whether it has been answered: it is good for one answer only. */
  readonly isSpent: boolean;
  /** Whether it was made for the address that answers it. */
  readonly isSameAddress: boolean;
  /** In base32. */
  readonly secret: string;
  /** Number of the period whose code the factor has accepted last; 0 for none. */
  readonly lastPeriod: number;
}

/** A challenge that was answered correctly, and what the session becomes by that. */
export interface VerifiedChallenge {
  readonly challengeId: string;
  readonly factorId: string;
  readonly userId: string;
  readonly sessionId: string;
  /** Value of the claim `amr`. */
  readonly method: string;
  /** Number of the period that the code is of. */
  readonly period: number;
  /** Takes the place of the refresh tokens that the session has, where they are kept. */
  readonly refreshToken: string;
  readonly at: Date;
}

/** Which factor, and whose: a factor of somebody else is none. */
export interface FactorKey {
  readonly id: string;
  readonly userId: string;
}

/** What an administrator may change of a factor; what is absent stays. */
export interface FactorChanges {
  readonly friendlyName?: string;
  readonly phone?: string;
}

/** Second factors and their challenges. A user is found with the factors, but not with their secrets. */
export interface FactorStore {
  /** Answers false when a factor of the user has that name: also when two ask at the same moment. */
  enroll(factor: NewTotpFactor, audit: AuditEntry): Promise<boolean>;
  /** Removes what the user began before that time and never proved. */
  removeUnverified(userId: string, before: Date): Promise<void>;
  challenge(challenge: NewChallenge, audit: AuditEntry): Promise<void>;
  findChallenge(of: {
    readonly challengeId: string;
    readonly factorId: string;
    readonly ip: string;
  }): Promise<Challenge | undefined>;
  /**
   * Spends a challenge. Its factor is verified then, the session at `aal2` with the method as a proof and with a new refresh token; the
   * user's sessions below `aal2` end, and their unverified factors of that type go. Answers false when somebody else spent it or the code
   * first, or the session has ended; otherwise the counter of the session, if its refresh tokens are not kept: it has gone up by two, so
   * that no token of before counts as the previous one.
   */
  verify(
    verified: VerifiedChallenge,
    audit: AuditEntry,
  ): Promise<{ readonly refreshCounter: RefreshCounter | undefined } | false>;
  /** Removes a factor; sessions that owe it their `aal2` fall back to `aal1`. Answers false when there is none. */
  remove(factor: FactorKey, of: { readonly at: Date; readonly audit: AuditEntry }): Promise<boolean>;
  update(
    factor: FactorKey,
    changes: FactorChanges,
    of: { readonly at: Date; readonly audit: AuditEntry },
  ): Promise<'updated' | 'not_found' | 'name_conflict'>;
}
