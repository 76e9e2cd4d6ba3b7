import { AppError } from '@tollgate/kit/errors';
import type { ChainableCommander, Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';
import type { CounterHit } from '../../ports/counter-backend.ts';
import { type Batch, type BatchCounter, createBatch } from './batch.ts';
import type { ConnectionPool } from './connection-pool.ts';

/** Settings of a batcher. */
export interface BatcherOptions {
  /** How long hits are collected before they are sent, milliseconds; 0 sends them at the end of the event loop's tick. */
  readonly windowMs: number;
  /** Bound on one exchange with Redis, milliseconds. */
  readonly timeoutMs: number;
}

/** Sends counters to one Redis. */
export interface Batcher {
  add(hits: readonly CounterHit[]): Promise<readonly number[]>;
  read(hits: readonly CounterHit[]): Promise<readonly number[]>;
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
export function createBatcher(pool: ConnectionPool, options: BatcherOptions): Batcher {
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
    try {
      const connection = await pool.acquire();
      await send(connection, takeBatch());
    } catch (error) {
      takeBatch().failAll(toFailure(error));
    }
  }

  function takeBatch(): Batch {
    const batch = collecting;
    collecting = createBatch();
    scheduled = false;
    return batch;
  }

  async function send(connection: Redis, batch: Batch): Promise<void> {
    const deadline = setTimeout(() => {
      const late = backendFailure(`Redis did not answer within ${options.timeoutMs}ms`);
      batch.failAll(late);
      pool.discard(connection, late);
    }, options.timeoutMs);
    try {
      const refusal = await runPipeline(connection, batch);
      if (refusal === undefined) {
        pool.release(connection);
      } else {
        pool.discard(connection, refusal);
        // The others lead to the same server, and would each cost a request to find out.
        pool.retireAll();
      }
    } catch (error) {
      const failure = toFailure(error);
      batch.failAll(failure);
      pool.discard(connection, failure);
    } finally {
      clearTimeout(deadline);
    }
  }

  function collect(hits: readonly CounterHit[], method: 'add' | 'read'): Promise<readonly number[]> {
    if (hits.length === 0) {
      return Promise.resolve([]);
    }
    if (collecting.hitCount >= maxWaitingHits) {
      return Promise.reject(backendFailure('too many requests are waiting for Redis'));
    }
    schedule();
    return collecting[method](hits);
  }

  return {
    add: (hits) => collect(hits, 'add'),
    read: (hits) => collect(hits, 'read'),
  };
}

/**
 * Sends a batch and hands out the replies. Resolves with the error after which the connection is of no more use, such
 * as that of a primary that became a replica: only a new connection may find the new primary.
 */
async function runPipeline(connection: Redis, batch: Batch): Promise<Error | undefined> {
  const pipeline: ChainableCommander = connection.pipeline();
  for (const { key } of batch.reads.values()) {
    pipeline.get(key);
  }
  for (const { key, addend, ttlSeconds } of batch.adds.values()) {
    pipeline.incrby(key, addend);
    pipeline.expire(key, ttlSeconds);
  }
  const replies = (await pipeline.exec()) ?? [];
  let next = 0;
  for (const counter of batch.reads.values()) {
    settle(batch, counter, [replies[next]], storedCount);
    next += 1;
  }
  for (const counter of batch.adds.values()) {
    settle(batch, counter, [replies[next], replies[next + 1]], addedCount);
    next += 2;
  }
  return replies.map(([error]) => error).find((error) => error?.message.startsWith('READONLY')) ?? undefined;
}

type Reply = [error: Error | null, result: unknown] | undefined;

/** Settles a counter by the first of its replies, unless any of them is an error. */
function settle(
  batch: Batch,
  counter: BatchCounter,
  replies: readonly Reply[],
  countOf: (result: unknown) => number,
): void {
  const error = replies.map((reply) => reply?.[0]).find((one) => one instanceof Error);
  const count = countOf(replies[0]?.[1]);
  if (error !== undefined) {
    batch.fail(counter, toFailure(error));
  } else if (Number.isNaN(count)) {
    batch.fail(counter, backendFailure(`the reply for the counter ${counter.key} is not a number`));
  } else {
    batch.settle(counter, count);
  }
}

/** What INCRBY answered. */
function addedCount(result: unknown): number {
  return typeof result === 'number' ? result : Number.NaN;
}

/** What GET answered; a counter that does not exist stands at 0. */
function storedCount(result: unknown): number {
  if (result === null) {
    return 0;
  }
  return typeof result === 'string' && result !== '' ? Number(result) : Number.NaN;
}

function toFailure(error: unknown): Error {
  if (error instanceof AppError) {
    return error;
  }
  return backendFailure(error instanceof Error ? error.message : String(error), error);
}
