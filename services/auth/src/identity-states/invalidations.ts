import type { ChangedIdentities } from '../ports/identity-state-store.ts';

/** How far the changes of a user had got when they were asked for. */
export interface Mark {
  readonly bucket: number;
  readonly changes: number;
}

/** Tells whether a user may have changed since. */
export interface Invalidations {
  /** To be taken before the question is sent: an answer may be older than what is heard while it is under way. */
  markOf(userId: string): Mark;
  /** Has nothing been heard of the user since? */
  isCurrent(mark: Mark): boolean;
  invalidate(changed: ChangedIdentities): void;
}

/** The last three digits of a UUID, which are random in all versions that matter. A user shares theirs with one in 4,096. */
const bucketDigits = 3;
const buckets = 16 ** bucketDigits;

/** Creates {@link Invalidations}: counters of a fixed number, which need not know what is kept where. */
export function createInvalidations(): Invalidations {
  const changes = new Float64Array(buckets);

  return {
    markOf(userId) {
      const bucket = bucketOf(userId);
      return { bucket, changes: changes[bucket] ?? 0 };
    },
    isCurrent: (mark) => changes[mark.bucket] === mark.changes,
    invalidate(changed) {
      const touched = changed === 'all' ? changes.keys() : changed.map(bucketOf);
      for (const bucket of touched) changes[bucket] = (changes[bucket] ?? 0) + 1;
    },
  };
}

function bucketOf(userId: string): number {
  return Number.parseInt(userId.slice(-bucketDigits), 16);
}
