import type { ExpiringKind } from '../domain/retention.ts';

/** Takes away what has expired. */
export interface CleanupStore {
  /** Removes up to `atMost` rows of a kind and answers how many; rows that others are busy with are left for the next time. */
  removeExpired(kind: ExpiringKind, before: Date, atMost: number): Promise<number>;
}
