import { expiringKinds, type RetentionPolicy, removeBefore } from '../../domain/retention.ts';
import type { DepsWith } from '../../services.ts';

/** Removes what has expired and answers how many rows of each kind that were. Ends early when `signal` aborts. */
export type RemoveExpired = (nowMs: number, signal: AbortSignal) => Promise<Readonly<Record<string, number>>>;

/** Rows that are removed, and locked, by one statement. */
const batchSize = 1000;
/** A run ends after so many of a kind: what is left waits for the next one. */
const maxBatches = 50;

/** Creates {@link RemoveExpired}. */
export function createRemoveExpired({
  store,
  settings,
}: DepsWith<'store', keyof RetentionPolicy>): RemoveExpired {
  return async (nowMs, signal) => {
    const removed: Record<string, number> = {};
    for (const kind of expiringKinds) {
      const before = removeBefore(kind, settings, nowMs);
      if (before === undefined) continue;
      for (let batch = 0; batch < maxBatches && !signal.aborted; batch++) {
        const rows = await store.cleanup.removeExpired(kind, before, batchSize);
        if (rows > 0) removed[kind] = (removed[kind] ?? 0) + rows;
        if (rows < batchSize) break;
      }
    }
    return removed;
  };
}
