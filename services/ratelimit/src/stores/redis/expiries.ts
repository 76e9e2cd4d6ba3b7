import type { Batch, BatchCounter, CounterId } from '../batch.ts';
import type { HitUnit } from '../counter-store.ts';

/** Counters of one generation. There are two, of about 100 bytes a counter. */
const maxGenerationSize = 50_000;

/** Longer keys, which are rare, are not remembered: this bounds the memory. */
const maxKeyLength = 256;

/** Counters that wait for an expiry. Only an outage under load brings more than a few. */
const maxMissing = 100_000;

/** Counters that a batch repairs, so that an outage is not followed by one huge batch. */
const maxRepairsPerBatch = 1_000;

/**
 * Which counters of a Redis have an expiry, so that EXPIRE is sent once for each, not with each
 * hit.
 *
 * A counter may vanish (eviction, FLUSHALL, failover), and the next INCRBY creates it again without
 * an expiry. The count that it returns shows that. A lost connection leaves open which commands
 * were executed. In both cases the counter is touched: an INCRBY of 0 with EXPIRE, repeated until
 * Redis has confirmed it.
 */
export class Expiries {
  /** Units by key, because counters with different ones may have the same key. */
  #recent = new Map<string, HitUnit>();
  #older = new Map<string, HitUnit>();
  readonly #missing: Map<string, CounterId>;

  constructor(missing: Map<string, CounterId> = new Map()) {
    this.#missing = missing;
  }

  get hasMissing(): boolean {
    return this.#missing.size > 0;
  }

  /**
   * Whether the counter needs no EXPIRE with its hits. Adding 0 does not show whether it was
   * created, so it always needs one.
   */
  isSet({ key, addend, unit }: BatchCounter): boolean {
    if (addend === 0) return false;
    if (this.#recent.get(key) === unit) return true;
    if (this.#older.get(key) !== unit) return false;
    this.#remember(key, unit);
    return true;
  }

  /** Records the replies to INCRBY and, if it was sent, EXPIRE. */
  onReplies(counter: BatchCounter, count: number, expireReply: unknown): void {
    if (counter.expiryReplyAt === undefined) {
      if (!(count > counter.addend)) this.onUncertain(counter);
    } else if (expireReply === 1) {
      this.#missing.delete(counter.key);
      if (counter.key.length <= maxKeyLength) this.#remember(counter.key, counter.unit);
    }
  }

  /** The counter may exist without an expiry. */
  onUncertain({ key, unit, ttlSeconds }: BatchCounter): void {
    this.#recent.delete(key);
    this.#older.delete(key);
    if (this.#missing.size < maxMissing && key.length <= maxKeyLength) {
      this.#missing.set(key, { key, unit, ttlSeconds });
    }
  }

  /** Moves counters without an expiry to a batch. Those with hits in it get EXPIRE with these. */
  moveMissing(batch: Batch): void {
    let moved = 0;
    for (const hit of this.#missing.values()) {
      if (moved === maxRepairsPerBatch) return;
      if (!batch.adds.has(hit.key)) {
        moved += 1;
        this.#missing.delete(hit.key);
        batch.touch(hit);
      }
    }
  }

  /**
   * Expiries that are known after a connection was lost: the next one may lead to another server,
   * where a counter may exist without the EXPIRE that followed it. Replies that still arrive are
   * recorded with the old object.
   */
  forget(): Expiries {
    return new Expiries(this.#missing);
  }

  #remember(key: string, unit: HitUnit): void {
    if (this.#recent.size >= maxGenerationSize) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, unit);
  }
}
