import type { VersionedRecord } from './token-store.ts';

/** How far two machines' clocks may be apart before one takes over a lease that the other still counts on. */
const clockToleranceSeconds = 60;

/** Judges, look after look, whether somebody else's lease still stands. */
export interface LeaseWatch {
  /** Whether to wait for the holder of the lease in this record. `waitedSeconds` is how long one has waited so far. */
  mustWait(entry: VersionedRecord | undefined, now: number, waitedSeconds: number): boolean;
}

/**
 * A lease is over when it has stood unchanged for as long as it lasts, by our own clock; so no two clocks need to agree. A
 * process that starts long after the holder died need not wait that long: the wall clock says so too, with a tolerance.
 */
export function createLeaseWatch(holder: string): LeaseWatch {
  let seen: { version: string; sinceSeconds: number } | undefined;
  return {
    mustWait(entry, now, waitedSeconds) {
      const lease = entry?.record.lease;
      if (entry === undefined || lease === undefined || lease.holder === holder) return false;
      if (seen?.version !== entry.version) seen = { version: entry.version, sinceSeconds: waitedSeconds };
      const watchedSeconds = waitedSeconds - seen.sinceSeconds;
      return watchedSeconds < lease.seconds && now <= lease.expiresAt + clockToleranceSeconds;
    },
  };
}
