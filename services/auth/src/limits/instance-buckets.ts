import { RecentlyUsed } from '@tollgate/kit/collections';
import type { Millis } from '@tollgate/kit/time';
import type { Bucket } from '../config/quotas.ts';

interface Level {
  readonly used: number;
  readonly sinceMs: number;
}

/** Enough for an attack from many addresses; about 1 MB. */
const maxBuckets = 10_000;

/**
 * Leaky buckets in the memory of an instance, by name. The least recently used ones are forgotten.
 */
export class InstanceBuckets<Name extends string> {
  readonly #levels = new RecentlyUsed<Level>({ capacity: maxBuckets });

  /** Counts one event, unless the bucket is full. Returns the time to wait; 0 if it was counted. */
  take(name: Name, bucket: Bucket, nowMs: number): Millis {
    const count = this.#used(name, bucket, nowMs) + 1;
    if (count > bucket.size) return bucket.refillEveryMs;
    this.#levels.set(name, { used: count, sinceMs: nowMs });
    return 0;
  }

  /** Whether {@link take} would not count. */
  isFull(name: Name, bucket: Bucket, nowMs: number): boolean {
    return this.#used(name, bucket, nowMs) + 1 > bucket.size;
  }

  /** Takes back an event that did not happen after all. */
  giveBack(name: Name): void {
    const level = this.#levels.get(name);
    if (level !== undefined) this.#levels.set(name, { ...level, used: Math.max(0, level.used - 1) });
  }

  #used(name: Name, { refillEveryMs }: Bucket, nowMs: number): number {
    const level = this.#levels.get(name);
    return level === undefined ? 0 : Math.max(0, level.used - (nowMs - level.sinceMs) / refillEveryMs);
  }
}
