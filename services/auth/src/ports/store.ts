import type { AuditStore } from './audit-store.ts';
import type { CleanupStore } from './cleanup-store.ts';
import type { FactorStore } from './factor-store.ts';
import type { FlowStore } from './flow-store.ts';
import type { GuessStore } from './guess-store.ts';
import type { IdentityStateStore } from './identity-state-store.ts';
import type { OneTimeTokenStore } from './one-time-token-store.ts';
import type { QuotaCounter } from './quota-counter.ts';
import type { SealedColumnStore } from './sealed-column-store.ts';
import type { SessionStore } from './session-store.ts';
import type { UserStore } from './user-store.ts';

/**
 * All that is kept. Each function is one statement: atomic by itself, and its audit entry with it.
 * Several that must hold together run in `transaction`.
 */
export interface Store {
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly factors: FactorStore;
  readonly audit: AuditStore;
  readonly oneTimeTokens: OneTimeTokenStore;
  readonly flows: FlowStore;
  readonly quotas: QuotaCounter;
  readonly guesses: GuessStore;
  readonly cleanup: CleanupStore;
  readonly sealedColumns: SealedColumnStore;
  readonly identityStates: IdentityStateStore;
  /** Runs `work` in a transaction, which is rolled back when it throws. `work` must use the store it is given. */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>;
  /** Rejects when the database does not answer, or lacks a column that requests use. */
  ping(): Promise<void>;
}
