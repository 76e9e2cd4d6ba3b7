import { startDeadline } from '@tollgate/kit/time';
import type { Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';
import { type Batch, type BatchHit, createBatch } from '../batch.ts';
import type { ConnectionPool } from './connection-pool.ts';
import {
  type AskElsewhere,
  lostPrimary,
  type Reply,
  sendBatch,
  settleBatch,
  settleUnsent,
  toBackendFailure,
} from './pipeline.ts';

/** Settings of a batcher. */
export interface BatcherOptions {
  /** How long hits are collected before they are sent, milliseconds; 0 sends them at the end of the event loop's tick. */
  readonly windowMs: number;
  /** Bound on one exchange with Redis, milliseconds. */
  readonly timeoutMs: number;
  /** What errors call the server; default `Redis`. */
  readonly server?: string;
}

/** Sends counters to one Redis. */
export interface Batcher {
  add(hits: readonly BatchHit[]): Promise<readonly number[]>;
  read(hits: readonly BatchHit[]): Promise<readonly number[]>;
}

/**
 * Hits that may wait while every connection is busy. At 100,000 decisions/s and two descriptors each this is half a
 * second's worth; whoever waits longer than that has long been given up by Envoy.
 */
const maxWaitingHits = 100_000;

/**
 * Collects the hits of all requests that arrive within a tick (or window) and sends them as one pipeline. While no
 * connection is free the batch keeps growing, so a slow Redis sees fewer and larger batches.
 */
export function createBatcher(
  pool: ConnectionPool,
  options: BatcherOptions,
  askElsewhere: AskElsewhere = () => undefined,
): Batcher {
  const { server = 'Redis' } = options;
  let collecting = createBatch();
  let scheduled = false;

  function schedule(): void {
    if (scheduled) {
      return;
    }
    scheduled = true;
    if (options.windowMs > 0) {
      setTimeout(flush, options.windowMs);
    } else {
      setImmediate(flush);
    }
  }

  async function flush(): Promise<void> {
    let connection: Redis;
    try {
      connection = await pool.acquire();
    } catch (error) {
      await settleUnsent(takeBatch(), toBackendFailure(error), askElsewhere);
      return;
    }
    await send(connection, takeBatch());
  }

  function takeBatch(): Batch {
    const batch = collecting;
    collecting = createBatch();
    scheduled = false;
    return batch;
  }

  async function send(connection: Redis, batch: Batch): Promise<void> {
    let isAtWork = true;
    const giveUp = (error: Error): void => {
      batch.failAll(error);
      if (isAtWork) {
        pool.discard(connection, error);
      }
    };
    const clearDeadline = startDeadline(options.timeoutMs, () =>
      giveUp(backendFailure(`${server} did not answer within ${options.timeoutMs}ms`)),
    );
    try {
      const replies = await sendBatch(connection, batch);
      isAtWork = false;
      giveBack(connection, replies);
      await settleBatch(batch, replies, askElsewhere);
    } catch (error) {
      giveUp(toBackendFailure(error));
    } finally {
      clearDeadline();
    }
  }

  function giveBack(connection: Redis, replies: readonly Reply[]): void {
    const refusal = lostPrimary(replies);
    if (refusal === undefined) {
      pool.release(connection);
      return;
    }
    pool.discard(connection, refusal);
    // The others lead to the same server, and would each cost a request to find out.
    pool.retireAll();
  }

  function collect(hits: readonly BatchHit[], method: keyof Batcher): Promise<readonly number[]> {
    if (hits.length === 0) {
      return Promise.resolve([]);
    }
    if (collecting.hitCount >= maxWaitingHits) {
      return Promise.reject(backendFailure(`too many requests are waiting for ${server}`));
    }
    schedule();
    return collecting[method](hits);
  }

  return {
    add: (hits) => collect(hits, 'add'),
    read: (hits) => collect(hits, 'read'),
  };
}
