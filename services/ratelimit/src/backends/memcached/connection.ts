import { isAppError } from '@tollgate/kit/errors';
import { inTime, startDeadline } from '@tollgate/kit/time';
import type { MemcacheNode } from 'memcache';
import { backendFailure } from '../../errors.ts';

/** What a connection takes. */
export interface ServerConnectionDeps {
  /** Makes a driver that is not connected yet; called for every attempt. */
  readonly open: () => MemcacheNode;
  /** Pause before the next attempt to connect, milliseconds; attempts count from 1 and begin anew after each success. */
  readonly reconnectDelayMs: (attempt: number) => number;
  readonly onConnected: () => void;
  /** An attempt to connect came to nothing. */
  readonly onFailed: (error: Error) => void;
}

/** Works with a driver; `explain` turns an error of the driver into the one to tell. */
export type Exchange = (driver: MemcacheNode, explain: (error: unknown) => Error) => Promise<void>;

/** One connection to a memcached, made again whenever it is lost. */
export interface ServerConnection {
  readonly isConnected: () => boolean;
  /** Exchanges that are under way. */
  readonly busy: () => number;
  /**
   * Runs an exchange, which must not reject. One that takes longer than its time ends with the connection: every command
   * still without an answer then fails.
   */
  run(exchange: Exchange): Promise<void>;
  /** Resolves when the first attempt to connect has succeeded or failed. */
  start(): Promise<void>;
  /** Resolves when the exchanges that are under way have ended; idempotent. */
  close(): Promise<void>;
}

/**
 * Bound on connecting, TLS and a first answer included. Nobody waits for it: while there is no connection, hits are let through at once.
 */
const connectTimeoutMs = 5_000;

/** Makes a connection that connects when started. `timeoutMs` bounds each exchange. */
export function createServerConnection(deps: ServerConnectionDeps, timeoutMs: number): ServerConnection {
  const running = new Set<Promise<void>>();
  let driver: MemcacheNode | undefined;
  let opening: MemcacheNode | undefined;
  let next: NodeJS.Timeout | undefined;
  let closed = false;

  async function connect(attempt: number): Promise<void> {
    const attempted = deps.open();
    const ended = Promise.withResolvers<never>();
    let failure: unknown;
    attempted.on('error', (error) => {
      failure = error;
    });
    attempted.on('close', () => {
      ended.reject(failure ?? new Error('the connection was closed at once'));
      lost(attempted);
    });
    opening = attempted;
    try {
      await inTime(
        // The driver leaves open what becomes of an attempt that is closed.
        Promise.race([connectAndGreet(attempted), ended.promise]),
        connectTimeoutMs,
        () => new Error(`no memcached answered within ${connectTimeoutMs}ms`),
      );
      if (closed || !attempted.isConnected()) {
        throw failure ?? new Error('the connection was closed at once');
      }
      driver = attempted;
      deps.onConnected();
    } catch (error) {
      await attempted.disconnect();
      if (!closed) {
        deps.onFailed(asError(error));
        connectLater(attempt);
      }
    } finally {
      opening = undefined;
    }
  }

  function connectLater(attempt: number): void {
    next = setTimeout(() => void connect(attempt + 1), deps.reconnectDelayMs(attempt));
  }

  function lost(one: MemcacheNode): void {
    if (driver === one) {
      driver = undefined;
      if (!closed) connectLater(1);
    }
  }

  return {
    isConnected: () => driver !== undefined,
    busy: () => running.size,
    async run(exchange) {
      if (driver === undefined) {
        throw new TypeError('an exchange needs a connection');
      }
      const done = runInTime(driver, exchange, timeoutMs);
      running.add(done);
      await done;
      running.delete(done);
    },
    start: () => connect(1),
    async close() {
      closed = true;
      clearTimeout(next);
      await opening?.disconnect();
      await Promise.all(running);
      await driver?.disconnect();
    },
  };
}

/** A server that has no room for more connections takes them, too: it counts once it has said something sensible. */
async function connectAndGreet(driver: MemcacheNode): Promise<void> {
  await driver.connect();
  const answer: unknown = await driver.command('version');
  if (!String(answer).startsWith('VERSION')) {
    throw new Error('what answers there is no memcached');
  }
}

async function runInTime(driver: MemcacheNode, exchange: Exchange, timeoutMs: number): Promise<void> {
  let late: Error | undefined;
  const clearDeadline = startDeadline(timeoutMs, () => {
    late = backendFailure(`memcached did not answer within ${timeoutMs}ms`);
    // Answers that come later would be taken for those of other commands.
    void driver.disconnect();
  });
  await exchange(driver, (error) => late ?? asFailure(error));
  clearDeadline();
}

function asFailure(error: unknown): Error {
  return isAppError(error) ? error : backendFailure(asError(error).message, error);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
