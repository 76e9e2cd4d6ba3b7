import { AppError } from '@tollgate/kit/errors';
import type { ChainableCommander, Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';
import type { Batch, BatchCounter, BatchHit } from '../batch.ts';

/** What Redis replies to one command. */
export type Reply = [error: Error | null, result: unknown];

/**
 * Sends a hit to another server after this one refused it, or could not be reached (the refusal is
 * a backend failure then). Resolves with the count there; undefined when the refusal is final.
 */
export type Redirect = (refusal: Error, method: 'add' | 'read', hit: BatchHit) => Promise<number> | undefined;

/** Sends a batch as one pipeline. `settleBatch` reads the replies. */
export async function sendBatch(connection: Redis, batch: Batch): Promise<readonly Reply[]> {
  const pipeline: ChainableCommander = connection.pipeline();
  for (const { key, asking } of batch.reads.values()) {
    withAsking(pipeline, asking).get(key);
  }
  for (const { key, addend, ttlSeconds, asking } of batch.adds.values()) {
    withAsking(pipeline, asking).incrby(key, addend);
    withAsking(pipeline, asking).expire(key, ttlSeconds);
  }
  return (await pipeline.exec()) ?? [];
}

/** ASKING applies to the next command only. */
function withAsking(pipeline: ChainableCommander, asking: boolean): ChainableCommander {
  return asking ? pipeline.asking() : pipeline;
}

/**
 * Settles the counters by their replies. Resolves once the redirected counters are settled, too.
 */
export async function settleBatch(
  batch: Batch,
  replies: readonly Reply[],
  redirect: Redirect,
): Promise<void> {
  const redirected: (Promise<void> | undefined)[] = [];
  let taken = 0;
  const nextReply = ({ asking }: BatchCounter): Reply => {
    taken += asking ? 2 : 1;
    return replies[taken - 1] ?? [null, undefined];
  };
  for (const counter of batch.reads.values()) {
    const [refusal, result] = nextReply(counter);
    redirected.push(
      refusal === null
        ? settle(batch, counter, parseGetReply(result))
        : settleRefused(batch, counter, refusal, redirect(refusal, 'read', counter)),
    );
  }
  for (const counter of batch.adds.values()) {
    const [refusal, result] = nextReply(counter);
    const [expireRefusal] = nextReply(counter);
    if (refusal !== null) {
      redirected.push(settleRefused(batch, counter, refusal, redirect(refusal, 'add', counter)));
    } else if (expireRefusal !== null) {
      // The slot moved between the two commands: the hits are counted, only the expiry has to be
      // set on the other node.
      const extended = redirect(expireRefusal, 'add', { ...counter, addend: 0 });
      redirected.push(settleRefused(batch, counter, expireRefusal, extended, parseIncrByReply(result)));
    } else {
      settle(batch, counter, parseIncrByReply(result));
    }
  }
  await Promise.all(redirected);
}

/** Settles a batch that could not be sent: counters that are not redirected fail. */
export async function settleUnsent(batch: Batch, failure: Error, redirect: Redirect): Promise<void> {
  const settleOne = (counter: BatchCounter, method: 'add' | 'read'): Promise<void> =>
    settleRefused(batch, counter, failure, redirect(failure, method, counter));
  await Promise.all([
    ...[...batch.reads.values()].map((counter) => settleOne(counter, 'read')),
    ...[...batch.adds.values()].map((counter) => settleOne(counter, 'add')),
  ]);
}

function settle(batch: Batch, counter: BatchCounter, count: number): undefined {
  if (Number.isNaN(count)) {
    batch.fail(counter, backendFailure(`the reply for the counter ${counter.key} is not a number`));
  } else {
    batch.settle(counter, count);
  }
}

/** Settles a counter by the reply of the other server, or by `count` if that is known already. */
async function settleRefused(
  batch: Batch,
  counter: BatchCounter,
  refusal: Error,
  redirected: Promise<number> | undefined,
  count?: number,
): Promise<void> {
  if (redirected === undefined) {
    batch.fail(counter, toBackendFailure(refusal));
    return;
  }
  try {
    const redirectedCount = await redirected;
    settle(batch, counter, count ?? redirectedCount);
  } catch (error) {
    batch.fail(counter, toBackendFailure(error));
  }
}

/**
 * The reply of a primary that became a replica, if any: only a new connection may find the new
 * primary.
 */
export function findReadOnlyError(replies: readonly Reply[]): Error | undefined {
  return replies.map(([error]) => error).find((error) => error?.message.startsWith('READONLY')) ?? undefined;
}

function parseIncrByReply(result: unknown): number {
  return typeof result === 'number' ? result : Number.NaN;
}

/** A counter that does not exist is 0. */
function parseGetReply(result: unknown): number {
  if (result === null) {
    return 0;
  }
  return typeof result === 'string' && result !== '' ? Number(result) : Number.NaN;
}

/** The error as callers of a backend expect it. */
export function toBackendFailure(error: unknown): Error {
  if (error instanceof AppError) {
    return error;
  }
  return backendFailure(error instanceof Error ? error.message : String(error), error);
}
