/** What was used lately, and no more of it than was agreed on. */
export interface RecentlyUsed<V> {
  /** The value of a key that is held; to ask is to use it. */
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  clear(): void;
  /** How many are held. */
  size(): number;
}

/** How much is held. */
export interface RecentlyUsedOptions<V> {
  /** Most that all entries together may weigh. At least half of it is there for those used last. */
  readonly capacity: number;
  /** What an entry weighs; the same whenever it is asked. Default 1. */
  readonly weightOf?: (key: string, value: V) => number;
}

/**
 * Makes an empty cache that forgets what was not used for longest, roughly: there are two generations, and when the young one has half
 * of the capacity it becomes the old one, whose entries are forgotten unless they were used in the meantime. An order of single
 * entries would have to be written at each use; this reads a Map.
 */
export function createRecentlyUsed<V>(options: RecentlyUsedOptions<V>): RecentlyUsed<V> {
  const { capacity, weightOf = () => 1 } = options;
  const mostOfGeneration = capacity / 2;
  let young = new Map<string, V>();
  let old = new Map<string, V>();
  let youngWeight = 0;

  function add(key: string, value: V): void {
    const weight = weightOf(key, value);
    // It would push everything else out.
    if (weight > mostOfGeneration) return;
    if (youngWeight + weight > mostOfGeneration) {
      old = young;
      young = new Map();
      youngWeight = 0;
    }
    young.set(key, value);
    youngWeight += weight;
  }

  function remove(key: string): void {
    const value = young.get(key);
    if (value !== undefined) youngWeight -= weightOf(key, value);
    young.delete(key);
    old.delete(key);
  }

  return {
    get(key) {
      const value = young.get(key);
      if (value !== undefined) return value;
      const older = old.get(key);
      if (older === undefined) return undefined;
      old.delete(key);
      add(key, older);
      return older;
    },
    set(key, value) {
      remove(key);
      add(key, value);
    },
    delete: remove,
    clear() {
      young = new Map();
      old = new Map();
      youngWeight = 0;
    },
    size: () => young.size + old.size,
  };
}

/** Distinct keys in the order they were added; a key that is deleted and added again is the youngest. */
export interface KeyQueue {
  add(key: string): void;
  delete(key: string): void;
  /** The oldest key; undefined when there is none. */
  first(): string | undefined;
}

/**
 * Makes an empty queue.
 *
 * A Set keeps the order by itself, but a new iterator steps over every key that was deleted from its front, which is
 * what eviction does a million times. So one iterator is kept and goes on where it was.
 */
export function createKeyQueue(): KeyQueue {
  const keys = new Set<string>();
  let iterator = keys.values();
  let oldest: string | undefined;

  return {
    add(key) {
      keys.add(key);
    },
    delete(key) {
      keys.delete(key);
      // Added again, it would stand at the end.
      if (key === oldest) oldest = undefined;
    },
    first() {
      while (oldest === undefined && keys.size > 0) {
        const next = iterator.next();
        if (next.done === true) {
          iterator = keys.values();
        }
        oldest = next.value;
      }
      return oldest;
    },
  };
}
