import { RecentlyUsed } from '@tollgate/kit/collections';
import {
  type ChangedIds,
  defaultCapacity,
  type Reading,
  type ReadTime,
  type StateCacheOptions,
  StateReads,
  toBucket,
} from './state-reads.ts';

export interface CredentialCacheStats {
  readonly hits: number;
  /** Answers by the negative cache. */
  readonly unknownHits: number;
  readonly misses: number;
  /** Requests that joined a read in flight. */
  readonly joins: number;
  /** Cached credentials, fresh or stale. */
  readonly entries: number;
  /** Entries of the negative cache. */
  readonly unknownEntries: number;
}

interface Entry<State> {
  readonly state: State;
  readonly readTime: ReadTime;
  readonly buckets: readonly number[];
}

interface Source<State> {
  /** Returns states in the order of the digests. */
  findMany(digests: readonly string[]): Promise<readonly (State | undefined)[]>;
}

type CredentialCacheOptions<State> = StateCacheOptions<Source<State>> & {
  readonly digest: (credential: string) => string;
  /** Ids (UUIDs in lower case) whose changes make a state invalid. */
  readonly idsOf: (state: State) => readonly string[];
};

/**
 * Caches the state of credentials that the database knows by their digests, as the identity cache
 * does for users. Entries are found by the credential itself, which saves the digest. Unknown ones
 * have a cache of their own: those of an attacker must not evict those in use.
 */
export class CredentialCache<State> {
  readonly #known;
  /** When a read last found no such credential. */
  readonly #unknown;
  /** Keyed by the credential, read by its digest. */
  readonly #reads: StateReads<string, State>;
  readonly #digest: (credential: string) => string;
  readonly #idsOf: (state: State) => readonly string[];
  readonly #counts = { hits: 0, unknownHits: 0, misses: 0, joins: 0 };

  constructor(options: CredentialCacheOptions<State>) {
    const { store, capacity = defaultCapacity, digest, idsOf, ...reads } = options;
    this.#digest = digest;
    this.#idsOf = idsOf;
    this.#known = new RecentlyUsed<Entry<State>>({ capacity });
    this.#unknown = new RecentlyUsed<number>({ capacity });
    this.#reads = new StateReads({ ...reads, findMany: (digests) => store.findMany(digests) });
  }

  /**
   * The state, if the cache has it. Undefined: {@link find} must be called. `unknown`: there is no
   * such credential.
   */
  recall(credential: string): State | 'unknown' | undefined {
    const entry = this.#known.get(credential);
    if (entry !== undefined && this.#isUsable(entry)) {
      this.#counts.hits += 1;
      return entry.state;
    }
    const readAtMs = this.#unknown.get(credential);
    if (readAtMs === undefined || !this.#reads.isYoungMiss(readAtMs)) return undefined;
    this.#counts.unknownHits += 1;
    return 'unknown';
  }

  /** Whether the last read found the credential, however old its result is. */
  has(credential: string): boolean {
    return this.#known.get(credential) !== undefined;
  }

  /**
   * Reads the state. Undefined: there is no such credential. Rejects if the database is
   * unavailable.
   */
  find(credential: string): Promise<State | undefined> {
    const reading = this.#reads.pending(credential);
    if (reading !== undefined && this.#isJoinable(reading)) {
      this.#counts.joins += 1;
      return reading.state;
    }
    this.#counts.misses += 1;
    return this.#reads.read(credential, this.#digest(credential), (state, readTime) =>
      this.#store(credential, state, readTime),
    );
  }

  /** Ids (UUIDs in lower case) that may have changed. */
  invalidate(changed: ChangedIds): void {
    this.#reads.invalidate(changed);
  }

  stats(): CredentialCacheStats {
    return { ...this.#counts, entries: this.#known.size, unknownEntries: this.#unknown.size };
  }

  #store(credential: string, state: State | undefined, readTime: ReadTime): void {
    if (state === undefined) {
      this.#known.delete(credential);
      this.#unknown.set(credential, readTime.atMs);
      return;
    }
    this.#unknown.delete(credential);
    this.#known.set(credential, { state, readTime, buckets: this.#idsOf(state).map(toBucket) });
  }

  #isUsable({ readTime, buckets }: Entry<State>): boolean {
    return (
      this.#reads.isYoung(readTime.atMs) && buckets.every((bucket) => this.#reads.isCurrent(readTime, bucket))
    );
  }

  /** The ids are not known yet: any change may be about the credential. */
  #isJoinable({ readTime }: Reading<string, State>): boolean {
    if (readTime === undefined) return true;
    return this.#reads.isLatest(readTime) && this.#reads.isYoung(readTime.atMs);
  }
}
