import { inTime } from '@tollgate/kit/time';
import type { Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';
import type { CounterHit } from '../counter-backend.ts';
import { createBatcher } from './batcher.ts';
import { type ConnectionPoolDeps, createConnectionPool } from './connection-pool.ts';
import type { PooledInstanceOptions, RedisInstance } from './instance.ts';
import { describeRedisAddress, type TcpRedisAddress } from './target.ts';

/**
 * Asks one sentinel where the primary is, connecting first where that has not been done.
 *
 * @throws Error with what the sentinel said, when it does not connect, does not answer in time or knows no such primary.
 */
async function askSentinel(sentinel: Redis, master: string, timeoutMs: number): Promise<TcpRedisAddress> {
  const failed = Promise.withResolvers<never>();
  // What a refused login says comes as an event; the commands only say that the connection is gone.
  sentinel.on('error', failed.reject);
  try {
    return await inTime(
      Promise.race([failed.promise, namedPrimary(sentinel, master)]),
      timeoutMs,
      () => new Error(`no answer within ${timeoutMs}ms`),
    );
  } finally {
    sentinel.off('error', failed.reject);
  }
}

async function namedPrimary(sentinel: Redis, master: string): Promise<TcpRedisAddress> {
  if (sentinel.status === 'wait') {
    await sentinel.connect();
  }
  const reply = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master);
  if (reply === null) {
    throw new Error('it knows no master of that name');
  }
  const [host, port]: readonly unknown[] = Array.isArray(reply) ? reply : [];
  if (typeof host !== 'string' || host === '' || !Number(port)) {
    throw new Error('its answer is not the address of a server');
  }
  return { kind: 'tcp', host, port: Number(port) };
}

/** Whom to ask for what. */
export interface PrimaryWatchOptions {
  /** Name under which the sentinels know the primary. */
  readonly master: string;
  readonly sentinels: readonly TcpRedisAddress[];
  /** How often a sentinel is asked once the primary is known, milliseconds. Default 1000. */
  readonly lookEveryMs?: number | undefined;
  /** Bound on connecting to a sentinel and hearing its answer, milliseconds. Default 1000. */
  readonly answerTimeoutMs?: number | undefined;
}

/** What a watch takes. */
interface PrimaryWatchDeps {
  /** Makes a client of a sentinel that is not yet connected, and that never connects again by itself. */
  readonly openSentinel: (address: TcpRedisAddress) => Redis;
  /** Told of the first primary, and whenever the sentinels name another one. */
  readonly onPrimary: (address: TcpRedisAddress) => void;
  /** Delay before the n-th attempt in a row while the primary was never known, milliseconds. */
  readonly startDelayMs: (attempt: number) => number;
  /** Told when no sentinel names a primary: each time until one did, later once for each outage. */
  readonly onError?: ((error: Error) => void) | undefined;
  /** Told when one does again. */
  readonly onRecovery?: (() => void) | undefined;
}

/** Knows where the primary is. */
interface PrimaryWatch {
  /** Resolves once a sentinel has named the primary, however long that takes; rejects when closed before. */
  start(): Promise<void>;
  /** There is reason to doubt what the sentinel said that is asked usually: asks the next one, now. */
  askAnother(): void;
  /** Why no sentinel named a primary the last time that none did. */
  lastError(): Error | undefined;
  /** Asks no more; a `start` that still waits rejects with `reason`. Idempotent. */
  close(reason: Error): void;
}

/** A sentinel answers from memory: one that takes longer is as good as gone, and the next one is asked. */
const defaultAnswerTimeoutMs = 1_000;

/**
 * How long after a failover counting goes on at the old primary at most. Sentinels leave that one writable for about ten
 * seconds, and nothing that is counted there lasts.
 */
const defaultLookEveryMs = 1_000;

/**
 * Asks the sentinels for the primary, again and again: one of them over a connection that stays, and the others in turn
 * when it fails. What is asked anew each time cannot be missed, as a message of the sentinels could.
 */
function createPrimaryWatch(deps: PrimaryWatchDeps, options: PrimaryWatchOptions): PrimaryWatch {
  const {
    master,
    sentinels,
    lookEveryMs = defaultLookEveryMs,
    answerTimeoutMs = defaultAnswerTimeoutMs,
  } = options;
  const known = Promise.withResolvers<void>();
  // A watch that was never started may be closed.
  known.promise.catch(() => undefined);
  let primary: TcpRedisAddress | undefined;
  /** Which of the sentinels is asked first. */
  let turn = 0;
  let sentinel: Redis | undefined;
  /** Looks in a row that came to nothing. */
  let failures = 0;
  let looking = false;
  let timer: NodeJS.Timeout | undefined;
  let lastError: Error | undefined;
  let closed = false;

  async function look(): Promise<void> {
    clearTimeout(timer);
    looking = true;
    try {
      const named = await askAll();
      closed || found(named);
    } catch (error) {
      closed || missed(error instanceof Error ? error : new Error(String(error)));
    }
    looking = false;
    if (!closed) {
      const delayMs = primary === undefined ? deps.startDelayMs(failures) : lookEveryMs;
      timer = setTimeout(look, delayMs);
    }
  }

  async function askAll(): Promise<TcpRedisAddress> {
    const said: string[] = [];
    for (const address of [...sentinels.slice(turn), ...sentinels.slice(0, turn)]) {
      try {
        return await askSentinel(sentinelAt(address), master, answerTimeoutMs);
      } catch (error) {
        said.push(`${describeRedisAddress(address)}: ${error instanceof Error ? error.message : error}`);
        leaveSentinel();
      }
      if (closed) {
        break;
      }
    }
    throw new Error(`no sentinel names the primary of ${master} (${said.join('; ')})`);
  }

  /** The connection that stays, or a new one. */
  function sentinelAt(address: TcpRedisAddress): Redis {
    if (!isConnected(sentinel)) {
      sentinel = deps.openSentinel(address);
      // ioredis prints errors that nobody listens to.
      sentinel.on('error', () => undefined);
    }
    return sentinel;
  }

  function leaveSentinel(): void {
    sentinel?.disconnect();
    sentinel = undefined;
    turn = (turn + 1) % sentinels.length;
  }

  function found(named: TcpRedisAddress): void {
    if (primary !== undefined && failures > 0) {
      deps.onRecovery?.();
    }
    failures = 0;
    if (named.host !== primary?.host || named.port !== primary.port) {
      primary = named;
      deps.onPrimary(named);
      known.resolve();
    }
  }

  function missed(error: Error): void {
    failures += 1;
    lastError = error;
    if (primary === undefined || failures === 1) {
      deps.onError?.(error);
    }
  }

  return {
    start() {
      void look();
      return known.promise;
    },
    askAnother() {
      if (!looking && !closed && primary !== undefined) {
        leaveSentinel();
        void look();
      }
    },
    lastError: () => lastError,
    close(reason) {
      closed = true;
      clearTimeout(timer);
      sentinel?.disconnect();
      known.reject(reason);
    },
  };
}

function isConnected(sentinel: Redis | undefined): sentinel is Redis {
  return sentinel?.status === 'ready' && sentinel.stream.writable;
}

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
