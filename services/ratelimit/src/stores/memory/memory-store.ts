import { createHash } from 'node:crypto';
import type { Rate } from '@tollgate/rules/rule-set';
import type { CounterResult } from '../../algorithms/algorithm.ts';
import { toWindowResult } from '../../algorithms/fixed-window.ts';
import { algorithms, toRateResult } from '../../algorithms/registry.ts';
import type { Settings } from '../../config/settings.ts';
import type { Context } from '../../context.ts';
import { backendFailure } from '../../errors.ts';
import { type AllOrNone, type ConditionalHit, getRefusal, toCountedResult } from '../all-or-none.ts';
import type { CounterStore, Hit, SharedStore, Subscriber } from '../counter-store.ts';
import { EvictingCounters } from './evicting-counters.ts';

/**
 * Longest key that is stored as it is. Clients choose the values in keys, which may be megabytes;
 * longer keys are stored as their hash, so that `maxCounters` bounds the memory.
 */
const maxKeyLength = 256;

/** Redis counts in signed 64-bit integers; both stores refuse more. */
const maxCount = 2 ** 63;

/** BACKEND_TYPE=memory. */
export function createMemoryStore(
  { memoryMaxCounters }: Pick<Settings, 'memoryMaxCounters'>,
  { nowMs, stats }: Pick<Context, 'nowMs' | 'stats'>,
): Promise<CounterStore> {
  const store = new MemoryStore({ nowMs, maxCounters: memoryMaxCounters });
  stats.gauge('ratelimit.memory.counters', () => store.size);
  stats.gauge('ratelimit.memory.evicted', () => store.evicted);
  return Promise.resolve(store);
}

interface MemoryBackendOptions {
  readonly nowMs: () => number;
  /** Maximum number of counters, as `size` counts them. */
  readonly maxCounters: number;
}

/**
 * Counters in the process: for development, tests and single instances. They are not shared and do
 * not survive a restart. A counter is kept until its window ends, after which no request uses its
 * key, or until its state equals that of a new counter.
 */
export class MemoryStore implements CounterStore {
  readonly shared: SharedStore;
  readonly #store: EvictingCounters;
  readonly #nowMs: () => number;

  constructor({ nowMs, maxCounters }: MemoryBackendOptions) {
    this.#store = new EvictingCounters(maxCounters);
    this.#nowMs = nowMs;
    this.shared = new MemorySharedStore((prefix) => this.#deleteByPrefix(prefix));
  }

  /** Counters; one with a long state counts as several. */
  get size(): number {
    return this.#store.size;
  }

  /** Counters that were evicted before they expired. */
  get evicted(): number {
    return this.#store.evicted;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async take(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    const nowMs = this.#nowMs();
    return hits.map((hit) => this.#takeOne(hit, nowMs));
  }

  async peek(hits: readonly Hit[]): Promise<readonly CounterResult[]> {
    const nowMs = this.#nowMs();
    const now = Math.floor(nowMs / 1000);
    return hits.map((hit) =>
      hit.rate === undefined
        ? toWindowResult({ ...hit, addend: 0 }, this.#store.read(toStoredKey(hit.key), now))
        : this.#takeRate({ ...hit, addend: 0 }, hit.rate, nowMs),
    );
  }

  async takeAllOrNone(hits: readonly ConditionalHit[]): Promise<AllOrNone> {
    const nowMs = this.#nowMs();
    const now = Math.floor(nowMs / 1000);
    const counters = {
      count: (key: string) => this.#store.read(toStoredKey(key), now),
      state: (key: string) => this.#store.readState(toStoredKey(key), now),
    };
    const refusal = getRefusal(hits, counters, nowMs * 1000);
    const results = hits.map(
      (hit, i) =>
        (hit.charge === 'always' ? undefined : refusal?.[i]) ??
        toCountedResult(hit, this.#takeOne(hit, nowMs)),
    );
    return { refused: refusal !== undefined, results };
  }

  #takeOne(hit: Hit, nowMs: number): CounterResult {
    return hit.rate === undefined
      ? toWindowResult(hit, this.#addToWindow(hit, Math.floor(nowMs / 1000)))
      : this.#takeRate(hit, hit.rate, nowMs);
  }

  /** Keys that are stored as their hash are not found. */
  #deleteByPrefix(prefix: string): number {
    return this.#store.deleteByPrefix(prefix, Math.floor(this.#nowMs() / 1000));
  }

  #takeRate(hit: Hit, rate: Rate, nowMs: number): CounterResult {
    const storedKey = toStoredKey(hit.key);
    const nowUs = nowMs * 1000;
    const nowSeconds = Math.floor(nowMs / 1000);
    const stored = this.#store.readState(storedKey, nowSeconds);
    const { take, getExpiryUs } = algorithms[rate.algorithm];
    const taken = take(rate, stored, { hits: hit.addend, times: 1, nowUs });
    const { state } = taken;
    const remaining = taken.taken === 0 ? 0 : taken.remaining;
    if (state !== undefined) {
      const expiryUs = getExpiryUs(rate, state);
      if (expiryUs <= nowUs) this.#store.delete(storedKey);
      else this.#store.setState(storedKey, { state, used: rate.burst - remaining, expiryUs }, nowSeconds);
    }
    return toRateResult(hit, taken);
  }

  #addToWindow({ key, addend, secondsLeft }: Hit, now: number): number {
    const storedKey = toStoredKey(key);
    if (addend < 0) {
      const taken = Math.min(-addend, this.#store.read(storedKey, now));
      return taken === 0 ? 0 : this.#store.add(storedKey, -taken, now + secondsLeft, now);
    }
    const count = this.#store.add(storedKey, addend, now + secondsLeft, now);
    if (count >= maxCount) {
      this.#store.add(storedKey, -addend, now + secondsLeft, now);
      throw backendFailure('increment or decrement would overflow');
    }
    return count;
  }
}

function toStoredKey(key: string): string {
  return key.length <= maxKeyLength ? key : createHash('sha256').update(key).digest('base64');
}

/** The process is the only replica. */
class MemorySharedStore implements SharedStore {
  readonly deleteByPrefix: SharedStore['deleteByPrefix'];
  readonly #subscribers = new Set<Subscriber>();
  readonly #entries = new Map<string, string>();

  constructor(deleteByPrefix: (prefix: string) => number) {
    this.deleteByPrefix = async (prefix) => deleteByPrefix(prefix);
  }

  async listEntries(): Promise<ReadonlyMap<string, string>> {
    return new Map(this.#entries);
  }

  async getEntry(name: string): Promise<string | undefined> {
    return this.#entries.get(name);
  }

  async countEntries(): Promise<number> {
    return this.#entries.size;
  }

  async setEntry(name: string, text: string): Promise<void> {
    this.#entries.set(name, text);
  }

  async deleteEntry(name: string): Promise<boolean> {
    return this.#entries.delete(name);
  }

  async publish(message: string): Promise<void> {
    for (const { onMessage } of this.#subscribers) onMessage(message);
  }

  async subscribe(subscriber: Subscriber, signal: AbortSignal): Promise<void> {
    this.#subscribers.add(subscriber);
    signal.addEventListener('abort', () => this.#subscribers.delete(subscriber), { once: true });
    subscriber.onGap();
  }
}
