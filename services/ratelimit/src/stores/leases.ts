import { RecentlyUsed } from '@tollgate/kit/collections';
import type { Lease } from '@tollgate/rules/rule-set';
import type { CounterResult } from '../algorithms/algorithm.ts';
import { toWindowResult } from '../algorithms/fixed-window.ts';
import { backendFailure } from '../errors.ts';
import { type CounterStore, type Hit, requireNext } from './counter-store.ts';

/** Keys are chosen by clients. About 100,000 counters; at least half of it is for those in use. */
const maxBytes = 64 * 1024 * 1024;

/** A counter, its slot in a Map and the header of its key. */
const counterBytes = 400;

type Store = Pick<CounterStore, 'take' | 'peek' | 'takeAllOrNone'>;

/**
 * Counts the hits of rules with a lease in memory: reserves hits in the store and hands them out.
 * The store counts every hit before it is allowed, so that replicas together never allow more than
 * the limit; reserved hits that a replica does not use are refused to the others.
 *
 * Other hits pass through.
 */
export class Leases implements Store {
  /** Rules of atomic domains have no leases. */
  readonly takeAllOrNone: Store['takeAllOrNone'];
  readonly #shared: Shared;
  readonly #counters = new RecentlyUsed<LeasedCounter>({
    capacity: maxBytes,
    weigh: (key) => key.length * 2 + counterBytes,
  });

  constructor(store: Store) {
    this.#shared = { store, waiting: 0 };
    this.takeAllOrNone = store.takeAllOrNone?.bind(store);
  }

  take(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    for (const hit of hits) if (hit.lease !== undefined) return this.#takeLeased(hits);
    return this.#shared.store.take(hits);
  }

  peek(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    for (const hit of hits) if (hit.lease !== undefined) return this.#peekLeased(hits);
    return this.#shared.store.peek(hits);
  }

  /** Drops what is reserved of counters, after they were changed in the store. */
  forget(keys: readonly string[]): void {
    for (const key of keys) this.#counters.delete(key);
  }

  /** Forgets all counters whose keys begin with a text. */
  forgetByPrefix(prefix: string): void {
    this.forget(this.#counters.keys().filter((key) => key.startsWith(prefix)));
  }

  #takeLeased(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    const counts = hits.map((hit) => hit.lease && this.#getCounter(hit, hit.lease).add(hit, hit.lease));
    return counts.every((count) => typeof count === 'number')
      ? Promise.resolve(hits.map((hit, i) => toWindowResult(hit, counts[i] ?? 0)))
      : this.#takeOthers(hits, counts);
  }

  async #takeOthers(
    hits: readonly Hit[],
    counts: readonly (Promise<number> | number | undefined)[],
  ): Promise<readonly CounterResult[]> {
    const others = hits.filter((_, i) => counts[i] === undefined);
    const stored = others.length === 0 ? [] : this.#shared.store.take(others);
    return merge(hits, ...(await Promise.all([Promise.all(counts), stored])));
  }

  async #peekLeased(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    const readings = hits.map((hit) => ({ ...hit, addend: 0 }));
    const counts = readings.map((hit) => hit.lease && this.#getCounter(hit, hit.lease).read(0));
    const others = readings.filter((_, i) => counts[i] === undefined);
    return merge(readings, counts, others.length === 0 ? [] : await this.#shared.store.peek(others));
  }

  #getCounter({ key }: Hit, { limit }: Lease): LeasedCounter {
    const known = this.#counters.get(key);
    // Hits that were reserved within another limit may be beyond this one.
    if (known?.limit === limit) return known;
    const counter = new LeasedCounter(this.#shared, limit);
    this.#counters.set(key, counter);
    return counter;
  }
}

/** The results by the counts that are known, and `others` between them. */
function merge(
  hits: readonly Hit[],
  counts: readonly (number | undefined)[],
  others: readonly CounterResult[],
): readonly CounterResult[] {
  const rest = others.values();
  return hits.map((hit, i) => {
    const count = counts[i];
    return count === undefined ? requireNext(rest) : toWindowResult(hit, count);
  });
}

/** State that the counters of a replica share. */
interface Shared {
  readonly store: Store;
  /** Requests that wait for it. */
  waiting: number;
}

/** Equals the number that may wait for Redis. */
const maxWaiting = 100_000;

interface Waiting {
  readonly hit: Hit;
  readonly lease: Lease;
  readonly resolve: (count: number) => void;
  readonly reject: (error: unknown) => void;
}

/** The part of one window's counter that this replica reserved. */
class LeasedCounter {
  readonly limit: number;
  readonly #shared: Shared;
  /** Reserved hits that were not used yet. */
  #unused = 0;
  /** Hits that were allowed here. */
  #used = 0;
  /** The count of the store after the last hit that is reserved; at most the limit. */
  #reservedUpTo = 0;
  /** The store has no hits left. */
  #isFull: boolean = false;
  /** The count of the store is above the limit, as far as this replica knows. */
  #isOver: boolean = false;
  /** Hits that were refused since the store is full. */
  #refused = 0;
  /** Hits that wait for the store, in order of arrival. */
  #waiting: Waiting[] = [];
  #isServing: boolean = false;

  constructor(shared: Shared, limit: number) {
    this.limit = limit;
    this.#shared = shared;
  }

  /** The count after the hits were added, without hits of other replicas since the last call. */
  add(hit: Hit, lease: Lease): number | Promise<number> {
    if (hit.addend < 0) return this.#giveBack(hit, lease);
    const count =
      this.#waiting.length > 0 || this.#isUnknown(hit.addend) ? undefined : this.#take(hit.addend);
    if (count !== undefined) {
      if (count > this.limit) this.#exceed(hit);
      return count;
    }
    if (this.#shared.waiting >= maxWaiting) {
      return Promise.reject(backendFailure('too many requests are waiting for leases'));
    }
    this.#shared.waiting += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ hit, lease, resolve, reject });
      if (!this.#isServing) void this.#serveWaiting();
    });
  }

  /** The count before the hits, if `add` would not call the store for them. */
  read(addend: number): number | undefined {
    return this.#isFull || (addend <= this.#unused && this.#unused > 0) ? this.#count() : undefined;
  }

  /** At the limit, a check of 0 hits is refused once any replica has exceeded it. */
  #isUnknown(addend: number): boolean {
    return addend === 0 && this.#isFull && this.#unused === 0 && this.#refused === 0;
  }

  /** One hit above the limit tells the others that it is exceeded; the request does not wait. */
  #exceed(hit: Hit): void {
    if (this.#isOver || hit.addend === 0) return;
    this.#isOver = true;
    this.#shared.store.take([{ ...hit, addend: 1 }]).catch(() => {
      this.#isOver = false;
    });
  }

  #count(): number {
    return Math.max(0, this.#reservedUpTo - this.#unused + this.#refused);
  }

  /** Takes the hits from what is reserved; undefined when the store must be called. */
  #take(addend: number): number | undefined {
    if (this.read(addend) === undefined) return undefined;
    if (addend <= this.#unused) {
      this.#unused -= addend;
      this.#used += addend;
    } else {
      // As in the store, hits that do not fit are counted.
      this.#refused += addend - this.#unused;
      this.#unused = 0;
    }
    return this.#count();
  }

  async #serveWaiting(): Promise<void> {
    this.#isServing = true;
    // Requests of the same tick wait together.
    await Promise.resolve();
    try {
      for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
        await this.#reserve(first, sumHits(this.#waiting));
      }
    } catch (error) {
      // Requests that came later would wait for another timeout.
      const failed = this.#waiting;
      this.#removeWaiting(failed.length);
      for (const { reject } of failed) reject(error);
    }
    this.#isServing = false;
  }

  /**
   * Reserves no more than was used here in this window, so that a rare key is not refused because
   * of hits that no replica uses.
   */
  async #reserve({ hit, lease }: Waiting, wanted: number): Promise<void> {
    const ahead = Math.min(lease.hits, this.#used, this.limit - this.#reservedUpTo);
    const needed = Math.max(wanted - this.#unused, ahead);
    // More than the limit fills the counter; a huge sum would not be exact, or overflow.
    const addend = wanted === 0 ? 0 : Math.min(needed, this.limit + 1);
    const count = await this.#countInStore({ ...hit, addend });
    const before = count - addend;
    this.#unused += Math.min(addend, Math.max(0, this.limit - before));
    this.#setStored(count, before);
    this.#answer();
  }

  /** The count of the store after the hits. */
  async #countInStore(hit: Hit): Promise<number> {
    const [result] = await this.#shared.store.take([hit]);
    return result?.used ?? 0;
  }

  #setStored(count: number, beforeReserved: number): void {
    this.#reservedUpTo = Math.min(count, this.limit);
    this.#isFull = count >= this.limit;
    this.#isOver = count > this.limit;
    this.#refused = Math.max(0, beforeReserved - this.limit);
  }

  /** Answers the requests that hits were reserved for, and later ones as far as possible. */
  #answer(): void {
    let answered = 0;
    for (const { hit, resolve } of this.#waiting) {
      const count = hit.addend === 0 ? this.#count() : this.#take(hit.addend);
      if (count === undefined) break;
      resolve(count);
      answered += 1;
    }
    this.#removeWaiting(answered);
  }

  #removeWaiting(count: number): void {
    this.#waiting = this.#waiting.slice(count);
    this.#shared.waiting -= count;
  }

  /** Hits that were allowed here can be allowed again here, as far as they fit into a lease. */
  async #giveBack(hit: Hit, lease: Lease): Promise<number> {
    const hits = -hit.addend;
    if (hits <= Math.min(this.#used, lease.hits - this.#unused)) {
      this.#unused += hits;
      this.#used -= hits;
      this.#refused = 0;
      return this.#count();
    }
    const count = await this.#countInStore(hit);
    this.#setStored(count, count);
    // A reset takes back what is reserved as well.
    this.#unused = Math.min(this.#unused, count);
    return this.#count();
  }
}

function sumHits(waiting: readonly Waiting[]): number {
  return waiting.reduce((sum, { hit }) => sum + hit.addend, 0);
}
