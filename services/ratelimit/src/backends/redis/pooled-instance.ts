import type { AskElsewhere } from './batch-pipeline.ts';
import { type Batcher, type BatcherOptions, createBatcher } from './batcher.ts';
import {
  type ConnectionPool,
  type ConnectionPoolDeps,
  type ConnectionPoolOptions,
  createConnectionPool,
} from './connection-pool.ts';
import type { RedisInstance } from './redis-instance.ts';

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
