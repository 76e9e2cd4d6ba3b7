import { startDeadline } from '@tollgate/kit/time';
import type { Redis } from 'ioredis';
import { backendFailure } from '../../errors.ts';

/** What to do when all connections are busy: open one more, fail, or wait. @see KVSTORE_POOL_ON_EMPTY_BEHAVIOR */
type OnEmpty = 'create' | 'error' | 'wait';

/** Settings of a pool. */
export interface ConnectionPoolOptions {
  /** Connections kept at most. They are opened when there is work for them. */
  readonly size: number;
  readonly onEmpty: OnEmpty;
  /** How long `create` and `error` wait for a connection to become free first, milliseconds. */
  readonly onEmptyWaitMs: number;
  /** Bound on connecting until the server answers, and on waiting for a connection at all, milliseconds. */
  readonly timeoutMs: number;
  /** What errors call the server; default `Redis`. */
  readonly server?: string;
}

/** Is told of every connection, for the statistics. */
export interface PoolFigures {
  opened(): void;
  closed(): void;
  /** All connections were busy for longer than the pool waits for one. */
  exhausted(): void;
}

/** What a pool takes. */
export interface ConnectionPoolDeps {
  /** Makes a client that is not yet connected, and that never connects again by itself. */
  readonly open: () => Redis;
  readonly figures: PoolFigures;
  /** Delay before the n-th attempt in a row to connect while Redis was never there, milliseconds. */
  readonly startDelayMs: (attempt: number) => number;
  /** The same once it was: how much later than Redis the service is back at most. */
  readonly reconnectDelayMs: (attempt: number) => number;
  /** Told when the first connection is there, when none is left and none can be made, and when there is one again. */
  readonly onAvailable?: ((available: boolean) => void) | undefined;
  /** Told of every connection that failed; attempts are held off after each, so these are few. */
  readonly onError?: ((error: Error) => void) | undefined;
}

/** Connections to one Redis. */
export interface ConnectionPool {
  /** A connection to use alone until it is released. Rejects with a backend failure when there is none to be had. */
  acquire(): Promise<Redis>;
  /** Gives a connection back that has done its work. */
  release(connection: Redis): void;
  /** Gives a connection back that is of no more use; replies still to come on it reach nobody. */
  discard(connection: Redis, reason: Error): void;
  /**
   * Lends no connection again that was made so far: all lead to a server that has shown to be of no more use. Those at
   * work are closed once they are given back.
   */
  retireAll(): void;
  /** The next connections lead to another server: retires all, gives up attempts under way and makes one at once. */
  renew(): void;
  /**
   * Closes without cutting anybody off: who waits for a connection is failed with `reason`, those at work are closed once
   * they are given back.
   */
  drain(reason: Error): void;
  /** Resolves once a first connection is there and the server answers on it, however long that takes. */
  start(): Promise<void>;
  /** Closes all connections; a `start` that still waits rejects with `reason`. Idempotent. */
  close(reason?: Error): void;
  /** Why the last connection failed. */
  readonly lastError: () => Error | undefined;
}

interface Member {
  /** Until it is ready: ends the attempt. */
  readonly deadline: NodeJS.Timeout;
  ready: boolean;
  /** It has done work, so that losing it is no sign of trouble. */
  served: boolean;
}

interface Waiter {
  readonly give: (connection: Redis) => void;
  readonly fail: (error: Error) => void;
}

/**
 * `create` opens at most this many times the size of the pool. A Redis that slow is not helped by more, and would
 * run out of clients for everybody else.
 */
const maxOverflow = 2;

/**
 * Makes a pool. A lost connection that had worked is replaced at once where it was the last; after one that came to
 * nothing, the next attempt is held off, longer each time. While there is none, `acquire` fails without waiting.
 */
export function createConnectionPool(
  deps: ConnectionPoolDeps,
  options: ConnectionPoolOptions,
): ConnectionPool {
  const { figures } = deps;
  const { server = 'Redis' } = options;
  const members = new Map<Redis, Member>();
  const idle: Redis[] = [];
  /** Retired while at work; no members any more. Each is given back within the timeout of its batch. */
  const leaving = new Set<Redis>();
  const waiters: Waiter[] = [];
  const firstReady = Promise.withResolvers<void>();
  // A pool that was never started may be closed.
  firstReady.promise.catch(() => undefined);
  let readyCount = 0;
  let everReady = false;
  let available = false;
  /** Attempts in a row that came to nothing. */
  let failures = 0;
  let holdOff: NodeJS.Timeout | undefined;
  let lastError: Error | undefined;
  let closed = false;

  async function connectOneMore(): Promise<void> {
    const connection = deps.open();
    const deadline = setTimeout(
      () => fail(connection, new Error(`${server} did not answer within ${options.timeoutMs}ms`)),
      options.timeoutMs,
    );
    members.set(connection, { deadline, ready: false, served: false });
    // A refused SELECT comes as an event only, and must end the attempt: it would count in database 0.
    connection.on('error', (error: Error) => fail(connection, error));
    connection.on('end', () => ended(connection));
    try {
      await connection.connect();
      // A server that is still loading, or wants a password, says so here.
      await connection.ping();
      admit(connection);
    } catch (error) {
      fail(connection, error instanceof Error ? error : new Error(String(error)));
    }
  }

  function admit(connection: Redis): void {
    const member = members.get(connection);
    if (member === undefined) {
      return;
    }
    clearTimeout(member.deadline);
    member.ready = true;
    readyCount += 1;
    everReady = true;
    figures.opened();
    firstReady.resolve();
    announce(true);
    offer(connection);
  }

  function offer(connection: Redis): void {
    const waiter = waiters.shift();
    if (waiter !== undefined) {
      waiter.give(connection);
    } else if (members.size > options.size) {
      remove(connection);
    } else {
      idle.push(connection);
    }
  }

  function fail(connection: Redis, error: Error): void {
    if (members.has(connection)) {
      lastError = error;
      deps.onError?.(error);
      remove(connection);
    }
  }

  function ended(connection: Redis): void {
    leaving.delete(connection);
    // One that had been ready says nothing by its end: servers close connections that are idle.
    if (members.get(connection)?.ready === true) {
      lastError = new Error('the server closed the connection');
      remove(connection);
    } else {
      fail(connection, new Error('the server closed the connection before it answered'));
    }
  }

  function remove(connection: Redis): void {
    const member = leave(connection);
    connection.disconnect();
    if (member !== undefined && !closed) {
      member.served ? replaceLast() : holdOffNextAttempt();
    }
  }

  /** Ends a membership, without a thought to what comes after it. */
  function leave(connection: Redis): Member | undefined {
    const member = members.get(connection);
    if (member === undefined) {
      return undefined;
    }
    members.delete(connection);
    clearTimeout(member.deadline);
    const at = idle.indexOf(connection);
    if (at >= 0) {
      idle.splice(at, 1);
    }
    if (member.ready) {
      readyCount -= 1;
      figures.closed();
    }
    return member;
  }

  function retire(connection: Redis): void {
    const isAtWork = members.get(connection)?.ready === true && !idle.includes(connection);
    leave(connection);
    isAtWork ? leaving.add(connection) : connection.disconnect();
  }

  /** Closes a connection that was retired while at work. */
  function dismiss(connection: Redis): void {
    if (leaving.delete(connection)) {
      connection.disconnect();
    }
  }

  function replaceLast(): void {
    if (members.size === 0 && holdOff === undefined && !closed) {
      void connectOneMore();
    }
  }

  function holdOffNextAttempt(): void {
    if (holdOff === undefined) {
      failures += 1;
      const delayMs = everReady ? deps.reconnectDelayMs(failures) : deps.startDelayMs(failures);
      holdOff = setTimeout(tryAgain, delayMs);
    }
    if (readyCount === 0) {
      announce(false);
      failWaiters(unavailable());
    }
  }

  function tryAgain(): void {
    holdOff = undefined;
    if (members.size === 0 || (waiters.length > 0 && members.size < options.size)) {
      void connectOneMore();
    }
  }

  function announce(now: boolean): void {
    if (now !== available) {
      available = now;
      deps.onAvailable?.(now);
    }
  }

  function failWaiters(error: Error): void {
    for (const waiter of waiters.splice(0)) {
      waiter.fail(error);
    }
  }

  function unavailable(): Error {
    return backendFailure(
      `no connection to ${server}: ${lastError?.message ?? 'not connected yet'}`,
      lastError,
    );
  }

  function wait(): Promise<Redis> {
    return new Promise((resolve, reject) => {
      const deadlines: (() => void)[] = [];
      const settle = (): void => {
        for (const clear of deadlines) clear();
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
      deadlines.push(
        startDeadline(options.timeoutMs, () => {
          // Else the deadline below has counted it.
          if (readyCount > 0 && options.onEmpty === 'wait') figures.exhausted();
          waiter.fail(backendFailure(`timed out waiting for a connection to ${server}`));
        }),
      );
      if (options.onEmpty !== 'wait' && members.size >= options.size) {
        deadlines.push(
          startDeadline(options.onEmptyWaitMs, () => {
            figures.exhausted();
            options.onEmpty === 'create' ? overflow() : waiter.fail(exhausted());
          }),
        );
      }
    });
  }

  function overflow(): void {
    if (members.size < options.size * maxOverflow && holdOff === undefined) {
      void connectOneMore();
    }
  }

  function exhausted(): Error {
    return backendFailure(`all ${options.size} connections to ${server} are busy`);
  }

  return {
    lastError: () => lastError,
    async acquire() {
      for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
        // One that is not is about to tell of its end.
        if (isUsable(connection)) {
          return connection;
        }
      }
      if (closed || (readyCount === 0 && failures > 0)) {
        throw unavailable();
      }
      if (members.size < options.size && holdOff === undefined) {
        void connectOneMore();
      }
      return wait();
    },
    release(connection) {
      const member = members.get(connection);
      if (member === undefined) {
        dismiss(connection);
      } else if (isUsable(connection)) {
        member.served = true;
        failures = 0;
        offer(connection);
      }
    },
    discard(connection, reason) {
      const member = members.get(connection);
      if (member === undefined) {
        dismiss(connection);
      } else {
        member.served = false;
        fail(connection, reason);
      }
    },
    retireAll() {
      for (const [connection, { ready }] of members) {
        if (ready) {
          retire(connection);
        }
      }
      replaceLast();
    },
    renew() {
      if (closed) {
        return;
      }
      for (const connection of members.keys()) {
        retire(connection);
      }
      clearTimeout(holdOff);
      holdOff = undefined;
      failures = 0;
      void connectOneMore();
    },
    drain(reason) {
      closed = true;
      clearTimeout(holdOff);
      for (const connection of members.keys()) {
        retire(connection);
      }
      failWaiters(reason);
      firstReady.reject(reason);
    },
    start() {
      if (!closed) {
        void connectOneMore();
      }
      return firstReady.promise;
    },
    close(reason = backendFailure('the connections to Redis are closed')) {
      closed = true;
      clearTimeout(holdOff);
      for (const connection of leaving) {
        dismiss(connection);
      }
      for (const connection of members.keys()) {
        remove(connection);
      }
      failWaiters(reason);
      firstReady.reject(reason);
    },
  };
}

/** ioredis tells of a connection's end a little later than its socket knows. */
function isUsable(connection: Redis): boolean {
  return connection.status === 'ready' && connection.stream.writable;
}
