import { RecentlyUsed } from '@tollgate/kit/collections';
import type { JsonObject } from '@tollgate/kit/json';
import { inTime } from '@tollgate/kit/time';
import { Batch } from '../db/connection.ts';
import { errors } from '../errors.ts';
import type { LimitOverride } from '../limits/limit-override.ts';
import { digestKey } from './key-format.ts';
import type { Networks } from './networks.ts';
import type { ApiKeyStateStore } from './state-store.ts';

/** The state of a key and its owner, which decides on requests with the key. */
export interface ApiKeyState {
  readonly id: string;
  readonly userId: string | undefined;
  readonly orgId: string | undefined;
  readonly scopes: readonly string[];
  readonly adminScopes: readonly string[];
  readonly role: string | undefined;
  readonly plan: string | undefined;
  readonly limit: LimitOverride | undefined;
  /** Unix time in milliseconds. */
  readonly expiresAtMs: number | undefined;
  /** Undefined: any address. */
  readonly networks: Networks | undefined;
  readonly metadata: JsonObject;
  readonly disabled: boolean;
  /** The user who owns the key. Undefined for other owners, and for a deleted user. */
  readonly user: KeyUser | undefined;
  /** The organization that owns the key. */
  readonly organization: KeyOrganization | undefined;
}

/** The plan and the limit that an organization shares with its keys. */
interface KeyOrganization {
  readonly plan: string | undefined;
  readonly limit: LimitOverride | undefined;
}

/** State of the user, with the members of the identity cache. */
interface KeyUser {
  readonly role: string;
  readonly appMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly bannedUntil: Date | undefined;
  /** A user's key does not act for an organization. */
  readonly organization: undefined;
}

export interface ApiKeyCacheOptions {
  readonly store: Pick<ApiKeyStateStore, 'findMany'>;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Maximum age of a result; 0 reads each time. */
  readonly maxStalenessMs: number;
  /** Maximum number of entries, each of known and of unknown keys. */
  readonly capacity?: number;
  /** Limit of a lookup. */
  readonly timeoutMs?: number;
}

export interface ApiKeyCacheStats {
  readonly hits: number;
  /** Answers by the negative cache. */
  readonly unknownHits: number;
  readonly misses: number;
  /** Requests that joined a read in flight. */
  readonly joins: number;
  /** Cached keys, fresh or stale. */
  readonly entries: number;
  /** Entries of the negative cache. */
  readonly unknownEntries: number;
}

/** About 10 MB, at a kilobyte each. */
const defaultCapacity = 10_000;
/** Connections that checks may use of the pool, which they share with the API. */
const maxConcurrentReads = 4;
/** Callers have timeouts of their own; a late result is cached for the next request. */
const defaultTimeoutMs = 3_000;
/** An unknown key may be imported later. */
const negativeTtlMs = 1_000;

/** When a read was sent. A result is as old as its read. */
interface ReadTime {
  readonly atMs: number;
  readonly change: number;
}

interface Entry {
  readonly state: ApiKeyState;
  readonly readTime: ReadTime;
  /** Buckets of the key and of its owner. */
  readonly keyBucket: number;
  readonly ownerBucket: number;
}

/** A queued or sent read. */
interface Reading {
  readonly digest: string;
  /** Undefined until the statement is sent. */
  readTime: ReadTime | undefined;
  state: Promise<ApiKeyState | undefined> | undefined;
}

/**
 * Caches the state of API keys and of their owners, as the identity cache does for users. Entries
 * are found by the key itself, which saves the digest. Unknown keys have a cache of their own: an
 * attacker's keys must not evict those in use.
 */
export class ApiKeyCache {
  readonly #nowMs: () => number;
  readonly #maxStalenessMs: number;
  readonly #changes = new ChangeTimes();
  readonly #known;
  readonly #unknown;
  readonly #reading = new Map<string, Reading>();
  readonly #reads: Batch<Reading, ApiKeyState | undefined>;
  readonly #counts = { hits: 0, unknownHits: 0, misses: 0, joins: 0 };

  constructor({
    store,
    nowMs,
    maxStalenessMs,
    capacity = defaultCapacity,
    timeoutMs = defaultTimeoutMs,
  }: ApiKeyCacheOptions) {
    this.#nowMs = nowMs;
    this.#maxStalenessMs = maxStalenessMs;
    this.#known = new RecentlyUsed<Entry>({ capacity });
    this.#unknown = new RecentlyUsed<number>({ capacity });
    const late = () => errors.authorization_unavailable({ detail: 'the database did not respond in time' });
    this.#reads = new Batch({
      maxConcurrent: maxConcurrentReads,
      // Includes the wait for one of these reads, each of which may take as long.
      deadline: { timeoutMs, late },
      run: (readings) => {
        for (const reading of readings) reading.readTime = { atMs: nowMs(), change: this.#changes.latest };
        return inTime(store.findMany(readings.map(({ digest }) => digest)), timeoutMs, late);
      },
    });
  }

  /**
   * The state, if the cache has it. Undefined: {@link find} must be called. `unknown`: there is no
   * such key.
   */
  recall(key: string): ApiKeyState | 'unknown' | undefined {
    const entry = this.#known.get(key);
    if (entry !== undefined && this.#isUsable(entry)) {
      this.#counts.hits += 1;
      return entry.state;
    }
    const readAtMs = this.#unknown.get(key);
    if (readAtMs === undefined || !this.#isYoung(readAtMs, Math.min(negativeTtlMs, this.#maxStalenessMs)))
      return undefined;
    this.#counts.unknownHits += 1;
    return 'unknown';
  }

  /** Whether the last read found the key, however old its result is. */
  has(key: string): boolean {
    return this.#known.get(key) !== undefined;
  }

  /**
   * Reads the state. Undefined: there is no such key. Rejects if the database is unavailable.
   */
  find(key: string): Promise<ApiKeyState | undefined> {
    const reading = this.#reading.get(key);
    if (reading?.state !== undefined && this.#isJoinable(reading)) {
      this.#counts.joins += 1;
      return reading.state;
    }
    return this.#read(key);
  }

  /** Ids of keys and owners (UUIDs in lower case) that may have changed. */
  invalidate(changed: readonly string[] | 'all'): void {
    this.#changes.record(changed);
  }

  stats(): ApiKeyCacheStats {
    return { ...this.#counts, entries: this.#known.size, unknownEntries: this.#unknown.size };
  }

  async #read(key: string): Promise<ApiKeyState | undefined> {
    this.#counts.misses += 1;
    const reading: Reading = { digest: digestKey(key), readTime: undefined, state: undefined };
    reading.state = this.#reads.add(reading);
    this.#reading.set(key, reading);
    try {
      const state = await reading.state;
      // A newer read has replaced this one otherwise.
      if (this.#reading.get(key) === reading && reading.readTime !== undefined)
        this.#store(key, state, reading.readTime);
      return state;
    } finally {
      if (this.#reading.get(key) === reading) this.#reading.delete(key);
    }
  }

  #store(key: string, state: ApiKeyState | undefined, readTime: ReadTime): void {
    if (state === undefined) {
      this.#known.delete(key);
      this.#unknown.set(key, readTime.atMs);
      return;
    }
    this.#unknown.delete(key);
    const keyBucket = toBucket(state.id);
    const ownerBucket = toBucket(state.userId ?? state.orgId ?? state.id);
    this.#known.set(key, { state, readTime, keyBucket, ownerBucket });
  }

  #isUsable({ readTime, keyBucket, ownerBucket }: Entry): boolean {
    return (
      this.#isYoung(readTime.atMs, this.#maxStalenessMs) &&
      this.#changes.at(keyBucket) <= readTime.change &&
      this.#changes.at(ownerBucket) <= readTime.change
    );
  }

  /** The ids are not known yet: any change may be about the key. */
  #isJoinable({ readTime }: Reading): boolean {
    if (readTime === undefined) return true;
    return readTime.change === this.#changes.latest && this.#isYoung(readTime.atMs, this.#maxStalenessMs);
  }

  #isYoung(atMs: number, maxAgeMs: number): boolean {
    const ageMs = this.#nowMs() - atMs;
    // A negative age means that the clock was set back.
    return ageMs >= 0 && ageMs < maxAgeMs;
  }
}

/**
 * The last three digits of a UUID, which are random in all common versions. 1 in 4,096 ids share a
 * bucket.
 */
const bucketDigits = 3;

function toBucket(id: string): number {
  return Number.parseInt(id.slice(-bucketDigits), 16);
}

/**
 * Numbers changes, and has the number of the last one for a fixed number of buckets. The ids of a
 * key are only known after it has been read, so a read remembers the number of the last change.
 */
class ChangeTimes {
  readonly #lastChange = new Float64Array(16 ** bucketDigits);
  latest = 0;

  at(bucket: number): number {
    return this.#lastChange[bucket] ?? 0;
  }

  record(changed: readonly string[] | 'all'): void {
    this.latest += 1;
    if (changed === 'all') this.#lastChange.fill(this.latest);
    else for (const id of changed) this.#lastChange[toBucket(id)] = this.latest;
  }
}
