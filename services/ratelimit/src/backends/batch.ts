import type { CounterHit } from './counter-backend.ts';

/** What a batch needs to know of a hit. */
export interface BatchHit extends Pick<CounterHit, 'key' | 'addend' | 'ttlSeconds'> {
  /** How many servers have sent the hit on already; absent for none. */
  readonly redirections?: number;
  /** The hit was sent here by ASK, so that the server must be told that the slot is not yet its own. */
  readonly asking?: boolean;
}

/** What one request waits for: its counts, in its order. */
interface Caller {
  readonly counts: number[];
  missing: number;
  readonly resolve: (counts: readonly number[]) => void;
  readonly reject: (error: Error) => void;
}

/** One caller's place among those that add to the same counter in the same batch. */
interface Share {
  readonly caller: Caller;
  readonly index: number;
  /** What the batch adds up to and including this hit. */
  readonly upTo: number;
}

/** One counter of a batch: everything added to it goes out as a single command. */
export interface BatchCounter {
  readonly key: string;
  addend: number;
  ttlSeconds: number;
  /** The most that any of the hits had. */
  redirections: number;
  /** At least one of the hits came by ASK. */
  asking: boolean;
  readonly shares: Share[];
}

/**
 * Hits of many requests that travel to the backend together. Equal counters are added to once, and each request gets
 * the count as it would have been had it come alone in its turn.
 */
export interface Batch {
  /** Distinct counters to add to. */
  readonly adds: ReadonlyMap<string, BatchCounter>;
  /** Distinct counters to read. */
  readonly reads: ReadonlyMap<string, BatchCounter>;
  readonly hitCount: number;
  add(hits: readonly BatchHit[]): Promise<readonly number[]>;
  read(hits: readonly BatchHit[]): Promise<readonly number[]>;
  /** Tells everyone who shares a counter what it came to. */
  settle(counter: BatchCounter, after: number): void;
  /** Fails those who share a counter. A request fails as a whole, with the first error it meets. */
  fail(counter: BatchCounter, error: Error): void;
  failAll(error: Error): void;
}

/** Makes an empty batch. */
export function createBatch(): Batch {
  const adds = new Map<string, BatchCounter>();
  const reads = new Map<string, BatchCounter>();
  let hitCount = 0;

  function join(into: Map<string, BatchCounter>, hits: readonly BatchHit[], adding: boolean) {
    if (hits.length === 0) {
      return Promise.resolve([]);
    }
    return new Promise<readonly number[]>((resolve, reject) => {
      const caller: Caller = {
        counts: new Array<number>(hits.length).fill(0),
        missing: hits.length,
        resolve,
        reject,
      };
      for (let index = 0; index < hits.length; index += 1) {
        const hit = hits[index];
        if (hit !== undefined) {
          share(into, hit, adding ? hit.addend : 0, caller, index);
        }
      }
      hitCount += hits.length;
    });
  }

  return {
    adds,
    reads,
    get hitCount() {
      return hitCount;
    },
    add: (hits) => join(adds, hits, true),
    read: (hits) => join(reads, hits, false),
    settle(counter, after) {
      const before = after - counter.addend;
      for (const { caller, index, upTo } of counter.shares) {
        caller.counts[index] = before + upTo;
        caller.missing -= 1;
        if (caller.missing === 0) {
          caller.resolve(caller.counts);
        }
      }
    },
    fail(counter, error) {
      for (const { caller } of counter.shares) {
        caller.reject(error);
      }
    },
    failAll(error) {
      for (const counter of [...adds.values(), ...reads.values()]) {
        this.fail(counter, error);
      }
    },
  };
}

function share(
  into: Map<string, BatchCounter>,
  hit: BatchHit,
  addend: number,
  caller: Caller,
  index: number,
): void {
  const { redirections = 0, asking = false } = hit;
  const counter = into.get(hit.key);
  if (counter === undefined) {
    into.set(hit.key, {
      key: hit.key,
      addend,
      ttlSeconds: hit.ttlSeconds,
      redirections,
      asking,
      shares: [{ caller, index, upTo: addend }],
    });
    return;
  }
  counter.addend += addend;
  counter.ttlSeconds = Math.max(counter.ttlSeconds, hit.ttlSeconds);
  counter.redirections = Math.max(counter.redirections, redirections);
  counter.asking ||= asking;
  counter.shares.push({ caller, index, upTo: counter.addend });
}
