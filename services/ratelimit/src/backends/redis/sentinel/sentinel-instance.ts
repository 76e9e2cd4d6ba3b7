import type { Redis } from 'ioredis';
import { backendFailure } from '../../../errors.ts';
import type { CounterHit } from '../../../ports/counter-backend.ts';
import { createBatcher } from '../batcher.ts';
import { type ConnectionPoolDeps, createConnectionPool } from '../connection-pool.ts';
import type { PooledInstanceOptions } from '../pooled-instance.ts';
import type { RedisInstance } from '../redis-instance.ts';
import type { TcpRedisAddress } from '../redis-target.ts';
import { createPrimaryWatch, type PrimaryWatchDeps, type PrimaryWatchOptions } from './primary-watch.ts';

/** What such an instance takes. */
export interface SentinelInstanceDeps extends Omit<ConnectionPoolDeps, 'open'> {
  /** Makes a client of the primary that is not yet connected, and that never connects again by itself. */
  readonly openPrimary: (address: TcpRedisAddress) => Redis;
  readonly openSentinel: PrimaryWatchDeps['openSentinel'];
  /** Told of the first primary, and of each that took its place. */
  readonly onPrimary?: ((address: TcpRedisAddress) => void) | undefined;
  /** Told when the sentinels no longer name a primary, and when they do again. Counting goes on meanwhile. */
  readonly onSentinels?: ((error: Error | undefined) => void) | undefined;
}

/**
 * An instance that sentinels look after. All connections lead to the primary that they name; once they name another
 * one, what is at work at the old one ends there, and everything that comes later goes to the new one.
 */
export function createSentinelInstance(
  deps: SentinelInstanceDeps,
  options: PooledInstanceOptions & PrimaryWatchOptions,
): RedisInstance {
  let primary: TcpRedisAddress | undefined;
  const watch = createPrimaryWatch(
    {
      openSentinel: deps.openSentinel,
      onPrimary(address) {
        const isFirst = primary === undefined;
        primary = address;
        deps.onPrimary?.(address);
        if (!isFirst) {
          pool.renew();
        }
      },
      startDelayMs: deps.startDelayMs,
      onError: (error) => (primary === undefined ? deps.onError?.(error) : deps.onSentinels?.(error)),
      onRecovery: () => deps.onSentinels?.(undefined),
    },
    options,
  );
  const pool = createConnectionPool(
    {
      ...deps,
      open: () => deps.openPrimary(requirePrimary()),
      onError(error) {
        deps.onError?.(error);
        watch.askAnother();
      },
    },
    options,
  );
  const batcher = createBatcher(pool, options);

  function requirePrimary(): TcpRedisAddress {
    if (primary === undefined) {
      throw backendFailure('no connection to Redis: no sentinel has named the primary yet');
    }
    return primary;
  }

  return {
    async add(hits: readonly CounterHit[]) {
      requirePrimary();
      return await batcher.add(hits);
    },
    async read(hits: readonly CounterHit[]) {
      requirePrimary();
      return await batcher.read(hits);
    },
    async start() {
      await watch.start();
      await pool.start();
    },
    close(reason = backendFailure('the connections to Redis are closed')) {
      watch.close(reason);
      pool.close(reason);
    },
    lastError: () => (primary === undefined ? watch.lastError() : pool.lastError()) ?? watch.lastError(),
  };
}
