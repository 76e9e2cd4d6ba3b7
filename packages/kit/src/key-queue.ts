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
