/** What the keeper of refused statuses needs. */
export interface RefusedStatusesDeps {
  /** Waiting time after so many attempts in a row that were refused, from 1. */
  readonly delayAfter: (attempt: number) => number;
  /** Puts a status in line to be written again. */
  readonly retry: (id: string) => void;
}

/** Statuses that the API server has refused, each to be tried again. */
export interface RefusedStatuses {
  /** The status of this object was refused. */
  add(id: string): void;
  /** It was not refused this time, or need not be written any more. Answers whether it had been. */
  settle(id: string): boolean;
  /** Sees to it that another attempt follows, when one has ended; answers whether there is anything to try. */
  schedule(): boolean;
  close(): void;
}

/**
 * Makes the keeper of refused statuses. A right that is missing is missing for a whole namespace, so one of each is tried
 * at a time, in turn, and the others follow once it is written: 10,000 attempts in vain would keep the API server busy.
 */
export function createRefusedStatuses({ delayAfter, retry }: RefusedStatusesDeps): RefusedStatuses {
  /** By namespace, in the order in which they will be tried. */
  const refused = new Map<string, Set<string>>();
  let timer: NodeJS.Timeout | undefined;
  let attempts = 0;

  function retryOneOfEach(): void {
    timer = undefined;
    for (const [first] of refused.values()) {
      if (first !== undefined) retry(first);
    }
  }

  return {
    add(id) {
      const namespace = namespaceOf(id);
      const ids = refused.get(namespace) ?? new Set();
      // To the end, so that an object refused for its own sake does not hold up the others for ever.
      ids.delete(id);
      refused.set(namespace, ids.add(id));
    },
    settle(id) {
      const namespace = namespaceOf(id);
      const ids = refused.get(namespace);
      if (ids?.delete(id) !== true) return false;
      refused.delete(namespace);
      for (const other of ids) retry(other);
      return true;
    },
    schedule() {
      if (refused.size === 0) attempts = 0;
      else if (timer === undefined) {
        attempts += 1;
        timer = setTimeout(retryOneOfEach, delayAfter(attempts)).unref();
      }
      return refused.size > 0;
    },
    close() {
      clearTimeout(timer);
      refused.clear();
    },
  };
}

const namespaceOf = (id: string): string => id.slice(0, id.indexOf('/'));
