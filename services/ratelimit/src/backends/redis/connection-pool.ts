import type { Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';

/** What to do when all connections are busy: open one more, fail, or wait. @see KVSTORE_POOL_ON_EMPTY_BEHAVIOR */
export type OnEmpty = 'create' | 'error' | 'wait';

/** Settings of a pool. */
export interface ConnectionPoolOptions {
  /** Connections kept at most. They are opened when there is work for them. */
  readonly size: number;
  readonly onEmpty: OnEmpty;
  /** How long `create` and `error` wait for a connection to become free first, milliseconds. */
  readonly onEmptyWaitMs: number;
  /** Bound on waiting for a connection at all, milliseconds. */
  readonly timeoutMs: number;
}

/** Is told of every connection, for the statistics. */
export interface PoolFigures {
  opened(): void;
  closed(): void;
}

/** What a pool takes. */
export interface ConnectionPoolDeps {
  /** Opens a client that is not yet connected; the pool decides whether a lost one connects again. */
  readonly open: (retry: () => boolean) => Redis;
  readonly figures: PoolFigures;
  /** Told when the first connection is there and when the last one is lost. */
  readonly onAvailable?: ((available: boolean) => void) | undefined;
  readonly onError?: ((error: Error) => void) | undefined;
}

/** Connections to one Redis. */
export interface ConnectionPool {
  /** A connection to use alone until it is released. Rejects with a backend failure when there is none to be had. */
  acquire(): Promise<Redis>;
  release(connection: Redis): void;
  /** Resolves once a first connection is there and the server answers on it, however long that takes. */
  start(): Promise<void>;
  close(): void;
}

interface Waiter {
  readonly give: (connection: Redis) => void;
  readonly fail: (error: Error) => void;
}

/** Makes a pool. Connections that are lost are replaced in the background; without any left, `acquire` fails at once. */
export function createConnectionPool(
  deps: ConnectionPoolDeps,
  options: ConnectionPoolOptions,
): ConnectionPool {
  const { figures } = deps;
  const open = new Set<Redis>();
  const ready = new Set<Redis>();
  const idle: Redis[] = [];
  const waiters: Waiter[] = [];
  let lastError: Error | undefined;
  let closed = false;
  const firstReady = Promise.withResolvers<void>();

  function offer(connection: Redis): void {
    const waiter = waiters.shift();
    if (waiter !== undefined) {
      waiter.give(connection);
    } else if (open.size > options.size) {
      connection.disconnect();
    } else {
      idle.push(connection);
    }
  }

  function lost(connection: Redis): void {
    const at = idle.indexOf(connection);
    if (at >= 0) {
      idle.splice(at, 1);
    }
    if (!ready.delete(connection)) {
      return;
    }
    figures.closed();
    if (ready.size === 0) {
      deps.onAvailable?.(false);
    }
  }

  function failWaitersWithoutHope(): void {
    if (ready.size > 0) {
      return;
    }
    for (const waiter of waiters.splice(0)) {
      waiter.fail(unavailable());
    }
  }

  function unavailable(): Error {
    return backendFailure(`no connection to Redis: ${lastError?.message ?? 'not connected yet'}`, lastError);
  }

  function add(): Redis {
    // One connection keeps trying for ever; the others are opened again when there is work for them.
    const connection = deps.open(() => !closed && open.size <= 1);
    open.add(connection);
    connection.on('ready', () => {
      lastError = undefined;
      firstReady.resolve();
      figures.opened();
      ready.add(connection);
      if (ready.size === 1) {
        deps.onAvailable?.(true);
      }
      offer(connection);
    });
    connection.on('error', (error: Error) => {
      lastError = error;
      deps.onError?.(error);
    });
    connection.on('close', () => {
      lost(connection);
      failWaitersWithoutHope();
    });
    connection.on('end', () => {
      open.delete(connection);
    });
    return connection;
  }

  function connectOneMore(): void {
    const connection = add();
    // Failures come as events as well, and those are heard.
    connection.connect().catch(() => undefined);
  }

  function wait(): Promise<Redis> {
    return new Promise((resolve, reject) => {
      const timers: NodeJS.Timeout[] = [];
      const settle = (): void => {
        timers.forEach(clearTimeout);
        const at = waiters.indexOf(waiter);
        if (at >= 0) {
          waiters.splice(at, 1);
        }
      };
      const waiter: Waiter = {
        give(connection) {
          settle();
          resolve(connection);
        },
        fail(error) {
          settle();
          reject(error);
        },
      };
      waiters.push(waiter);
      timers.push(
        setTimeout(
          () => waiter.fail(backendFailure('timed out waiting for a connection to Redis')),
          options.timeoutMs,
        ),
      );
      if (options.onEmpty !== 'wait' && open.size >= options.size) {
        timers.push(
          setTimeout(
            () => (options.onEmpty === 'create' ? connectOneMore() : waiter.fail(exhausted())),
            options.onEmptyWaitMs,
          ),
        );
      }
    });
  }

  function exhausted(): Error {
    return backendFailure(`all ${options.size} connections to Redis are busy`);
  }

  return {
    async acquire() {
      const connection = idle.pop();
      if (connection !== undefined) {
        return connection;
      }
      if (ready.size === 0) {
        throw unavailable();
      }
      if (open.size < options.size) {
        connectOneMore();
      }
      return wait();
    },
    release(connection) {
      if (ready.has(connection)) {
        offer(connection);
      }
    },
    start() {
      connectOneMore();
      return firstReady.promise;
    },
    close() {
      closed = true;
      for (const connection of open) {
        connection.disconnect();
      }
    },
  };
}
