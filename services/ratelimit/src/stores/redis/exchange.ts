import { AppError, getErrorMessage } from '@tollgate/kit/errors';
import type { CounterResult } from '../../algorithms/algorithm.ts';
import { backendFailure } from '../../errors.ts';
import { type Batch, type BatchCounter, type BatchHit, splitRequests } from '../batch.ts';
import type { RedisConnection } from './connection.ts';
import type { Expiries } from './expiries.ts';
import { Pipeline, type RedisReply, RedisReplyError } from './resp.ts';
import { groupCalls, readCallReply, readRequestReplies, type ScriptCall, writeCall } from './script-calls.ts';

/**
 * Sends a hit to another server after this one refused it, or could not be reached (the refusal is
 * a store failure then). Resolves with the result there; undefined when the refusal is final.
 */
export type Redirect = (
  refusal: Error,
  method: 'take' | 'peek',
  hit: BatchHit,
) => Promise<CounterResult> | undefined;

/** A batch that was sent, with the replies. */
export interface Exchange {
  readonly replies: readonly RedisReply[];
  readonly calls: readonly ScriptCall[];
  /** Replies to `calls`, also when they were sent twice. */
  readonly callReplies: readonly RedisReply[];
}

/** Sends a batch in one write. */
export async function exchangeBatch(
  connection: RedisConnection,
  batch: Batch,
  { expiries, keysPerScript }: { readonly expiries: Expiries; readonly keysPerScript: number },
): Promise<Exchange> {
  const pipeline = new Pipeline();
  // ASKING applies to the next command only.
  for (const counter of batch.reads.values()) {
    if (counter.asking) pipeline.command('ASKING');
    counter.replyAt = pipeline.commandCount;
    pipeline.get(counter.key);
  }
  for (const counter of batch.adds.values()) {
    const { key, addend, ttlSeconds, asking } = counter;
    if (asking) pipeline.command('ASKING');
    counter.replyAt = pipeline.commandCount;
    pipeline.incrBy(key, addend);
    if (expiries.isSet(counter)) continue;
    if (asking) pipeline.command('ASKING');
    counter.expiryReplyAt = pipeline.commandCount;
    pipeline.expire(key, ttlSeconds);
  }
  if (batch.scripts.length === 0 && batch.requests.length === 0) {
    return { replies: await connection.send(pipeline), calls: [], callReplies: [] };
  }
  const calls = groupCalls(batch, keysPerScript);
  const positions = calls.map((call) => writeCall(pipeline, call, connection));
  const replies = await connection.send(pipeline);
  const callReplies = positions.map((position) => replies[position] ?? null);
  return { replies, calls, callReplies: await resendUnknown(connection, calls, callReplies) };
}

/**
 * Scripts are lost by SCRIPT FLUSH, or a restart behind a proxy: a call of an unknown script
 * changed nothing.
 */
async function resendUnknown(
  connection: RedisConnection,
  calls: readonly ScriptCall[],
  replies: readonly RedisReply[],
): Promise<readonly RedisReply[]> {
  if (!replies.some(isUnknownScript)) return replies;
  connection.knownScripts.clear();
  const pipeline = new Pipeline();
  const positions = calls.map((call, i) =>
    isUnknownScript(replies[i] ?? null) ? writeCall(pipeline, call, connection) : undefined,
  );
  const again = await connection.send(pipeline);
  return positions.map((position, i) => (position === undefined ? replies[i] : again[position]) ?? null);
}

/**
 * Settles the counters by their replies. Resolves once the redirected counters are settled, too;
 * with false when some are refused.
 */
export async function settleBatch(
  batch: Batch,
  { replies, calls, callReplies }: Exchange,
  { expiries, redirect }: { readonly expiries: Expiries; readonly redirect: Redirect },
): Promise<boolean> {
  const refused: Promise<boolean>[] = [];
  for (const counter of batch.reads.values()) {
    const reply = replies[counter.replyAt] ?? null;
    if (reply instanceof RedisReplyError) {
      refused.push(
        settleRefused(batch, counter, { refusal: reply, redirected: redirect(reply, 'peek', counter) }),
      );
    } else {
      settle(batch, counter, parseGetReply(reply));
    }
  }
  for (const counter of batch.adds.values()) {
    const reply = replies[counter.replyAt] ?? null;
    const expireReply = counter.expiryReplyAt === undefined ? undefined : replies[counter.expiryReplyAt];
    const count = typeof reply === 'number' ? reply : Number.NaN;
    if (reply instanceof RedisReplyError) {
      const redirected = redirect(reply, 'take', counter);
      refused.push(settleRefused(batch, counter, { refusal: reply, redirected, expiries }));
    } else if (expireReply instanceof RedisReplyError) {
      // The slot moved between the two commands: the hits are counted, only the expiry has to be
      // set on the other node.
      const redirected = redirect(expireReply, 'take', { ...counter, addend: 0 });
      refused.push(settleRefused(batch, counter, { refusal: expireReply, redirected, count, expiries }));
    } else {
      expiries.onReplies(counter, count, expireReply);
      settle(batch, counter, count);
    }
  }
  calls.forEach((call, i) => {
    const reply = callReplies[i] ?? null;
    if (call.requests.length > 0) {
      settleRequests(call, reply);
    } else if (reply instanceof RedisReplyError) {
      for (const counter of call.counters.flatMap(splitRequests)) {
        const redirected = redirect(reply, 'take', counter);
        refused.push(settleRefused(batch, counter, { refusal: reply, redirected }));
      }
    } else {
      settleCall(batch, call, reply);
    }
  });
  return refused.length === 0 || (await Promise.all(refused)).every(Boolean);
}

function settle(batch: Batch, counter: BatchCounter, count: number): void {
  if (Number.isNaN(count)) {
    batch.fail(counter, backendFailure(`the reply for the counter ${counter.key} is not a number`));
  } else {
    batch.settle(counter, count);
  }
}

function settleCall(batch: Batch, call: ScriptCall, reply: RedisReply): void {
  const taken = readCallReply(call, reply);
  call.counters.forEach((counter, i) => {
    const result = taken?.[i];
    if (result instanceof RedisReplyError) batch.fail(counter, failureOf(counter, result));
    else if (result === undefined) settle(batch, counter, typeof reply === 'number' ? reply : Number.NaN);
    else batch.settleTaken(counter, result);
  });
}

function settleRequests(call: ScriptCall, reply: RedisReply): void {
  const results = readRequestReplies(call, reply);
  const failure =
    reply instanceof RedisReplyError
      ? toBackendFailure(reply)
      : backendFailure('the reply for requests that are counted as a whole is not a list of numbers');
  call.requests.forEach(({ hits, resolve, reject }, i) => {
    const result = results?.[i];
    if (result !== undefined) resolve(result);
    else if (results === undefined) reject(failure);
    else
      reject(
        backendFailure(
          `not a counter (another type, or not an integer) at one of ${hits.map(({ key }) => key).join(', ')}`,
        ),
      );
  });
}

interface Refusal {
  readonly refusal: Error;
  /** The result at the other server; undefined when the refusal is final. */
  readonly redirected: Promise<CounterResult> | undefined;
  /** The count, when only the expiry was refused. */
  readonly count?: number;
  readonly expiries?: Expiries;
}

/** Settles a counter by the reply of the other server. Resolves with false when it fails. */
export async function settleRefused(batch: Batch, counter: BatchCounter, refused: Refusal): Promise<boolean> {
  const { refusal, redirected, count, expiries } = refused;
  try {
    if (redirected === undefined) throw refusal;
    const result = await redirected;
    if (count === undefined) batch.settleResult(counter, result);
    else settle(batch, counter, count);
    return true;
  } catch (error) {
    const isTouch = counter.first === undefined;
    if (isTouch || count !== undefined) expiries?.onUncertain(counter);
    batch.fail(counter, failureOf(counter, error));
    return false;
  }
}

/**
 * Errors of the whole server, which say nothing about the key or the command. Redis 6 has the error
 * of a command inside that of its script.
 */
const serverError =
  /^(?:ERR Error running script\b.*\W)?(READONLY|OOM|LOADING|MASTERDOWN|MISCONF|NOREPLICAS|BUSY)\b/s;

/** The errors of the whole server in the replies. */
export function findServerErrors({ replies, callReplies }: Exchange): readonly RedisReplyError[] {
  return [...replies, ...callReplies].filter(
    (reply): reply is RedisReplyError => reply instanceof RedisReplyError && serverError.test(reply.message),
  );
}

/** Only a new connection finds the primary after this one became a replica. */
export function isReadOnly({ message }: RedisReplyError): boolean {
  return serverError.exec(message)?.[1] === 'READONLY';
}

function isUnknownScript(reply: RedisReply): boolean {
  return reply instanceof RedisReplyError && reply.message.startsWith('NOSCRIPT');
}

/** A counter that does not exist is 0. */
function parseGetReply(reply: RedisReply): number {
  if (reply === null) {
    return 0;
  }
  return typeof reply === 'string' && reply !== '' ? Number(reply) : Number.NaN;
}

/** Errors of the value at one key, which do not name it. */
const keyError = /^(WRONGTYPE|ERR value is not an integer)\b/;

function failureOf({ key }: BatchCounter, error: unknown): Error {
  return error instanceof RedisReplyError && keyError.test(error.message)
    ? backendFailure(`${error.message}: ${key}`, error)
    : toBackendFailure(error);
}

/** The error as callers of a store expect it. */
export function toBackendFailure(error: unknown): Error {
  if (error instanceof AppError) {
    return error;
  }
  return backendFailure(getErrorMessage(error), error);
}
