import { createBatcher } from './batcher.ts';
import {
  type ConnectionPoolDeps,
  type ConnectionPoolOptions,
  createConnectionPool,
} from './connection-pool.ts';
import type { RedisInstance } from './redis-instance.ts';

/** Settings of an instance behind one pool. */
export interface PooledInstanceOptions extends ConnectionPoolOptions {
  /** @see BatcherOptions.windowMs */
  readonly windowMs: number;
}

/** An instance all of whose connections lead to the same server. */
export function createPooledInstance(
  deps: ConnectionPoolDeps,
  options: PooledInstanceOptions,
): RedisInstance {
  const pool = createConnectionPool(deps, options);
  const { add, read } = createBatcher(pool, options);
  return { add, read, start: pool.start, close: pool.close, lastError: pool.lastError };
}
