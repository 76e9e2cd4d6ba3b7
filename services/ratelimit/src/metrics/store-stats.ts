import { monotonicNow } from '@tollgate/kit/time';
import { type StoreName, storeErrorName, storeErrorReasons, storeTimeName } from './names.ts';
import type { Counter, StatsRegistry, Timer } from './registry.ts';

export type StoreErrorReason = (typeof storeErrorReasons)[number];

/**
 * Durations and errors of the exchanges with a store. An exchange has the hits of all requests of a
 * batch, so that these cost the same for one decision and for hundreds.
 */
export class StoreStats {
  readonly #time: Timer;
  readonly #errors: ReadonlyMap<StoreErrorReason, Counter>;

  constructor(store: StoreName, stats: StatsRegistry) {
    this.#time = stats.timer(storeTimeName(store));
    this.#errors = new Map(
      storeErrorReasons.map((reason) => [reason, stats.counter(storeErrorName(store), { reason })]),
    );
  }

  /** Returns the time to pass to `end`. */
  begin(): number {
    return monotonicNow();
  }

  /** Records an exchange that was answered, or that failed after it was sent. */
  end(begunMs: number, failure?: StoreErrorReason): void {
    this.#time.record(monotonicNow() - begunMs);
    if (failure !== undefined) this.fail(failure);
  }

  /** Counts an exchange that failed before it was sent, or that was recorded already. */
  fail(reason: StoreErrorReason): void {
    const counter = this.#errors.get(reason);
    if (counter !== undefined) counter.value += 1;
  }
}
