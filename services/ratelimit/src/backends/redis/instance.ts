import type { BatchHit } from '../batch.ts';
import type { Hit } from '../counter-backend.ts';
import { Batcher, type BatcherOptions } from './batcher.ts';
import { ConnectionPool, type ConnectionPoolHooks, type ConnectionPoolOptions } from './connection-pool.ts';
import type { Redirect } from './pipeline.ts';

/** A deployment of Redis: a single server, one behind sentinels, or a cluster. */
export interface RedisInstance {
  /** @see CounterBackend.add */
  add(hits: readonly Hit[]): Promise<readonly number[]>;
  /** @see CounterBackend.read */
  read(hits: readonly Hit[]): Promise<readonly number[]>;
  /** Resolves once counters can be added; rejects when closed before. */
  start(): Promise<void>;
  /** Closes all connections; a pending `start` rejects with `reason`. Idempotent. */
  close(reason?: Error): void;
  /** The error of the last failed attempt to connect. */
  lastError(): Error | undefined;
}

export interface PooledInstanceOptions extends ConnectionPoolOptions, BatcherOptions {}

/** A single server: all connections of the pool lead to it. */
export class PooledInstance implements RedisInstance {
  readonly pool: ConnectionPool;
  readonly #batcher: Batcher;

  constructor(hooks: ConnectionPoolHooks, options: PooledInstanceOptions, redirect?: Redirect) {
    this.pool = new ConnectionPool(hooks, options);
    this.#batcher = new Batcher(this.pool, options, redirect);
  }

  add(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#batcher.add(hits);
  }

  read(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#batcher.read(hits);
  }

  start(): Promise<void> {
    return this.pool.start();
  }

  close(reason?: Error): void {
    this.pool.close(reason);
  }

  lastError(): Error | undefined {
    return this.pool.lastError();
  }
}
