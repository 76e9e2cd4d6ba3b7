import { QueueFull } from '../work-queue.ts';
import { maxBatchRows } from './connection.ts';

interface BatchOptions<T, R> {
  /** Runs one statement. Returns the results in the order of the items. */
  readonly run: (items: readonly T[]) => Promise<readonly R[]>;
  /** Statements in flight. Each uses a connection of the pool. */
  readonly maxConcurrent: number;
}

interface QueuedItem<T, R> {
  readonly item: T;
  readonly result: PromiseWithResolvers<R>;
}

/** Further items would wait longer than clients do. */
const maxQueued = 10_000;

/**
 * Runs one statement for many items: those added in the same turn of the event loop, or while the
 * maximum number of statements is in flight. The round trip and the work of PostgreSQL to start a
 * statement, and to commit, are then shared. With tracing, the span of a statement belongs to the
 * request that added its first item.
 */
export class Batch<T, R> {
  readonly #options: BatchOptions<T, R>;
  readonly #queue: QueuedItem<T, R>[] = [];
  #inFlight = 0;
  #scheduled: NodeJS.Immediate | undefined;

  constructor(options: BatchOptions<T, R>) {
    this.#options = options;
  }

  /** Rejects with {@link QueueFull} if too many items are waiting. */
  async add(item: T): Promise<R> {
    if (this.#queue.length >= maxQueued) throw new QueueFull(`${maxQueued} items are waiting already`);
    const result = Promise.withResolvers<R>();
    this.#queue.push({ item, result });
    this.#schedule();
    return result.promise;
  }

  #schedule(): void {
    if (this.#queue.length === 0 || this.#inFlight >= this.#options.maxConcurrent) return;
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      void this.#run(this.#queue.splice(0, maxBatchRows));
      this.#schedule();
    });
  }

  /** Never rejects: an error rejects the items of the statement. */
  async #run(batch: readonly QueuedItem<T, R>[]): Promise<void> {
    this.#inFlight += 1;
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      for (const [index, { result }] of batch.entries()) {
        // The contract of `run`: as many results as items.
        result.resolve(results[index] as R);
      }
    } catch (error) {
      for (const { result } of batch) result.reject(error);
    } finally {
      this.#inFlight -= 1;
      this.#schedule();
    }
  }
}
