import { startDeadline } from '@tollgate/kit/time';
import { backendFailure } from '../../errors.ts';
import type { RedisConnection } from './connection.ts';
import { RedisReplyError } from './resp.ts';
import type { PoolMetrics } from './telemetry.ts';

export interface ConnectionPoolOptions {
  /** Maximum number of connections. They are opened on demand. */
  readonly size: number;
  /** Behavior when all connections are busy. @see KVSTORE_POOL_ON_EMPTY_BEHAVIOR */
  readonly onEmpty: 'create' | 'error' | 'wait';
  /** How long `create` and `error` wait for a connection first, milliseconds. */
  readonly onEmptyWaitMs: number;
  /**
   * Limit of connecting until the server answers, and of waiting for a connection, milliseconds.
   */
  readonly timeoutMs: number;
  readonly server?: string;
  /** Why there is no connection before the start. */
  readonly notStarted?: string;
}

export interface ConnectionPoolHooks {
  /** Creates a connection that is not open yet. */
  readonly open: () => RedisConnection;
  readonly metrics: Pick<PoolMetrics, 'opened' | 'closed' | 'exhausted'>;
  /**
   * Backoff before the n-th consecutive attempt to connect before the first success, milliseconds.
   */
  readonly startDelayMs: (attempt: number) => number;
  /** Delays after the first success: how much later than Redis the service recovers at most. */
  readonly reconnectDelayMs: (attempt: number) => number;
  /**
   * Called with true for the first connection, with false when all are lost and an attempt fails.
   */
  readonly onAvailable?: ((available: boolean) => void) | undefined;
  /** Called for each connection that is lost or retired; the next may lead to another server. */
  readonly onLost?: (() => void) | undefined;
  /** Called when an open connection has logged in again, or was refused and keeps its login. */
  readonly onLogin?: ((refusal: RedisReplyError | undefined) => void) | undefined;
  /** Called for every connection that fails. Few calls, because each is followed by a backoff. */
  readonly onError?: ((error: Error) => void) | undefined;
}

type Waiter = PromiseWithResolvers<RedisConnection>;

interface Member {
  /** Ends the attempt, until the connection is ready. */
  readonly deadline: NodeJS.Timeout;
  ready: boolean;
  /** It has completed a batch, so losing it is not a sign of an outage. */
  served: boolean;
}

/**
 * `create` opens at most `size` times this. More would not help a slow Redis, and use up its client
 * connections.
 */
const maxOverflow = 2;

/**
 * Connections to one Redis. A lost connection that had worked is replaced at once when it was the
 * last; after a failed attempt the next one is delayed by a backoff. While there is no connection,
 * `acquire` fails without waiting.
 */
export class ConnectionPool {
  readonly #hooks: ConnectionPoolHooks;
  readonly #options: ConnectionPoolOptions;
  readonly #server: string;
  readonly #members = new Map<RedisConnection, Member>();
  readonly #idle: RedisConnection[] = [];
  /**
   * Busy when they were retired; no longer members. Each is returned within the timeout of its
   * batch.
   */
  readonly #retired = new Set<RedisConnection>();
  /** First come, first served. */
  readonly #waiters = new Set<Waiter>();
  readonly #firstReady = Promise.withResolvers<void>();
  #readyCount = 0;
  #started: boolean = false;
  #everReady: boolean = false;
  #available: boolean = false;
  /** Consecutive failed attempts. */
  #failures = 0;
  #backoff: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #closed: boolean = false;

  constructor(hooks: ConnectionPoolHooks, options: ConnectionPoolOptions) {
    this.#hooks = hooks;
    this.#options = options;
    this.#server = options.server ?? 'Redis';
    // A pool that was never started may be closed.
    this.#firstReady.promise.catch(() => undefined);
  }

  /** Resolves once the server answers on a first connection, without a time limit. */
  start(): Promise<void> {
    this.#started = true;
    if (!this.#closed) {
      void this.#connect();
    }
    return this.#firstReady.promise;
  }

  /**
   * Resolves with a connection for exclusive use until `release` or `discard`. Rejects with a
   * store failure.
   */
  async acquire(): Promise<RedisConnection> {
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      // One that is not usable is about to report its loss.
      if (connection.isUsable) {
        return connection;
      }
    }
    if (this.#closed || !this.#started || (this.#readyCount === 0 && this.#failures > 0)) {
      throw this.#unavailable();
    }
    if (this.#members.size < this.#options.size && this.#backoff === undefined) {
      void this.#connect();
    }
    return this.#wait();
  }

  /** Returns a connection that has completed its batch. */
  release(connection: RedisConnection): void {
    const member = this.#members.get(connection);
    if (member === undefined) {
      this.#closeRetired(connection);
    } else if (connection.isUsable) {
      member.served = true;
      this.#failures = 0;
      this.#offer(connection);
    }
  }

  /** Closes a connection that failed; its pending replies are ignored. */
  discard(connection: RedisConnection, reason: Error): void {
    const member = this.#members.get(connection);
    if (member === undefined) {
      this.#closeRetired(connection);
    } else {
      member.served = false;
      this.#fail(connection, reason);
    }
  }

  /**
   * Retires all connections, because their server became unusable. Busy ones are closed when they
   * are returned.
   */
  retireAll(): void {
    for (const [connection, { ready }] of this.#members) {
      if (ready) {
        this.#retire(connection);
      }
    }
    this.#replaceLast();
  }

  /**
   * Logs in again on all connections, because the credentials have changed. Busy ones do so when
   * they are returned. Until then they have their old login, so no request fails.
   */
  reauthenticate(): void {
    for (const connection of this.#idle.splice(0)) this.#offer(connection);
  }

  /**
   * Switches to another server: retires all connections, cancels pending attempts and connects at
   * once.
   */
  renew(): void {
    if (this.#closed) {
      return;
    }
    this.#retireMembers();
    clearTimeout(this.#backoff);
    this.#backoff = undefined;
    this.#failures = 0;
    void this.#connect();
  }

  /**
   * Closes the pool gracefully: waiters fail with `reason`, busy connections are closed when they
   * are returned.
   */
  drain(reason: Error): void {
    this.#closed = true;
    clearTimeout(this.#backoff);
    this.#retireMembers();
    this.#failWaiters(reason);
    this.#firstReady.reject(reason);
  }

  /** Closes all connections; a pending `start` rejects with `reason`. Idempotent. */
  close(reason: Error = backendFailure('the connections to Redis are closed')): void {
    this.#closed = true;
    clearTimeout(this.#backoff);
    for (const connection of this.#retired) {
      this.#closeRetired(connection);
    }
    for (const connection of this.#members.keys()) {
      this.#remove(connection);
    }
    this.#failWaiters(reason);
    this.#firstReady.reject(reason);
  }

  lastError(): Error | undefined {
    return this.#lastError;
  }

  async #connect(): Promise<void> {
    const connection = this.#hooks.open();
    const { timeoutMs } = this.#options;
    const deadline = setTimeout(
      () => this.#fail(connection, new Error(`${this.#server} did not answer within ${timeoutMs}ms`)),
      timeoutMs,
    );
    this.#members.set(connection, { deadline, ready: false, served: false });
    try {
      await connection.connect((error) => this.#onLost(connection, error));
      // A server that is loading, or requires a password, says so here.
      await connection.call('PING');
      this.#admit(connection);
    } catch (error) {
      this.#fail(connection, error instanceof Error ? error : new Error(String(error)));
    }
  }

  #admit(connection: RedisConnection): void {
    const member = this.#members.get(connection);
    if (member === undefined) {
      return;
    }
    clearTimeout(member.deadline);
    member.ready = true;
    this.#readyCount += 1;
    this.#everReady = true;
    this.#hooks.metrics.opened();
    this.#firstReady.resolve();
    this.#setAvailable(true);
    this.#offer(connection);
  }

  #offer(connection: RedisConnection): void {
    const [first] = this.#waiters;
    if (connection.isLoginOutdated) {
      void this.#logInAgain(connection);
    } else if (first !== undefined) {
      this.#waiters.delete(first);
      first.resolve(connection);
    } else if (this.#members.size > this.#options.size) {
      this.#remove(connection);
    } else {
      this.#idle.push(connection);
    }
  }

  async #logInAgain(connection: RedisConnection): Promise<void> {
    const { timeoutMs } = this.#options;
    const clearDeadline = startDeadline(timeoutMs, () =>
      this.discard(connection, new Error(`${this.#server} did not answer within ${timeoutMs}ms`)),
    );
    try {
      await connection.logIn();
      this.#hooks.onLogin?.(undefined);
    } catch (error) {
      // Other errors are of a connection that is lost, which has been reported.
      if (!(error instanceof RedisReplyError)) return;
      this.#hooks.onLogin?.(error);
    } finally {
      clearDeadline();
    }
    if (this.#members.has(connection)) this.#offer(connection);
    else this.#closeRetired(connection);
  }

  #fail(connection: RedisConnection, error: Error): void {
    if (this.#members.has(connection)) {
      this.#lastError = error;
      this.#hooks.onError?.(error);
      this.#hooks.onLost?.();
      this.#remove(connection);
    }
  }

  #onLost(connection: RedisConnection, error: Error | undefined): void {
    this.#retired.delete(connection);
    // The end of a ready connection is not an error: servers close idle connections.
    if (error === undefined && this.#members.get(connection)?.ready === true) {
      this.#lastError = new Error('the server closed the connection');
      this.#hooks.onLost?.();
      this.#remove(connection);
    } else {
      this.#fail(connection, error ?? new Error('the server closed the connection before it answered'));
    }
  }

  #remove(connection: RedisConnection): void {
    const member = this.#forget(connection);
    connection.close();
    if (member !== undefined && !this.#closed) {
      member.served ? this.#replaceLast() : this.#backOff();
    }
  }

  #forget(connection: RedisConnection): Member | undefined {
    const member = this.#members.get(connection);
    if (member === undefined) {
      return undefined;
    }
    this.#members.delete(connection);
    clearTimeout(member.deadline);
    const index = this.#idle.indexOf(connection);
    if (index >= 0) {
      this.#idle.splice(index, 1);
    }
    if (member.ready) {
      this.#readyCount -= 1;
      this.#hooks.metrics.closed();
    }
    return member;
  }

  #retireMembers(): void {
    for (const connection of this.#members.keys()) {
      this.#retire(connection);
    }
  }

  #retire(connection: RedisConnection): void {
    this.#hooks.onLost?.();
    const isBusy = this.#members.get(connection)?.ready === true && !this.#idle.includes(connection);
    this.#forget(connection);
    isBusy ? this.#retired.add(connection) : connection.close();
  }

  #closeRetired(connection: RedisConnection): void {
    if (this.#retired.delete(connection)) {
      connection.close();
    }
  }

  #replaceLast(): void {
    if (this.#members.size === 0 && this.#backoff === undefined && !this.#closed) {
      void this.#connect();
    }
  }

  #backOff(): void {
    if (this.#backoff === undefined) {
      this.#failures += 1;
      const { startDelayMs, reconnectDelayMs } = this.#hooks;
      const delayMs = this.#everReady ? reconnectDelayMs(this.#failures) : startDelayMs(this.#failures);
      this.#backoff = setTimeout(() => this.#retry(), delayMs);
    }
    if (this.#readyCount === 0) {
      this.#setAvailable(false);
      this.#failWaiters(this.#unavailable());
    }
  }

  #retry(): void {
    this.#backoff = undefined;
    const { size } = this.#members;
    if (size === 0 || (this.#waiters.size > 0 && size < this.#options.size)) {
      void this.#connect();
    }
  }

  #setAvailable(available: boolean): void {
    if (available !== this.#available) {
      this.#available = available;
      this.#hooks.onAvailable?.(available);
    }
  }

  #unavailable(): Error {
    const reason = this.#lastError?.message ?? this.#options.notStarted ?? 'not connected yet';
    return backendFailure(`no connection to ${this.#server}: ${reason}`, this.#lastError);
  }

  async #wait(): Promise<RedisConnection> {
    const { size, onEmpty, onEmptyWaitMs, timeoutMs } = this.#options;
    const waiter: Waiter = Promise.withResolvers();
    this.#waiters.add(waiter);
    const clears = [startDeadline(timeoutMs, () => this.#onTimeout(waiter))];
    if (onEmpty !== 'wait' && this.#members.size >= size) {
      clears.push(startDeadline(onEmptyWaitMs, () => this.#onExhausted(waiter)));
    }
    try {
      return await waiter.promise;
    } finally {
      for (const clear of clears) clear();
    }
  }

  #onTimeout(waiter: Waiter): void {
    // Otherwise `#onExhausted` has counted it.
    if (this.#readyCount > 0 && this.#options.onEmpty === 'wait') this.#hooks.metrics.exhausted();
    this.#failWaiter(waiter, `timed out waiting for a connection to ${this.#server}`);
  }

  #onExhausted(waiter: Waiter): void {
    const { size, onEmpty } = this.#options;
    this.#hooks.metrics.exhausted();
    if (onEmpty === 'create') this.#overflow();
    else this.#failWaiter(waiter, `all ${size} connections to ${this.#server} are busy`);
  }

  #failWaiter(waiter: Waiter, reason: string): void {
    this.#waiters.delete(waiter);
    waiter.reject(backendFailure(reason));
  }

  #failWaiters(error: Error): void {
    for (const { reject } of this.#waiters) reject(error);
    this.#waiters.clear();
  }

  #overflow(): void {
    if (this.#members.size < this.#options.size * maxOverflow && this.#backoff === undefined) {
      void this.#connect();
    }
  }
}
