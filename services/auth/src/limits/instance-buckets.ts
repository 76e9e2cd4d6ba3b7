import type { Millis } from '@tollgate/kit/time';
import type { Bucket } from '../config/quotas.ts';

interface Level {
  readonly used: number;
  readonly sinceMs: number;
}

/** Leaky buckets in the memory of an instance, one for each limit. */
export class InstanceBuckets<Name extends string> {
  readonly #levels = new Map<Name, Level>();

  /** Counts one event, unless the bucket is full. Returns the time to wait; 0 if it was counted. */
  take(name: Name, { size, refillEveryMs }: Bucket, nowMs: number): Millis {
    const { used, sinceMs } = this.#levels.get(name) ?? { used: 0, sinceMs: nowMs };
    const count = Math.max(0, used - (nowMs - sinceMs) / refillEveryMs) + 1;
    if (count > size) return refillEveryMs;
    this.#levels.set(name, { used: count, sinceMs: nowMs });
    return 0;
  }

  /** Takes back an event that did not happen after all. */
  giveBack(name: Name): void {
    const level = this.#levels.get(name);
    if (level !== undefined) this.#levels.set(name, { ...level, used: Math.max(0, level.used - 1) });
  }
}
