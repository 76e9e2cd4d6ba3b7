import { startDeadline } from '@tollgate/kit/time';
import type { CounterResult } from '../../algorithms/algorithm.ts';
import { backendFailure } from '../../errors.ts';
import type { StoreStats } from '../../metrics/store-stats.ts';
import type { AllOrNone, ConditionalHit } from '../all-or-none.ts';
import { Batch, type BatchCounter, type BatchHit, splitRequests } from '../batch.ts';
import { CircuitBreaker, type CircuitBreakerOptions } from '../circuit-breaker.ts';
import type { Hit } from '../counter-store.ts';
import type { RedisConnection } from './connection.ts';
import { ConnectionPool, type ConnectionPoolHooks, type ConnectionPoolOptions } from './connection-pool.ts';
import {
  exchangeBatch,
  findServerErrors,
  isReadOnly,
  type Redirect,
  settleBatch,
  settleRefused,
  toBackendFailure,
} from './exchange.ts';
import { Expiries } from './expiries.ts';
import type { PoolMetrics } from './telemetry.ts';

/** A deployment of Redis: a single server, one behind sentinels, or a cluster. */
export interface RedisInstance {
  /** @see CounterStore.take */
  take(hits: readonly Hit[]): Promise<readonly CounterResult[]>;
  /** @see CounterStore.takeAllOrNone */
  takeAllOrNone?(hits: readonly ConditionalHit[]): Promise<AllOrNone>;
  /** @see CounterStore.peek */
  peek(hits: readonly Hit[]): Promise<readonly CounterResult[]>;
  /**
   * Connections, not open yet, to all primaries; the first leads to the one that has this key.
   *
   * @throws AppError `backend_failure` while no primary is known.
   */
  dial(key: string): readonly RedisConnection[];
  /** Logs in again on open connections, because the credentials have changed. */
  reauthenticate(): void;
  /** Aborts when another server has taken over; absent where connections are closed then. */
  readonly moved?: AbortSignal;
  /** Resolves once counters can be added; rejects when closed before. */
  start(): Promise<void>;
  /** Closes all connections; a pending `start` rejects with `reason`. Idempotent. */
  close(reason?: Error): void;
  /** The error of the last failed attempt to connect. */
  lastError(): Error | undefined;
}

export interface PooledInstanceOptions extends ConnectionPoolOptions {
  /** How long hits are collected, milliseconds; 0 sends them at the end of the event loop tick. */
  readonly windowMs: number;
  /** 1 where keys of one script may belong to different servers. */
  readonly keysPerScript?: number;
  /** Absent when KVSTORE_BREAKER_FAILURES is 0. */
  readonly breaker?: CircuitBreakerOptions | undefined;
}

export interface PooledInstanceHooks extends ConnectionPoolHooks {
  readonly metrics: PoolMetrics;
  /** Absent where every refusal is final. */
  readonly redirect?: Redirect | undefined;
  readonly onBreakerOpen?: ((error: Error, retryMs: number) => void) | undefined;
  readonly onBreakerClose?: (() => void) | undefined;
}

/**
 * Keys of one script. More would hardly cost less each, and other clients of Redis wait until it
 * ends: a quarter of a millisecond.
 */
const defaultKeysPerScript = 64;

/**
 * Hits that may wait while all connections are busy: half a second's worth at 100,000 decisions/s
 * with two descriptors. By then Envoy's timeout has long passed.
 */
const maxWaitingHits = 100_000;

/** Maximum length of the keys of waiting hits: clients choose the values in keys. */
const maxWaitingKeyChars = 64 * 1024 * 1024;

/** Time after a failed batch until counters without an expiry are touched, milliseconds. */
const repairDelayMs = 1_000;

/**
 * A single server: all connections of the pool lead to it. It collects the hits of all requests
 * within a tick (or window) and sends them as one pipeline. While no connection is free the batch
 * grows, so a slow Redis gets fewer and larger batches.
 */
export class PooledInstance implements RedisInstance {
  readonly #options: PooledInstanceOptions;
  readonly #server: string;
  readonly #open: () => RedisConnection;
  readonly #redirect: Redirect;
  readonly #stats: StoreStats;
  readonly #pool: ConnectionPool;
  readonly #breaker: CircuitBreaker | undefined;
  #expiries = new Expiries();
  #collecting = new Batch();
  #scheduled: boolean = false;
  #repairTimer: NodeJS.Timeout | undefined;
  #closed: boolean = false;

  constructor(hooks: PooledInstanceHooks, options: PooledInstanceOptions) {
    this.#options = options;
    this.#server = options.server ?? 'Redis';
    this.#open = hooks.open;
    this.#redirect = hooks.redirect ?? (() => undefined);
    this.#stats = hooks.metrics.exchanges;
    // EXPIRE is sent again with the next hit of each counter.
    const onLost = (): void => {
      this.#expiries = this.#expiries.forget();
    };
    this.#pool = new ConnectionPool({ ...hooks, onLost }, options);
    this.#breaker = options.breaker && createBreaker(options.breaker, hooks);
  }

  take(hits: readonly BatchHit[]): Promise<readonly CounterResult[]> {
    return this.#reserve(hits) ?? this.#collecting.join(hits, 'take');
  }

  takeAllOrNone(hits: readonly ConditionalHit[]): Promise<AllOrNone> {
    return this.#reserve(hits) ?? this.#collecting.takeAllOrNone(hits);
  }

  peek(hits: readonly BatchHit[]): Promise<readonly CounterResult[]> {
    return this.#reserve(hits) ?? this.#collecting.join(hits, 'peek');
  }

  dial(): readonly RedisConnection[] {
    return [this.#open()];
  }

  start(): Promise<void> {
    return this.#pool.start();
  }

  reauthenticate(): void {
    this.#pool.reauthenticate();
  }

  /** Switches to another server. */
  renew(): void {
    this.#pool.renew();
    this.#breaker?.reset();
  }

  /** Closes gracefully: batches in flight end, later ones fail with `reason`. */
  drain(reason: Error): void {
    this.#pool.drain(reason);
    this.#endRepairs(reason);
  }

  close(reason: Error = backendFailure('the connections to Redis are closed')): void {
    this.#pool.close(reason);
    this.#endRepairs(reason);
  }

  lastError(): Error | undefined {
    return this.#pool.lastError();
  }

  /** Counters without an expiry may still get one on another server that has them by now. */
  #endRepairs(reason: Error): void {
    this.#closed = true;
    this.#breaker?.retire();
    clearTimeout(this.#repairTimer);
    const batch = new Batch();
    this.#expiries.moveMissing(batch);
    void this.#settleUnsent(batch, toBackendFailure(reason));
  }

  /** Has the batch sent; a rejected promise when it is full, or the circuit breaker is open. */
  #reserve({ length }: { readonly length: number }): Promise<never> | undefined {
    if (length === 0) return undefined;
    const rejection = this.#breaker?.reject();
    if (rejection !== undefined) return Promise.reject(rejection);
    const { hitCount, keyChars } = this.#collecting;
    if (hitCount >= maxWaitingHits || keyChars >= maxWaitingKeyChars) {
      return Promise.reject(backendFailure(`too many requests are waiting for ${this.#server}`));
    }
    this.#schedule();
    return undefined;
  }

  #schedule(): void {
    if (this.#scheduled) {
      return;
    }
    this.#scheduled = true;
    if (this.#options.windowMs > 0) {
      setTimeout(() => this.#flush(), this.#options.windowMs);
    } else {
      setImmediate(() => this.#flush());
    }
  }

  async #flush(): Promise<void> {
    let connection: RedisConnection;
    try {
      connection = await this.#pool.acquire();
    } catch (error) {
      const failure = toBackendFailure(error);
      this.#breaker?.end(this.#breaker.begin(), failure);
      this.#stats.fail('unavailable');
      await this.#settleUnsent(this.#takeBatch(), failure);
      return;
    }
    const batch = this.#takeBatch();
    if (this.#repairTimer === undefined) this.#expiries.moveMissing(batch);
    const isSettled = await this.#send(connection, batch);
    this.#repair(isSettled ? 0 : repairDelayMs);
  }

  /** Has the counters without an expiry touched, if any: by the next batch, or after a pause. */
  #repair(delayMs: number): void {
    if (!this.#expiries.hasMissing || this.#closed || this.#repairTimer !== undefined) return;
    if (delayMs === 0) this.#schedule();
    else this.#repairTimer = setTimeout(() => this.#onRepairTimer(), delayMs).unref();
  }

  #onRepairTimer(): void {
    this.#repairTimer = undefined;
    this.#schedule();
  }

  #takeBatch(): Batch {
    const batch = this.#collecting;
    this.#collecting = new Batch();
    this.#scheduled = false;
    return batch;
  }

  /** Resolves with false when Redis did not answer, or refused hits. */
  async #send(connection: RedisConnection, batch: Batch): Promise<boolean> {
    let isBusy = true;
    const begun = this.#breaker?.begin();
    const begunMs = this.#stats.begin();
    const expiries = this.#expiries;
    const giveUp = (error: Error, reason: 'timeout' | 'lost'): void => {
      batch.failAll(error);
      if (isBusy) {
        isBusy = false;
        this.#breaker?.end(begun, error);
        this.#stats.end(begunMs, reason);
        for (const counter of batch.adds.values()) expiries.onUncertain(counter);
        this.#pool.discard(connection, error);
      }
    };
    const { timeoutMs } = this.#options;
    const clearDeadline = startDeadline(timeoutMs, () =>
      giveUp(backendFailure(`${this.#server} did not answer within ${timeoutMs}ms`), 'timeout'),
    );
    try {
      const keysPerScript = this.#options.keysPerScript ?? defaultKeysPerScript;
      const exchange = await exchangeBatch(connection, batch, { expiries, keysPerScript });
      isBusy = false;
      const refusals = findServerErrors(exchange);
      const [refusal] = refusals;
      this.#breaker?.end(begun, refusal);
      this.#stats.end(begunMs, refusal && 'refused');
      this.#release(connection, refusals.find(isReadOnly));
      return await settleBatch(batch, exchange, { expiries, redirect: this.#redirect });
    } catch (error) {
      giveUp(toBackendFailure(error), 'lost');
      return false;
    } finally {
      clearDeadline();
    }
  }

  /** Settles a batch that could not be sent: counters that are not redirected fail. */
  async #settleUnsent(batch: Batch, failure: Error): Promise<void> {
    for (const { reject } of batch.requests) reject(failure);
    const settleOne = (counter: BatchCounter, method: 'take' | 'peek'): Promise<boolean> =>
      settleRefused(batch, counter, {
        refusal: failure,
        redirected: this.#redirect(failure, method, counter),
      });
    await Promise.all([
      ...[...batch.reads.values()].map((counter) => settleOne(counter, 'peek')),
      ...[...batch.adds.values(), ...batch.scripts.flatMap(splitRequests)].map((counter) =>
        settleOne(counter, 'take'),
      ),
    ]);
    this.#repair(repairDelayMs);
  }

  #release(connection: RedisConnection, readOnly: Error | undefined): void {
    if (readOnly === undefined) {
      this.#pool.release(connection);
      return;
    }
    this.#pool.discard(connection, readOnly);
    // The others lead to the same server, and each would fail one request.
    this.#pool.retireAll();
  }
}

function createBreaker(
  options: CircuitBreakerOptions,
  { metrics, onBreakerOpen, onBreakerClose }: PooledInstanceHooks,
): CircuitBreaker {
  return new CircuitBreaker(options, {
    onOpen(error, retryMs) {
      metrics.breakerOpened();
      onBreakerOpen?.(error, retryMs);
    },
    onClose() {
      metrics.breakerClosed();
      onBreakerClose?.();
    },
    onReject: () => metrics.breakerRejected(),
  });
}
