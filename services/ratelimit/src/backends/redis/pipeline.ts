import { AppError } from '@tollgate/kit/errors';
import type { ChainableCommander, Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';
import type { Batch, BatchCounter, BatchHit } from '../batch.ts';

/** What Redis answers to one command. */
export type Reply = [error: Error | null, result: unknown];

/**
 * Asks another server for a counter that this one has not counted: it refused to, or (the refusal is a backend failure
 * then) it was never asked. The answer is the count there; undefined when the refusal is final.
 */
export type AskElsewhere = (
  refusal: Error,
  method: 'add' | 'read',
  hit: BatchHit,
) => Promise<number> | undefined;

/** Sends a batch as one pipeline. What it answers is for `settleBatch`. */
export async function sendBatch(connection: Redis, batch: Batch): Promise<readonly Reply[]> {
  const pipeline: ChainableCommander = connection.pipeline();
  for (const { key, asking } of batch.reads.values()) {
    announce(pipeline, asking).get(key);
  }
  for (const { key, addend, ttlSeconds, asking } of batch.adds.values()) {
    announce(pipeline, asking).incrby(key, addend);
    announce(pipeline, asking).expire(key, ttlSeconds);
  }
  return (await pipeline.exec()) ?? [];
}

/** ASKING is good for the one command that follows. */
function announce(pipeline: ChainableCommander, asking: boolean): ChainableCommander {
  return asking ? pipeline.asking() : pipeline;
}

/** Hands out the replies. Resolves once the counters that had to be asked for elsewhere are settled, too. */
export async function settleBatch(
  batch: Batch,
  replies: readonly Reply[],
  askElsewhere: AskElsewhere,
): Promise<void> {
  const elsewhere: (Promise<void> | undefined)[] = [];
  let taken = 0;
  const nextReply = ({ asking }: BatchCounter): Reply => {
    taken += asking ? 2 : 1;
    return replies[taken - 1] ?? [null, undefined];
  };
  for (const counter of batch.reads.values()) {
    const [refusal, result] = nextReply(counter);
    elsewhere.push(
      refusal === null
        ? settle(batch, counter, storedCount(result))
        : settleRefused(batch, counter, refusal, askElsewhere(refusal, 'read', counter)),
    );
  }
  for (const counter of batch.adds.values()) {
    const [refusal, result] = nextReply(counter);
    const [expiryRefusal] = nextReply(counter);
    if (refusal !== null) {
      elsewhere.push(settleRefused(batch, counter, refusal, askElsewhere(refusal, 'add', counter)));
    } else if (expiryRefusal !== null) {
      // The counter went elsewhere between the two commands: it counted, and all that is missing there is its expiry.
      const extended = askElsewhere(expiryRefusal, 'add', { ...counter, addend: 0 });
      elsewhere.push(settleRefused(batch, counter, expiryRefusal, extended, addedCount(result)));
    } else {
      settle(batch, counter, addedCount(result));
    }
  }
  await Promise.all(elsewhere);
}

/** Settles a batch that could not be sent: what is asked for elsewhere by the answer from there, all else as failed. */
export async function settleUnsent(batch: Batch, failure: Error, askElsewhere: AskElsewhere): Promise<void> {
  const refused = (counter: BatchCounter, method: 'add' | 'read'): Promise<void> =>
    settleRefused(batch, counter, failure, askElsewhere(failure, method, counter));
  await Promise.all([
    ...[...batch.reads.values()].map((counter) => refused(counter, 'read')),
    ...[...batch.adds.values()].map((counter) => refused(counter, 'add')),
  ]);
}

function settle(batch: Batch, counter: BatchCounter, count: number): undefined {
  if (Number.isNaN(count)) {
    batch.fail(counter, backendFailure(`the reply for the counter ${counter.key} is not a number`));
  } else {
    batch.settle(counter, count);
  }
}

/** Settles a counter by the answer from elsewhere, or by `count` where that is known already. */
async function settleRefused(
  batch: Batch,
  counter: BatchCounter,
  refusal: Error,
  answer: Promise<number> | undefined,
  count?: number,
): Promise<void> {
  if (answer === undefined) {
    batch.fail(counter, toBackendFailure(refusal));
    return;
  }
  try {
    const there = await answer;
    settle(batch, counter, count ?? there);
  } catch (error) {
    batch.fail(counter, toBackendFailure(error));
  }
}

/** The reply of a primary that became a replica, if there is one: only a new connection may find the new primary. */
export function lostPrimary(replies: readonly Reply[]): Error | undefined {
  return replies.map(([error]) => error).find((error) => error?.message.startsWith('READONLY')) ?? undefined;
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

/** The error as callers of a backend know it. */
export function toBackendFailure(error: unknown): Error {
  if (error instanceof AppError) {
    return error;
  }
  return backendFailure(error instanceof Error ? error.message : String(error), error);
}
