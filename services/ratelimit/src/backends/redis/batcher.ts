import type { ChainableCommander, Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';
import type { CounterHit } from '../../ports/counter-backend.ts';
import { type Batch, createBatch } from './batch.ts';
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

  function flush(): void {
    pool.acquire().then(
      (connection) => send(connection, takeBatch()),
      (error: Error) => takeBatch().failAll(error),
    );
  }

  function takeBatch(): Batch {
    const batch = collecting;
    collecting = createBatch();
    scheduled = false;
    return batch;
  }

  function send(connection: Redis, batch: Batch): void {
    const deadline = setTimeout(() => {
      batch.failAll(backendFailure(`Redis did not answer within ${options.timeoutMs}ms`));
      // What is still to come on this connection has nobody waiting for it.
      connection.disconnect(true);
    }, options.timeoutMs);
    runPipeline(connection, batch)
      .catch((error: Error) => batch.failAll(backendFailure(error.message, error)))
      .finally(() => {
        clearTimeout(deadline);
        pool.release(connection);
      });
  }

  function collect(ask: (batch: Batch) => Promise<readonly number[]>): Promise<readonly number[]> {
    if (collecting.hitCount >= maxWaitingHits) {
      return Promise.reject(backendFailure('too many requests are waiting for Redis'));
    }
    schedule();
    return ask(collecting);
  }

  return {
    add: (hits) => collect((batch) => batch.add(hits)),
    read: (hits) => collect((batch) => batch.read(hits)),
  };
}

async function runPipeline(connection: Redis, batch: Batch): Promise<void> {
  const pipeline: ChainableCommander = connection.pipeline();
  for (const { key } of batch.reads.values()) {
    pipeline.get(key);
  }
  for (const { key, addend, ttlSeconds } of batch.adds.values()) {
    pipeline.incrby(key, exactly(addend));
    pipeline.expire(key, ttlSeconds);
  }
  const replies = (await pipeline.exec()) ?? [];
  let next = 0;
  for (const counter of batch.reads.values()) {
    settle(batch, counter, [replies[next]]);
    next += 1;
  }
  for (const counter of batch.adds.values()) {
    settle(batch, counter, [replies[next], replies[next + 1]]);
    next += 2;
  }
}

type Reply = [error: Error | null, result: unknown] | undefined;

/** Settles a counter by the first of its replies, unless any of them is an error. */
function settle(batch: Batch, counter: Parameters<Batch['settle']>[0], replies: readonly Reply[]): void {
  const error = replies.map((reply) => reply?.[0]).find((one) => one instanceof Error);
  const after = Number(replies[0]?.[1] ?? 0);
  if (error !== undefined) {
    batch.fail(counter, backendFailure(error.message, error));
  } else if (Number.isNaN(after)) {
    batch.fail(counter, backendFailure(`the counter ${counter.key} holds something that is not a number`));
  } else {
    batch.settle(counter, after);
  }
}

/** Redis wants whole decimal digits; JavaScript would write large numbers as 1e+21. */
function exactly(addend: number): number | string {
  return Number.isSafeInteger(addend) ? addend : BigInt(addend).toString();
}
