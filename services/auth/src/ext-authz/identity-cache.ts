import { RecentlyUsed } from '@tollgate/kit/collections';
import { isUuid } from '../http/api.ts';
import {
  BatchedReader,
  type IdentityKey,
  type IdentityState,
  type IdentityStateStore,
  type PendingRead,
} from './identity-store.ts';

/** Ids of users (UUIDs in lower case) that may have changed, or all users. */
export type ChangedUsers = readonly string[] | 'all';

export interface IdentityCacheStats {
  readonly hits: number;
  readonly misses: number;
  /** Requests that joined a read in flight. */
  readonly joins: number;
  /** Invalidated users. */
  readonly invalidations: number;
  /** Invalidations of all users. */
  readonly invalidationsOfAll: number;
  /** Cached states, fresh or stale. */
  readonly entries: number;
}

export interface IdentityCacheOptions {
  readonly store: Pick<IdentityStateStore, 'findMany'>;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Maximum age of a result; 0 reads each time. */
  readonly maxStalenessMs: number;
  /** Maximum number of entries. */
  readonly capacity?: number;
}

/** About 10 MB, at a kilobyte each. */
const defaultCapacity = 10_000;
/** A user may be created with an id that was looked up before. */
const negativeTtlMs = 1_000;

/** When a read was sent. A result is as old as its read. */
interface ReadTime {
  readonly atMs: number;
  readonly version: UserVersion;
}

/** The ids of the token. */
interface Subject {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

interface Entry extends Subject {
  readonly readTime: ReadTime;
  readonly state: IdentityState | undefined;
}

interface Reading extends Subject {
  readonly pending: PendingRead<ReadTime>;
}

/**
 * Caches the state of users and sessions. Concurrent lookups of a user share one read; a user is
 * read again after a change, or when the cached state is too old.
 */
export class IdentityCache {
  readonly #nowMs: () => number;
  readonly #maxStalenessMs: number;
  readonly #versions = new UserVersions();
  // Keyed by session, or else by user: joining both would cost a string per request.
  readonly #entries;
  readonly #reading = new Map<string, Reading>();
  readonly #reader: BatchedReader<ReadTime>;
  readonly #counts = { hits: 0, misses: 0, joins: 0, invalidations: 0, invalidationsOfAll: 0 };

  constructor({ store, nowMs, maxStalenessMs, capacity = defaultCapacity }: IdentityCacheOptions) {
    this.#nowMs = nowMs;
    this.#maxStalenessMs = maxStalenessMs;
    this.#entries = new RecentlyUsed<Entry>({ capacity });
    this.#reader = new BatchedReader({
      store,
      onSend: ({ userId }) => ({ atMs: nowMs(), version: this.#versions.get(userId) }),
    });
  }

  /**
   * Returns the state, or a promise if it must be read. Undefined: there is no such user. Rejects
   * if the database is unavailable and the cached state is too old.
   */
  find(
    userId: string,
    sessionId: string | undefined,
  ): IdentityState | undefined | Promise<IdentityState | undefined> {
    const name = sessionId ?? userId;
    const entry = this.#entries.get(name);
    if (entry !== undefined && isAbout(entry, userId, sessionId) && this.#isUsable(entry)) {
      this.#counts.hits += 1;
      return entry.state;
    }
    const reading = this.#reading.get(name);
    if (reading !== undefined && isAbout(reading, userId, sessionId) && this.#isJoinable(reading)) {
      this.#counts.joins += 1;
      return reading.pending.state;
    }
    const key = toKey(userId, sessionId);
    return key && this.#read(name, { userId, sessionId }, key);
  }

  invalidate(changed: ChangedUsers): void {
    if (changed === 'all') this.#counts.invalidationsOfAll += 1;
    else this.#counts.invalidations += changed.length;
    this.#versions.increment(changed);
  }

  stats(): IdentityCacheStats {
    return { ...this.#counts, entries: this.#entries.size };
  }

  async #read(name: string, subject: Subject, key: IdentityKey): Promise<IdentityState | undefined> {
    this.#counts.misses += 1;
    const reading: Reading = { ...subject, pending: this.#reader.read(key) };
    this.#reading.set(name, reading);
    try {
      const state = await reading.pending.state;
      const readTime = reading.pending.sent;
      // A newer read has replaced this one otherwise.
      if (this.#reading.get(name) === reading && readTime !== undefined)
        this.#entries.set(name, { ...subject, readTime, state });
      return state;
    } finally {
      if (this.#reading.get(name) === reading) this.#reading.delete(name);
    }
  }

  #isUsable({ readTime, state }: Entry): boolean {
    const maxAgeMs = this.#maxStalenessMs;
    return this.#isFresh(readTime, state === undefined ? Math.min(negativeTtlMs, maxAgeMs) : maxAgeMs);
  }

  #isJoinable({ pending: { sent } }: Reading): boolean {
    return sent === undefined || this.#isFresh(sent, this.#maxStalenessMs);
  }

  #isFresh({ atMs, version }: ReadTime, maxAgeMs: number): boolean {
    const ageMs = this.#nowMs() - atMs;
    // A negative age means that the clock was set back.
    return ageMs >= 0 && ageMs < maxAgeMs && this.#versions.isCurrent(version);
  }
}

/** Another user's token may name the same session, which is not theirs. */
function isAbout(subject: Subject, userId: string, sessionId: string | undefined): boolean {
  return subject.userId === userId && subject.sessionId === sessionId;
}

/**
 * An invalid UUID would fail the statement of the whole batch. Such a user or session does not
 * exist.
 */
function toKey(userId: string, sessionId: string | undefined): IdentityKey | undefined {
  if (!isUuid(userId)) return undefined;
  const isSession = sessionId !== undefined && isUuid(sessionId);
  return { userId: userId.toLowerCase(), sessionId: isSession ? sessionId.toLowerCase() : undefined };
}

interface UserVersion {
  readonly bucket: number;
  readonly changes: number;
}

/**
 * The last three digits of a UUID, which are random in all common versions. 1 in 4,096 users share
 * a bucket.
 */
const bucketDigits = 3;
const bucketCount = 16 ** bucketDigits;

/** Counts changes of users in a fixed number of buckets, independent of what is cached. */
class UserVersions {
  readonly #changes = new Float64Array(bucketCount);

  /** Must be read before a statement is sent: its result may be older than a concurrent change. */
  get(userId: string): UserVersion {
    const bucket = toBucket(userId);
    return { bucket, changes: this.#changes[bucket] ?? 0 };
  }

  isCurrent({ bucket, changes }: UserVersion): boolean {
    return this.#changes[bucket] === changes;
  }

  increment(changed: ChangedUsers): void {
    const buckets = changed === 'all' ? this.#changes.keys() : changed.map(toBucket);
    for (const bucket of buckets) this.#changes[bucket] = (this.#changes[bucket] ?? 0) + 1;
  }
}

function toBucket(userId: string): number {
  return Number.parseInt(userId.slice(-bucketDigits), 16);
}
