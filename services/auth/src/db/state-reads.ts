import { inTime } from '@tollgate/kit/time';
import { errors } from '../errors.ts';
import { Batch } from './connection.ts';

/** Ids (UUIDs in lower case) of what may have changed, or everything. */
export type ChangedIds = readonly string[] | 'all';

/** When a read was sent. A result is as old as its read. */
export interface ReadTime {
  /** Unix time in milliseconds. */
  readonly atMs: number;
  /** Number of the last change before it. */
  readonly change: number;
}

/** A queued or sent read. */
export interface Reading<Key, State> {
  readonly key: Key;
  /** Undefined until the statement is sent. */
  readTime: ReadTime | undefined;
  state: Promise<State | undefined>;
}

/** Options of a cache of what ext_authz reads for its checks. */
export interface StateCacheOptions<Store> {
  readonly store: Store;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Maximum age of a result; 0 reads each time. */
  readonly maxStalenessMs: number;
  /** Maximum number of entries. Default {@link defaultCapacity}. */
  readonly capacity?: number;
  /** Limit of a lookup. Default 3 s. */
  readonly timeoutMs?: number;
}

/** About 10 MB, at a kilobyte each. */
export const defaultCapacity = 10_000;
/** A user, client or key may be created with an id or a text that was looked up before. */
const negativeTtlMs = 1_000;
/** Connections that checks may use of the pool, which they share with the API. */
const maxConcurrentReads = 4;
/** Callers have timeouts of their own; a late result is cached for the next request. */
const defaultTimeoutMs = 3_000;

interface StateReadsOptions<Key, State> extends Omit<StateCacheOptions<unknown>, 'store' | 'capacity'> {
  /** Reads in the order of the keys with one statement. */
  readonly findMany: (keys: readonly Key[]) => Promise<readonly (State | undefined)[]>;
}

/** Reads states in batches for a cache, and knows which results are still valid. */
export class StateReads<Key, State> {
  readonly #nowMs: () => number;
  readonly #maxStalenessMs: number;
  readonly #changes = new ChangeTimes();
  readonly #pending = new Map<string, Reading<Key, State>>();
  readonly #batch: Batch<Reading<Key, State>, State | undefined>;

  constructor({
    findMany,
    nowMs,
    maxStalenessMs,
    timeoutMs = defaultTimeoutMs,
  }: StateReadsOptions<Key, State>) {
    this.#nowMs = nowMs;
    this.#maxStalenessMs = maxStalenessMs;
    const late = () => errors.authorization_unavailable({ detail: 'the database did not respond in time' });
    this.#batch = new Batch({
      maxConcurrent: maxConcurrentReads,
      // Includes the wait for one of these reads, each of which may take as long.
      deadline: { timeoutMs, late },
      run: (readings) => {
        // Before the statement is sent: its result may be older than a concurrent change.
        const readTime = { atMs: nowMs(), change: this.#changes.latest };
        for (const reading of readings) reading.readTime = readTime;
        return inTime(findMany(readings.map(({ key }) => key)), timeoutMs, late);
      },
    });
  }

  /** The last read of a name that has not ended. */
  pending(name: string): Reading<Key, State> | undefined {
    return this.#pending.get(name);
  }

  /** @param store called with the result, unless a newer read has replaced this one */
  async read(
    name: string,
    key: Key,
    store: (state: State | undefined, readTime: ReadTime) => void,
  ): Promise<State | undefined> {
    const reading: Reading<Key, State> = { key, readTime: undefined, state: Promise.resolve(undefined) };
    reading.state = this.#batch.add(reading);
    this.#pending.set(name, reading);
    try {
      const state = await reading.state;
      if (this.#pending.get(name) === reading && reading.readTime !== undefined)
        store(state, reading.readTime);
      return state;
    } finally {
      if (this.#pending.get(name) === reading) this.#pending.delete(name);
    }
  }

  invalidate(changed: ChangedIds): void {
    this.#changes.record(changed);
  }

  /** Whether nothing in the bucket has changed since the read was sent. */
  isCurrent({ change }: ReadTime, bucket: number): boolean {
    return this.#changes.at(bucket) <= change;
  }

  /** Whether nothing at all has changed since the read was sent. */
  isLatest({ change }: ReadTime): boolean {
    return change === this.#changes.latest;
  }

  /** Whether a state is young enough. */
  isYoung(atMs: number): boolean {
    return this.#isWithin(atMs, this.#maxStalenessMs);
  }

  /** Whether it is recent enough that a read found no state. */
  isYoungMiss(atMs: number): boolean {
    return this.#isWithin(atMs, Math.min(negativeTtlMs, this.#maxStalenessMs));
  }

  #isWithin(atMs: number, maxAgeMs: number): boolean {
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

export function toBucket(id: string): number {
  return Number.parseInt(id.slice(-bucketDigits), 16);
}

/**
 * Numbers changes, and has the number of the last one for a fixed number of buckets, independent of
 * what is cached. What a key belongs to is only known after it has been read, so a read remembers
 * the number of the last change.
 */
class ChangeTimes {
  readonly #lastChange = new Float64Array(16 ** bucketDigits);
  latest = 0;

  at(bucket: number): number {
    return this.#lastChange[bucket] ?? 0;
  }

  record(changed: ChangedIds): void {
    this.latest += 1;
    if (changed === 'all') this.#lastChange.fill(this.latest);
    else for (const id of changed) this.#lastChange[toBucket(id)] = this.latest;
  }
}
