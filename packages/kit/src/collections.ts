/** Options of a cache. */
export interface RecentlyUsedOptions<V> {
  /**
   * Maximum weight of all entries. At least half of it is available to the most recently used
   * entries.
   */
  readonly capacity: number;
  /** Weight of an entry; must not change. Default 1. */
  readonly weigh?: (key: string, value: V) => number;
}

/**
 * A cache that evicts approximately the least recently used entries. It has two generations: when
 * the young one reaches half of the capacity it becomes the old one, whose entries are dropped
 * unless they are used again. An exact order would have to be updated on each use; a hit in the
 * young generation only reads a Map.
 */
export class RecentlyUsed<V> {
  readonly #generationCapacity: number;
  readonly #weigh: (key: string, value: V) => number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();
  #youngWeight = 0;

  constructor({ capacity, weigh = () => 1 }: RecentlyUsedOptions<V>) {
    this.#generationCapacity = capacity / 2;
    this.#weigh = weigh;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(key: string): V | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const older = this.#old.get(key);
    if (older === undefined) return undefined;
    this.#old.delete(key);
    this.#add(key, older);
    return older;
  }

  set(key: string, value: V): void {
    this.delete(key);
    this.#add(key, value);
  }

  delete(key: string): void {
    const value = this.#young.get(key);
    if (value !== undefined) this.#youngWeight -= this.#weigh(key, value);
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** The keys have no particular order, and entries added meanwhile are left out. */
  keys(): string[] {
    return [...this.#young.keys(), ...this.#old.keys()];
  }

  clear(): void {
    this.#young = new Map();
    this.#old = new Map();
    this.#youngWeight = 0;
  }

  #add(key: string, value: V): void {
    const weight = this.#weigh(key, value);
    // It would evict all other entries.
    if (weight > this.#generationCapacity) return;
    if (this.#youngWeight + weight > this.#generationCapacity) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngWeight = 0;
    }
    this.#young.set(key, value);
    this.#youngWeight += weight;
  }
}

/**
 * Distinct keys in insertion order; a key that is deleted and added again is the youngest.
 *
 * A Set keeps the order, but a new iterator steps over every key that was deleted from its front,
 * which eviction does a million times. So one iterator is kept, and continues where it was.
 */
export class KeyQueue {
  readonly #keys = new Set<string>();
  #iterator = this.#keys.values();
  #oldest: string | undefined;

  add(key: string): void {
    this.#keys.add(key);
  }

  delete(key: string): void {
    this.#keys.delete(key);
    // Added again, it would be the youngest.
    if (key === this.#oldest) this.#oldest = undefined;
  }

  /** The oldest key; undefined when the queue is empty. */
  first(): string | undefined {
    while (this.#oldest === undefined && this.#keys.size > 0) {
      const next = this.#iterator.next();
      if (next.done === true) this.#iterator = this.#keys.values();
      this.#oldest = next.value;
    }
    return this.#oldest;
  }
}
