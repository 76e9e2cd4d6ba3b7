import { backendFailure } from '../../errors.ts';
import type { BatchHit } from '../batch.ts';
import type { CounterBackend, Hit } from '../counter-backend.ts';
import { Batcher, type BatcherOptions, type Redirect } from './batcher.ts';
import type { RedisConnection } from './connection.ts';
import { ConnectionPool, type ConnectionPoolHooks, type ConnectionPoolOptions } from './connection-pool.ts';

/** A deployment of Redis: a single server, one behind sentinels, or a cluster. */
export interface RedisInstance {
  /** @see CounterBackend.add */
  add(hits: readonly Hit[]): Promise<readonly number[]>;
  /** @see CounterBackend.read */
  read(hits: readonly Hit[]): Promise<readonly number[]>;
  /** Resolves once counters can be added; rejects when closed before. */
  start(): Promise<void>;
  /** Closes all connections; a pending `start` rejects with `reason`. Idempotent. */
  close(reason?: Error): void;
  /** The error of the last failed attempt to connect. */
  lastError(): Error | undefined;
}

export interface PooledInstanceOptions extends ConnectionPoolOptions, BatcherOptions {}

/** A single server: all connections of the pool lead to it. */
export class PooledInstance implements RedisInstance {
  readonly #pool: ConnectionPool;
  readonly #batcher: Batcher;

  constructor(hooks: ConnectionPoolHooks, options: PooledInstanceOptions, redirect?: Redirect) {
    const open = (): RedisConnection => {
      this.#batcher.forgetExpiries();
      return hooks.open();
    };
    this.#pool = new ConnectionPool({ ...hooks, open }, options);
    this.#batcher = new Batcher(this.#pool, options, redirect);
  }

  add(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#batcher.add(hits);
  }

  read(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#batcher.read(hits);
  }

  start(): Promise<void> {
    return this.#pool.start();
  }

  /** Switches to another server. */
  renew(): void {
    this.#pool.renew();
  }

  /** Closes gracefully: batches in flight end, later ones fail with `reason`. */
  drain(reason: Error): void {
    this.#pool.drain(reason);
    this.#batcher.close(reason);
  }

  close(reason: Error = backendFailure('the connections to Redis are closed')): void {
    this.#pool.close(reason);
    this.#batcher.close(reason);
  }

  lastError(): Error | undefined {
    return this.#pool.lastError();
  }
}

export interface RedisBackendOptions {
  readonly main: RedisInstance;
  /** The instance for counters of seconds; absent when `main` has them. */
  readonly perSecond?: RedisInstance | undefined;
  /** How long `start` waits for the first connections, milliseconds; 0 sets no limit. */
  readonly startTimeoutMs: number;
  /** Appended to the error of a start that timed out. */
  readonly hint?: string | undefined;
  /** Called once the connections are closed. */
  readonly onClose?: (() => void) | undefined;
}

/**
 * Counters in Redis. Counters of seconds, which are many and short-lived, may have their own
 * instance.
 */
export class RedisBackend implements CounterBackend {
  readonly #options: RedisBackendOptions;
  readonly #instances: readonly RedisInstance[];

  constructor(options: RedisBackendOptions) {
    const { main, perSecond } = options;
    this.#options = options;
    this.#instances = perSecond === undefined ? [main] : [main, perSecond];
  }

  add(hits: readonly Hit[]): Promise<readonly number[]> {
    return this.#send('add', hits);
  }

  read(hits: readonly Hit[]): Promise<readonly number[]> {
    return this.#send('read', hits);
  }

  async start({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { startTimeoutMs } = this.#options;
    const stop = (): void => this.#closeAll(backendFailure('stopped while connecting to Redis'));
    const timer = startTimeoutMs === 0 ? undefined : setTimeout(() => this.#giveUp(), startTimeoutMs);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      await Promise.all(this.#instances.map((instance) => instance.start()));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    }
  }

  close(): Promise<void> {
    this.#closeAll();
    this.#options.onClose?.();
    return Promise.resolve();
  }

  #send(method: 'add' | 'read', hits: readonly Hit[]): Promise<readonly number[]> {
    const { main, perSecond } = this.#options;
    return perSecond === undefined ? main[method](hits) : sendToBoth(main, perSecond, method, hits);
  }

  #closeAll(reason?: Error): void {
    for (const instance of this.#instances) {
      instance.close(reason);
    }
  }

  #giveUp(): void {
    const { startTimeoutMs, hint } = this.#options;
    const cause = this.#instances
      .map((instance) => instance.lastError())
      .find((error) => error !== undefined);
    const reason = cause?.message ?? 'the first attempt is still pending (KVSTORE_TIMEOUT limits each)';
    const limit = `${startTimeoutMs}ms (KVSTORE_STARTUP_MAX_ELAPSED_TIME)`;
    const suffix = hint === undefined ? '' : ` (${hint})`;
    this.#closeAll(backendFailure(`no connection to Redis within ${limit}: ${reason}${suffix}`, cause));
  }
}

async function sendToBoth(
  main: RedisInstance,
  perSecond: RedisInstance,
  method: 'add' | 'read',
  hits: readonly Hit[],
): Promise<readonly number[]> {
  const isPerSecond = hits.map(({ unit }) => unit === 'second');
  const [mainCounts, perSecondCounts] = await Promise.all([
    main[method](hits.filter((_, i) => isPerSecond[i] !== true)),
    perSecond[method](hits.filter((_, i) => isPerSecond[i] === true)),
  ]);
  const next = { main: 0, perSecond: 0 };
  return isPerSecond.map((seconds) =>
    seconds ? (perSecondCounts[next.perSecond++] ?? 0) : (mainCounts[next.main++] ?? 0),
  );
}
