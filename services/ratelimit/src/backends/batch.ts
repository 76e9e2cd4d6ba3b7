import type { Hit } from './counter-backend.ts';

export interface BatchHit extends Pick<Hit, 'key' | 'addend' | 'ttlSeconds'> {
  /** Redirections that the hit followed; absent for none. */
  readonly redirections?: number;
  /** The hit follows an ASK redirection, so the node must be sent ASKING first. */
  readonly asking?: boolean;
}

/** A request that waits for its counts. */
interface PendingRequest {
  readonly counts: number[];
  missing: number;
  readonly resolve: (counts: readonly number[]) => void;
  readonly reject: (error: Error) => void;
}

/** The part of a request in a counter that several requests add to. */
interface Share {
  readonly request: PendingRequest;
  readonly index: number;
  /** What the batch adds up to and including this hit. */
  readonly upTo: number;
}

/** A counter of a batch; all hits for it are sent as one command. */
export interface BatchCounter {
  readonly key: string;
  addend: number;
  ttlSeconds: number;
  redirections: number;
  asking: boolean;
  readonly shares: Share[];
}

/**
 * Hits of many requests that are sent to the backend together. Equal counters are coalesced, and
 * each request gets the count as if it had been sent alone, in order of arrival.
 */
export class Batch {
  readonly adds = new Map<string, BatchCounter>();
  readonly reads = new Map<string, BatchCounter>();
  #hitCount = 0;

  get hitCount(): number {
    return this.#hitCount;
  }

  add(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#join(this.adds, hits, true);
  }

  read(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#join(this.reads, hits, false);
  }

  /** All counters, those to read first. */
  counters(): BatchCounter[] {
    return [...this.reads.values(), ...this.adds.values()];
  }

  /** Resolves the requests that share a counter. */
  settle(counter: BatchCounter, count: number): void {
    const before = count - counter.addend;
    for (const { request, index, upTo } of counter.shares) {
      request.counts[index] = before + upTo;
      request.missing -= 1;
      if (request.missing === 0) {
        request.resolve(request.counts);
      }
    }
  }

  /**
   * Rejects the requests that share a counter. A request fails as a whole, with the first error.
   */
  fail(counter: BatchCounter, error: Error): void {
    for (const { request } of counter.shares) {
      request.reject(error);
    }
  }

  failAll(error: Error): void {
    for (const counter of this.counters()) {
      this.fail(counter, error);
    }
  }

  #join(into: Map<string, BatchCounter>, hits: readonly BatchHit[], adding: boolean) {
    if (hits.length === 0) {
      return Promise.resolve([]);
    }
    return new Promise<readonly number[]>((resolve, reject) => {
      const request: PendingRequest = {
        counts: new Array<number>(hits.length).fill(0),
        missing: hits.length,
        resolve,
        reject,
      };
      for (let index = 0; index < hits.length; index += 1) {
        const hit = hits[index];
        if (hit !== undefined) {
          share(into, hit, adding ? hit.addend : 0, request, index);
        }
      }
      this.#hitCount += hits.length;
    });
  }
}

function share(
  into: Map<string, BatchCounter>,
  hit: BatchHit,
  addend: number,
  request: PendingRequest,
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
      shares: [{ request, index, upTo: addend }],
    });
    return;
  }
  counter.addend += addend;
  counter.ttlSeconds = Math.max(counter.ttlSeconds, hit.ttlSeconds);
  counter.redirections = Math.max(counter.redirections, redirections);
  counter.asking ||= asking;
  counter.shares.push({ request, index, upTo: counter.addend });
}
