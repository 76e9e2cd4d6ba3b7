import { inTime } from '@tollgate/kit/time';
import { describeRedisAddress, type TcpRedisAddress } from '../../config/redis-target.ts';
import { backendFailure } from '../../errors.ts';
import type { RedisConnection } from './connection.ts';
import { PooledInstance, type PooledInstanceHooks, type PooledInstanceOptions } from './instance.ts';
import { RedisReplyError } from './resp.ts';

export interface SentinelHooks extends Omit<PooledInstanceHooks, 'open'> {
  /** Creates a connection to the primary that is not open yet. */
  readonly openPrimary: (address: TcpRedisAddress) => RedisConnection;
  /** Opens a connection to a sentinel. */
  readonly openSentinel: (address: TcpRedisAddress) => RedisConnection;
  /** Called with the first primary, and with each later one. */
  readonly onPrimary?: ((address: TcpRedisAddress) => void) | undefined;
  /**
   * Called with an error when no sentinel names a primary, and without one when they do again.
   * Requests continue.
   */
  readonly onSentinels?: ((error: Error | undefined) => void) | undefined;
}

export interface SentinelOptions {
  /** Name of the primary at the sentinels. */
  readonly master: string;
  readonly sentinels: readonly TcpRedisAddress[];
  /** Poll interval once the primary is known, milliseconds. Default 1000. */
  readonly pollIntervalMs?: number | undefined;
  /** Limit of connecting to a sentinel and its reply, milliseconds. Default 1000. */
  readonly replyTimeoutMs?: number | undefined;
}

const noPrimary = 'no sentinel has named the primary yet';

/**
 * A Redis primary behind sentinels. All connections lead to the primary that they name. After a
 * failover, requests in flight end at the old primary, and later ones go to the new one.
 */
export class SentinelInstance extends PooledInstance {
  readonly #watch: PrimaryWatch;
  #primary: TcpRedisAddress | undefined;
  #moved = new AbortController();

  constructor(hooks: SentinelHooks, options: PooledInstanceOptions & SentinelOptions) {
    super(
      {
        ...hooks,
        open: () => hooks.openPrimary(this.#requirePrimary()),
        onError: (error) => {
          hooks.onError?.(error);
          this.#watch.switchSentinel();
        },
      },
      { ...options, notStarted: noPrimary },
    );
    this.#watch = new PrimaryWatch(
      {
        openSentinel: hooks.openSentinel,
        onPrimary: (address) => {
          const isFirst = this.#primary === undefined;
          this.#primary = address;
          hooks.onPrimary?.(address);
          if (!isFirst) {
            this.renew();
            this.#moved.abort();
            this.#moved = new AbortController();
          }
        },
        startDelayMs: hooks.startDelayMs,
        onError: (error) =>
          this.#primary === undefined ? hooks.onError?.(error) : hooks.onSentinels?.(error),
        onRecovery: () => hooks.onSentinels?.(undefined),
        onLogin: hooks.onLogin,
      },
      options,
    );
  }

  /** The old primary stays writable for about ten seconds. */
  get moved(): AbortSignal {
    return this.#moved.signal;
  }

  override async start(): Promise<void> {
    await this.#watch.start();
    await super.start();
  }

  override close(reason: Error = backendFailure('the connections to Redis are closed')): void {
    this.#watch.close(reason);
    super.close(reason);
  }

  override lastError(): Error | undefined {
    const watchError = this.#watch.lastError();
    return this.#primary === undefined ? watchError : (super.lastError() ?? watchError);
  }

  #requirePrimary(): TcpRedisAddress {
    if (this.#primary === undefined) {
      throw backendFailure(`no connection to Redis: ${noPrimary}`);
    }
    return this.#primary;
  }
}

/**
 * Sentinels answer from memory: one that takes longer is considered down, and the next one is
 * queried.
 */
const defaultReplyTimeoutMs = 1_000;

/**
 * Limits how long hits go to the old primary after a failover. Sentinels leave it writable for
 * about ten seconds, and those hits are lost.
 */
const defaultPollIntervalMs = 1_000;

interface PrimaryWatchHooks {
  readonly openSentinel: (address: TcpRedisAddress) => RedisConnection;
  /** Called with the first primary, and whenever the sentinels name another one. */
  readonly onPrimary: (address: TcpRedisAddress) => void;
  /**
   * Backoff before the n-th consecutive attempt while the primary was never known, milliseconds.
   */
  readonly startDelayMs: (attempt: number) => number;
  /**
   * Called when no sentinel names a primary: every time until the first success, later once per
   * outage.
   */
  readonly onError: (error: Error) => void;
  readonly onRecovery: () => void;
  /** @see ConnectionPoolHooks.onLogin */
  readonly onLogin?: ((refusal: RedisReplyError | undefined) => void) | undefined;
}

/**
 * Polls the sentinels for the primary, one over a kept connection and the others in turn when it
 * fails. Polling cannot miss a change, a subscription could.
 */
class PrimaryWatch {
  readonly #hooks: PrimaryWatchHooks;
  readonly #options: SentinelOptions;
  readonly #known = Promise.withResolvers<void>();
  #primary: TcpRedisAddress | undefined;
  /** Index of the sentinel that is queried first. */
  #first = 0;
  #sentinel: RedisConnection | undefined;
  /** Consecutive polls that failed. */
  #failures = 0;
  #polling: boolean = false;
  #timer: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #closed: boolean = false;

  constructor(hooks: PrimaryWatchHooks, options: SentinelOptions) {
    this.#hooks = hooks;
    this.#options = options;
    // A watch that was never started may be closed.
    this.#known.promise.catch(() => undefined);
  }

  /** Resolves once the primary is known, without a time limit; rejects when closed before. */
  start(): Promise<void> {
    void this.#poll();
    return this.#known.promise;
  }

  /** Polls the next sentinel now, because the answer of the current one is in doubt. */
  switchSentinel(): void {
    if (!this.#polling && !this.#closed && this.#primary !== undefined) {
      this.#dropSentinel();
      void this.#poll();
    }
  }

  /** The error of the last poll that failed. */
  lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Ends polling; a pending `start` rejects with `reason`. Idempotent. */
  close(reason: Error): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#sentinel?.close();
    this.#known.reject(reason);
  }

  async #poll(): Promise<void> {
    clearTimeout(this.#timer);
    this.#polling = true;
    try {
      const primary = await this.#queryAll();
      this.#closed || this.#onPrimary(primary);
    } catch (error) {
      this.#closed || this.#onFailure(error instanceof Error ? error : new Error(String(error)));
    }
    this.#polling = false;
    if (!this.#closed) {
      const { pollIntervalMs = defaultPollIntervalMs } = this.#options;
      const delayMs = this.#primary === undefined ? this.#hooks.startDelayMs(this.#failures) : pollIntervalMs;
      this.#timer = setTimeout(() => this.#poll(), delayMs);
    }
  }

  async #queryAll(): Promise<TcpRedisAddress> {
    const { master, sentinels, replyTimeoutMs = defaultReplyTimeoutMs } = this.#options;
    const failures: string[] = [];
    for (const address of [...sentinels.slice(this.#first), ...sentinels.slice(0, this.#first)]) {
      try {
        return await inTime(
          this.#getPrimary(this.#connect(address)),
          replyTimeoutMs,
          () => new Error(`no answer within ${replyTimeoutMs}ms`),
        );
      } catch (error) {
        failures.push(`${describeRedisAddress(address)}: ${error instanceof Error ? error.message : error}`);
        this.#dropSentinel();
      }
      if (this.#closed) {
        break;
      }
    }
    throw new Error(`no sentinel names the primary of ${master} (${failures.join('; ')})`);
  }

  async #getPrimary(sentinel: RedisConnection): Promise<TcpRedisAddress> {
    if (!sentinel.isUsable) await sentinel.connect();
    else if (sentinel.isLoginOutdated) await this.#logInAgain(sentinel);
    return await getPrimary(sentinel, this.#options.master);
  }

  async #logInAgain(sentinel: RedisConnection): Promise<void> {
    try {
      await sentinel.logIn();
      this.#hooks.onLogin?.(undefined);
    } catch (error) {
      if (!(error instanceof RedisReplyError)) throw error;
      this.#hooks.onLogin?.(error);
    }
  }

  /** The kept connection, or a new one. */
  #connect(address: TcpRedisAddress): RedisConnection {
    if (this.#sentinel?.isUsable !== true) {
      this.#sentinel = this.#hooks.openSentinel(address);
    }
    return this.#sentinel;
  }

  #dropSentinel(): void {
    this.#sentinel?.close();
    this.#sentinel = undefined;
    this.#first = (this.#first + 1) % this.#options.sentinels.length;
  }

  #onPrimary(primary: TcpRedisAddress): void {
    if (this.#primary !== undefined && this.#failures > 0) {
      this.#hooks.onRecovery();
    }
    this.#failures = 0;
    if (primary.host !== this.#primary?.host || primary.port !== this.#primary.port) {
      this.#primary = primary;
      this.#hooks.onPrimary(primary);
      this.#known.resolve();
    }
  }

  #onFailure(error: Error): void {
    this.#failures += 1;
    this.#lastError = error;
    if (this.#primary === undefined || this.#failures === 1) {
      this.#hooks.onError(error);
    }
  }
}

async function getPrimary(sentinel: RedisConnection, master: string): Promise<TcpRedisAddress> {
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
