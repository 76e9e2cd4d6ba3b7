import { RecentlyUsed } from '@tollgate/kit/collections';
import type { JsonObject } from '@tollgate/kit/json';
import {
  type ChangedIds,
  defaultCapacity,
  type Reading,
  type ReadTime,
  type StateCacheOptions,
  StateReads,
  toBucket,
} from '../db/state-reads.ts';
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

export type ApiKeyCacheOptions = StateCacheOptions<Pick<ApiKeyStateStore, 'findMany'>>;

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

interface Entry {
  readonly state: ApiKeyState;
  readonly readTime: ReadTime;
  /** Buckets of the key and of its owner. */
  readonly keyBucket: number;
  readonly ownerBucket: number;
}

/**
 * Caches the state of API keys and of their owners, as the identity cache does for users. Entries
 * are found by the key itself, which saves the digest. Unknown keys have a cache of their own: an
 * attacker's keys must not evict those in use.
 */
export class ApiKeyCache {
  readonly #known;
  /** When a read last found no such key. */
  readonly #unknown;
  /** Keyed by the key, read by its digest. */
  readonly #reads: StateReads<string, ApiKeyState>;
  readonly #counts = { hits: 0, unknownHits: 0, misses: 0, joins: 0 };

  constructor({ store, capacity = defaultCapacity, ...options }: ApiKeyCacheOptions) {
    this.#known = new RecentlyUsed<Entry>({ capacity });
    this.#unknown = new RecentlyUsed<number>({ capacity });
    this.#reads = new StateReads({ ...options, findMany: (digests) => store.findMany(digests) });
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
    if (readAtMs === undefined || !this.#reads.isYoungMiss(readAtMs)) return undefined;
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
    const reading = this.#reads.pending(key);
    if (reading !== undefined && this.#isJoinable(reading)) {
      this.#counts.joins += 1;
      return reading.state;
    }
    this.#counts.misses += 1;
    return this.#reads.read(key, digestKey(key), (state, readTime) => this.#store(key, state, readTime));
  }

  /** Ids of keys and owners (UUIDs in lower case) that may have changed. */
  invalidate(changed: ChangedIds): void {
    this.#reads.invalidate(changed);
  }

  stats(): ApiKeyCacheStats {
    return { ...this.#counts, entries: this.#known.size, unknownEntries: this.#unknown.size };
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
      this.#reads.isYoung(readTime.atMs) &&
      this.#reads.isCurrent(readTime, keyBucket) &&
      this.#reads.isCurrent(readTime, ownerBucket)
    );
  }

  /** The ids are not known yet: any change may be about the key. */
  #isJoinable({ readTime }: Reading<string, ApiKeyState>): boolean {
    if (readTime === undefined) return true;
    return this.#reads.isLatest(readTime) && this.#reads.isYoung(readTime.atMs);
  }
}
