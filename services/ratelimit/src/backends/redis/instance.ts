import type { CounterHit } from '../counter-backend.ts';
import { type Batcher, type BatcherOptions, createBatcher } from './batcher.ts';
import {
  type ConnectionPool,
  type ConnectionPoolDeps,
  type ConnectionPoolOptions,
  createConnectionPool,
} from './connection-pool.ts';
import type { AskElsewhere } from './pipeline.ts';

/** One deployment of Redis: a server, one that sentinels name, or a cluster. */
export interface RedisInstance {
  /** @see CounterBackend.add */
  add(hits: readonly CounterHit[]): Promise<readonly number[]>;
  /** @see CounterBackend.read */
  read(hits: readonly CounterHit[]): Promise<readonly number[]>;
  /** Resolves once counters can be added, however long that takes; rejects when closed before. */
  start(): Promise<void>;
  /** Lets go of all connections; a `start` that still waits rejects with `reason`. Idempotent. */
  close(reason?: Error): void;
  /** Why the last attempt to connect failed. */
  lastError(): Error | undefined;
}

/** Settings of an instance behind one pool. */
export interface PooledInstanceOptions extends ConnectionPoolOptions, BatcherOptions {}

/** An instance behind one pool. */
export type PooledInstance = Omit<RedisInstance, keyof Batcher> & Batcher & Pick<ConnectionPool, 'drain'>;

/** An instance all of whose connections lead to the same server. */
export function createPooledInstance(
  deps: ConnectionPoolDeps,
  options: PooledInstanceOptions,
  askElsewhere?: AskElsewhere,
): PooledInstance {
  const pool = createConnectionPool(deps, options);
  const { add, read } = createBatcher(pool, options, askElsewhere);
  const { start, drain, close, lastError } = pool;
  return { add, read, start, drain, close, lastError };
}
