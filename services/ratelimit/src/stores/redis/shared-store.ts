import { AppError, getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { inTime, sleepFor } from '@tollgate/kit/time';
import { backendFailure } from '../../errors.ts';
import type { SharedStore, Subscriber } from '../counter-store.ts';
import type { RedisConnection } from './connection.ts';
import type { Login } from './credentials/login.ts';
import type { RedisInstance } from './instance.ts';
import { Pipeline, type RedisReply, RedisReplyError } from './resp.ts';

/** Limit of connecting, and of each exchange: a step of SCAN takes milliseconds. */
const exchangeTimeoutMs = 5_000;

/** Keys that one step of SCAN looks at, so that Redis serves hits in between. */
const scanCount = 1_000;

/** A subscription that was cut off without a word is noticed after this time. */
const pingIntervalMs = 10_000;

/** Longer than any override. */
const entriesTtlSeconds = 32 * 24 * 60 * 60;

interface RedisSharedStoreOptions {
  readonly main: RedisInstance;
  /** All instances that have counters. */
  readonly instances: readonly RedisInstance[];
  /** CACHE_KEY_PREFIX. */
  readonly keyPrefix: string;
  /** Login of `main`. */
  readonly login: Login;
  readonly logger: Logger;
  readonly reconnectDelayMs: (attempt: number) => number;
}

/**
 * State that replicas share besides counters. Rarely used, so each operation has a connection of
 * its own, and hits never wait for one.
 */
export class RedisSharedStore implements SharedStore {
  readonly #options: RedisSharedStoreOptions;
  readonly #channel: string;
  /** A hash. */
  readonly #entriesKey: string;

  constructor(options: RedisSharedStoreOptions) {
    this.#options = options;
    this.#channel = `${options.keyPrefix}tollgate:changes`;
    this.#entriesKey = `${options.keyPrefix}tollgate:overrides`;
  }

  async deleteByPrefix(prefix: string): Promise<number> {
    const pattern = `${escapeGlob(prefix)}*`;
    const primaries = this.#options.instances.flatMap((instance) => instance.dial(prefix));
    const deletions = primaries.map((primary) =>
      withConnection(primary, () => deleteMatching(primary, pattern)),
    );
    // One may fail while others still delete, and callers announce the change afterwards.
    await Promise.allSettled(deletions);
    const deleted = await Promise.all(deletions);
    return deleted.reduce((sum, count) => sum + count, 0);
  }

  async listEntries(): Promise<ReadonlyMap<string, string>> {
    const reply = await this.#call(this.#entriesKey, 'HGETALL', this.#entriesKey);
    const texts: readonly unknown[] = Array.isArray(reply) ? reply : [];
    const entries = new Map<string, string>();
    for (let i = 0; i + 1 < texts.length; i += 2) entries.set(String(texts[i]), String(texts[i + 1]));
    return entries;
  }

  async getEntry(name: string): Promise<string | undefined> {
    const reply = await this.#call(this.#entriesKey, 'HGET', this.#entriesKey, name);
    return typeof reply === 'string' ? reply : undefined;
  }

  async countEntries(): Promise<number> {
    return Number(await this.#call(this.#entriesKey, 'HLEN', this.#entriesKey));
  }

  async setEntry(name: string, text: string): Promise<void> {
    await this.#call(this.#entriesKey, 'HSET', this.#entriesKey, name, text);
    await this.#call(this.#entriesKey, 'EXPIRE', this.#entriesKey, String(entriesTtlSeconds));
  }

  async deleteEntry(name: string): Promise<boolean> {
    return (await this.#call(this.#entriesKey, 'HDEL', this.#entriesKey, name)) === 1;
  }

  async publish(message: string): Promise<void> {
    await this.#call(this.#channel, 'PUBLISH', this.#channel, message);
  }

  subscribe(subscriber: Subscriber, signal: AbortSignal): Promise<void> {
    const tried = Promise.withResolvers<void>();
    void this.#follow(subscriber, signal, tried.resolve);
    return tried.promise;
  }

  /** Subscribes again after each loss, until the signal aborts. */
  async #follow(subscriber: Subscriber, signal: AbortSignal, onTried: () => void): Promise<void> {
    const { logger, reconnectDelayMs } = this.#options;
    const fields = { channel: this.#channel };
    let failures = 0;
    const onSubscribed = (): void => {
      if (failures > 0) logger.warn(fields, 'subscribed to changes of counters again');
      failures = 0;
      onTried();
    };
    while (!signal.aborted) {
      try {
        await this.#listen(subscriber, signal, onSubscribed);
      } catch (err) {
        failures += 1;
        if (failures === 1)
          logger.warn({ ...fields, err }, 'not subscribed to changes of counters, retrying');
      }
      onTried();
      await sleepFor(reconnectDelayMs(failures), { signal }).catch(() => undefined);
    }
  }

  /**
   * Resolves when the signal aborts, another server has taken over, or the credentials have
   * changed, because a subscribed connection cannot log in again; rejects when the subscription
   * fails or is lost.
   */
  async #listen(
    { onMessage, onGap }: Subscriber,
    signal: AbortSignal,
    onSubscribed: () => void,
  ): Promise<void> {
    const { moved } = this.#options.main;
    const connection = this.#dial(this.#channel);
    const lost = new AbortController();
    const outdated = new AbortController();
    const unfollow = this.#options.login.onChange(() => outdated.abort());
    const ending = AbortSignal.any([signal, outdated.signal, ...(moved ? [moved] : [])]);
    try {
      await withConnection(
        connection,
        async () => {
          await inTime(connection.subscribe(this.#channel, onMessage), exchangeTimeoutMs, noAnswer);
          // Only now, because later messages are not missed.
          onGap();
          onSubscribed();
          await keepAlive(connection, AbortSignal.any([ending, lost.signal]));
          if (!ending.aborted) throw backendFailure('the connection was lost');
        },
        () => lost.abort(),
      );
    } finally {
      unfollow();
    }
  }

  #dial(key: string): RedisConnection {
    const [connection] = this.#options.main.dial(key);
    if (connection === undefined) throw backendFailure('no primary of Redis is known');
    return connection;
  }

  async #call(key: string, ...words: readonly string[]): Promise<RedisReply> {
    const connection = this.#dial(key);
    return await withConnection(connection, () => call(connection, ...words));
  }
}

function noAnswer(): Error {
  return backendFailure(`Redis did not answer within ${exchangeTimeoutMs}ms`);
}

function call(connection: RedisConnection, ...words: readonly string[]): Promise<RedisReply> {
  return inTime(connection.call(...words), exchangeTimeoutMs, noAnswer);
}

/** @throws AppError `backend_failure`. */
async function withConnection<T>(
  connection: RedisConnection,
  run: () => Promise<T>,
  onLost: () => void = () => undefined,
): Promise<T> {
  try {
    await inTime(connection.connect(onLost), exchangeTimeoutMs, noAnswer);
    return await run();
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw backendFailure(getErrorMessage(error), error);
  } finally {
    connection.close();
  }
}

/** Resolves when the signal aborts; rejects when Redis does not answer. */
async function keepAlive(connection: RedisConnection, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleepFor(pingIntervalMs, { signal }).catch(() => undefined);
    if (!signal.aborted) await call(connection, 'PING');
  }
}

async function deleteMatching(connection: RedisConnection, pattern: string): Promise<number> {
  let deleted = 0;
  let cursor = '0';
  do {
    const reply = await call(connection, 'SCAN', cursor, 'MATCH', pattern, 'COUNT', String(scanCount));
    const [next, keys]: readonly unknown[] = Array.isArray(reply) ? reply : [];
    if (typeof next !== 'string' || !Array.isArray(keys)) {
      throw backendFailure('the reply of Redis to SCAN is invalid');
    }
    deleted += await deleteKeys(connection, keys.map(String));
    cursor = next;
  } while (cursor !== '0');
  return deleted;
}

/** One command each: in a cluster, keys of one command must have the same slot. */
async function deleteKeys(connection: RedisConnection, keys: readonly string[]): Promise<number> {
  if (keys.length === 0) return 0;
  const pipeline = new Pipeline();
  for (const key of keys) pipeline.command('UNLINK', key);
  let deleted = 0;
  for (const reply of await inTime(connection.send(pipeline), exchangeTimeoutMs, noAnswer)) {
    if (reply instanceof RedisReplyError) throw reply;
    deleted += Number(reply);
  }
  return deleted;
}

/** @see https://redis.io/docs/latest/commands/keys/ */
function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]^-]/g, '\\$&');
}
