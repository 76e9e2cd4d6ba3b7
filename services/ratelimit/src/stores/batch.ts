import type { CounterResult, Taken } from '../algorithms/algorithm.ts';
import { toWindowResult } from '../algorithms/fixed-window.ts';
import { toRateResult } from '../algorithms/registry.ts';
import type { AllOrNone, ConditionalHit } from './all-or-none.ts';
import type { Hit, HitUnit } from './counter-store.ts';

export interface BatchHit
  extends Pick<Hit, 'key' | 'addend' | 'capacity' | 'unit' | 'secondsLeft' | 'ttlSeconds' | 'rate'> {
  /** Redirections that the hit followed; absent for none. */
  readonly redirections?: number;
  /** The hit follows an ASK redirection, so the node must be sent ASKING first. */
  readonly asking?: boolean;
}

/** A counter that exists without an expiry. */
export type CounterId = Pick<Hit, 'key' | 'unit' | 'ttlSeconds'>;

/** A request that waits for its results. */
interface PendingRequest {
  readonly results: CounterResult[];
  missing: number;
  readonly resolve: (results: readonly CounterResult[]) => void;
  readonly reject: (error: Error) => void;
}

/** A request that is counted by all of its limits, or by none; it waits for its results. */
export interface WholeRequest {
  readonly hits: readonly ConditionalHit[];
  readonly resolve: (result: AllOrNone) => void;
  readonly reject: (error: Error) => void;
}

/** The part of a request in a counter that several requests may add to: an element of a list. */
interface Share {
  readonly request: PendingRequest;
  readonly index: number;
  readonly hit: BatchHit;
  /** Sum of the batch up to and including this hit. */
  readonly upTo: number;
  next: Share | undefined;
}

/** A counter of a batch; all hits for it are sent as one command. */
export interface BatchCounter {
  readonly key: string;
  /** The sum of the hits. */
  addend: number;
  /** Requests that share a counter of `scripts`, with as many hits each. */
  times: number;
  /** An earlier counter of `scripts` has the same key. */
  isRepeated: boolean;
  readonly capacity: number;
  readonly secondsLeft: number;
  /** Unit of the hit with the longest TTL. */
  unit: HitUnit;
  ttlSeconds: number;
  readonly rate: BatchHit['rate'];
  redirections: number;
  asking: boolean;
  /** Position of its reply, once it was sent. */
  replyAt: number;
  /** Position of the reply to EXPIRE; undefined when the counter has its expiry. */
  expiryReplyAt: number | undefined;
  first: Share | undefined;
  last: Share | undefined;
}

/**
 * Hits of many requests that are sent to the store together. Equal counters are coalesced, and
 * each request gets the result as if it had been sent alone, in order of arrival.
 */
export class Batch {
  readonly adds = new Map<string, BatchCounter>();
  /**
   * Hits that INCRBY cannot decide, sent after those of `adds`: refunds, and limits that are not
   * counted in fixed windows.
   */
  readonly scripts: BatchCounter[] = [];
  /** The last of `scripts` with each key. */
  readonly #lastScripts = new Map<string, BatchCounter>();
  /** Each is decided by one script, after those of `scripts`. */
  readonly requests: WholeRequest[] = [];
  readonly reads = new Map<string, BatchCounter>();
  hitCount = 0;
  /** Length of the keys of all hits. */
  keyChars = 0;

  /** Adds hits, or reads their counters. Resolves with their results. */
  join(hits: readonly BatchHit[], method: 'take' | 'peek'): Promise<readonly CounterResult[]> {
    if (hits.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const results = new Array<CounterResult>(hits.length);
      const request: PendingRequest = { results, missing: hits.length, resolve, reject };
      for (let index = 0; index < hits.length; index += 1) {
        const given = hits[index];
        if (given === undefined) continue;
        const hit = method === 'take' ? given : { ...given, addend: 0 };
        this.keyChars += hit.key.length;
        const counter = this.#getCounter(hit, method);
        counter.addend += hit.addend;
        append(counter, { request, index, hit, upTo: counter.addend, next: undefined });
      }
      this.hitCount += hits.length;
    });
  }

  takeAllOrNone(hits: readonly ConditionalHit[]): Promise<AllOrNone> {
    this.hitCount += hits.length;
    for (const { key } of hits) this.keyChars += key.length;
    return new Promise((resolve, reject) => this.requests.push({ hits, resolve, reject }));
  }

  /** Adds 0 to a counter, for its expiry; no request waits for it. */
  touch(hit: CounterId): void {
    getCounter(this.adds, { ...hit, addend: 0, capacity: 0, secondsLeft: hit.ttlSeconds });
  }

  /** All counters, those to read first. */
  counters(): BatchCounter[] {
    return [...this.reads.values(), ...this.adds.values(), ...this.scripts];
  }

  /** Resolves the requests that share a counter. */
  settle(counter: BatchCounter, count: number): void {
    const before = count - counter.addend;
    for (let share = counter.first; share !== undefined; share = share.next) {
      resolveShare(share, toWindowResult(share.hit, before + share.upTo));
    }
  }

  /** Resolves the requests that share a counter of `scripts`, by how many of them are allowed. */
  settleTaken({ first }: BatchCounter, taken: Taken): void {
    let index = 0;
    for (let share = first; share !== undefined; share = share.next) {
      resolveShare(share, toRateResult(share.hit, taken, index));
      index += 1;
    }
  }

  /** Resolves the requests of a counter that another server has counted. */
  settleResult(counter: BatchCounter, result: CounterResult): void {
    if (counter.rate === undefined) this.settle(counter, result.used);
    else if (counter.first !== undefined) resolveShare(counter.first, result);
  }

  /**
   * Rejects the requests that share a counter. A request fails as a whole, with the first error.
   */
  fail(counter: BatchCounter, error: Error): void {
    for (let share = counter.first; share !== undefined; share = share.next) {
      share.request.reject(error);
    }
  }

  failAll(error: Error): void {
    for (const counter of this.counters()) {
      this.fail(counter, error);
    }
    for (const { reject } of this.requests) reject(error);
  }

  #getCounter(hit: BatchHit, method: 'take' | 'peek'): BatchCounter {
    if (hit.rate !== undefined) return this.#getScriptCounter(hit);
    if (method === 'peek') return getCounter(this.reads, hit);
    return hit.addend < 0 ? this.#getScriptCounter(hit) : getCounter(this.adds, hit);
  }

  /** Only equal hits without others between them are coalesced: the order decides who gets them. */
  #getScriptCounter(hit: BatchHit): BatchCounter {
    const last = this.#lastScripts.get(hit.key);
    if (last !== undefined && isEqual(last, hit)) {
      last.times += 1;
      last.redirections = Math.max(last.redirections, hit.redirections ?? 0);
      last.asking ||= hit.asking ?? false;
      return last;
    }
    const counter = createCounter(hit);
    counter.isRepeated = last !== undefined;
    this.scripts.push(counter);
    this.#lastScripts.set(hit.key, counter);
    return counter;
  }
}

/** The requests of a counter of `scripts`, each with a counter of its own, to send it elsewhere. */
export function splitRequests(counter: BatchCounter): readonly BatchCounter[] {
  if (counter.times === 1) return [counter];
  const addend = counter.addend / counter.times;
  const parts: BatchCounter[] = [];
  for (let share = counter.first; share !== undefined; share = share.next) {
    const part: BatchCounter = { ...counter, addend, times: 1 };
    part.first = { ...share, upTo: addend, next: undefined };
    parts.push(part);
  }
  return parts;
}

/** Refunds stop at 0 or at the limit, so what each gave back does not follow from the sum. */
function isEqual({ addend, times, rate }: BatchCounter, hit: BatchHit): boolean {
  return hit.addend >= 0 && addend === hit.addend * times && isEqualRate(rate, hit.rate);
}

/**
 * Rates are compared by value: an override of the counter API makes a limit of its own for each
 * request.
 */
function isEqualRate(a: BatchHit['rate'], b: BatchHit['rate']): boolean {
  return (
    a === b ||
    (a?.algorithm === b?.algorithm &&
      a?.limit === b?.limit &&
      a?.burst === b?.burst &&
      a?.maxDebt === b?.maxDebt &&
      a?.periodSeconds === b?.periodSeconds)
  );
}

function resolveShare({ request, index }: Share, result: CounterResult): void {
  request.results[index] = result;
  request.missing -= 1;
  if (request.missing === 0) request.resolve(request.results);
}

function createCounter(hit: BatchHit): BatchCounter {
  const { key, capacity, unit, secondsLeft, ttlSeconds, rate, redirections = 0, asking = false } = hit;
  return {
    key,
    addend: 0,
    capacity,
    secondsLeft,
    times: 1,
    isRepeated: false,
    unit,
    ttlSeconds,
    rate,
    redirections,
    asking,
    replyAt: -1,
    expiryReplyAt: undefined,
    first: undefined,
    last: undefined,
  };
}

/** The counter of a hit, without the hit. */
function getCounter(into: Map<string, BatchCounter>, hit: BatchHit): BatchCounter {
  const { key, unit, ttlSeconds, redirections = 0, asking = false } = hit;
  const counter = into.get(key);
  if (counter !== undefined) {
    if (ttlSeconds > counter.ttlSeconds) {
      counter.unit = unit;
      counter.ttlSeconds = ttlSeconds;
    }
    counter.redirections = Math.max(counter.redirections, redirections);
    counter.asking ||= asking;
    return counter;
  }
  const created = createCounter(hit);
  into.set(key, created);
  return created;
}

function append(counter: BatchCounter, share: Share): void {
  if (counter.last === undefined) {
    counter.first = share;
  } else {
    counter.last.next = share;
  }
  counter.last = share;
}
