import { startDeadline } from '@tollgate/kit/time';
import type { Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';
import { Batch, type BatchHit } from '../batch.ts';
import type { ConnectionPool } from './connection-pool.ts';
import {
  findReadOnlyError,
  type Redirect,
  type Reply,
  sendBatch,
  settleBatch,
  settleUnsent,
  toBackendFailure,
} from './pipeline.ts';

export interface BatcherOptions {
  /** How long hits are collected, milliseconds; 0 sends them at the end of the event loop tick. */
  readonly windowMs: number;
  /** Limit of one exchange with Redis, milliseconds. */
  readonly timeoutMs: number;
  readonly server?: string;
}

/**
 * Hits that may wait while all connections are busy: half a second's worth at 100,000 decisions/s
 * with two descriptors. By then Envoy's timeout has long passed.
 */
const maxWaitingHits = 100_000;

/**
 * Collects the hits of all requests within a tick (or window) and sends them as one pipeline. While
 * no connection is free the batch grows, so a slow Redis gets fewer and larger batches.
 */
export class Batcher {
  readonly #pool: Pick<ConnectionPool, 'acquire' | 'release' | 'discard' | 'retireAll'>;
  readonly #options: BatcherOptions;
  readonly #server: string;
  readonly #redirect: Redirect;
  #collecting = new Batch();
  #scheduled: boolean = false;

  constructor(
    pool: Pick<ConnectionPool, 'acquire' | 'release' | 'discard' | 'retireAll'>,
    options: BatcherOptions,
    redirect: Redirect = () => undefined,
  ) {
    this.#pool = pool;
    this.#options = options;
    this.#server = options.server ?? 'Redis';
    this.#redirect = redirect;
  }

  add(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#collect(hits, 'add');
  }

  read(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#collect(hits, 'read');
  }

  #collect(hits: readonly BatchHit[], method: 'add' | 'read'): Promise<readonly number[]> {
    if (hits.length === 0) {
      return Promise.resolve([]);
    }
    if (this.#collecting.hitCount >= maxWaitingHits) {
      return Promise.reject(backendFailure(`too many requests are waiting for ${this.#server}`));
    }
    this.#schedule();
    return this.#collecting[method](hits);
  }

  #schedule(): void {
    if (this.#scheduled) {
      return;
    }
    this.#scheduled = true;
    if (this.#options.windowMs > 0) {
      setTimeout(() => this.#flush(), this.#options.windowMs);
    } else {
      setImmediate(() => this.#flush());
    }
  }

  async #flush(): Promise<void> {
    let connection: Redis;
    try {
      connection = await this.#pool.acquire();
    } catch (error) {
      await settleUnsent(this.#takeBatch(), toBackendFailure(error), this.#redirect);
      return;
    }
    await this.#send(connection, this.#takeBatch());
  }

  #takeBatch(): Batch {
    const batch = this.#collecting;
    this.#collecting = new Batch();
    this.#scheduled = false;
    return batch;
  }

  async #send(connection: Redis, batch: Batch): Promise<void> {
    let isBusy = true;
    const giveUp = (error: Error): void => {
      batch.failAll(error);
      if (isBusy) {
        this.#pool.discard(connection, error);
      }
    };
    const { timeoutMs } = this.#options;
    const clearDeadline = startDeadline(timeoutMs, () =>
      giveUp(backendFailure(`${this.#server} did not answer within ${timeoutMs}ms`)),
    );
    try {
      const replies = await sendBatch(connection, batch);
      isBusy = false;
      this.#release(connection, replies);
      await settleBatch(batch, replies, this.#redirect);
    } catch (error) {
      giveUp(toBackendFailure(error));
    } finally {
      clearDeadline();
    }
  }

  #release(connection: Redis, replies: readonly Reply[]): void {
    const readOnly = findReadOnlyError(replies);
    if (readOnly === undefined) {
      this.#pool.release(connection);
      return;
    }
    this.#pool.discard(connection, readOnly);
    // The others lead to the same server, and each would fail one request.
    this.#pool.retireAll();
  }
}
