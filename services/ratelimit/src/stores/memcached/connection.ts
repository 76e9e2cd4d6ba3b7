import { isAppError } from '@tollgate/kit/errors';
import { inTime, startDeadline } from '@tollgate/kit/time';
import type { MemcacheNode } from 'memcache';
import { backendFailure } from '../../errors.ts';
import type { StoreErrorReason, StoreStats } from '../../metrics/store-stats.ts';

export interface ConnectionHooks {
  /** Creates a driver that is not connected yet; called for every attempt. */
  readonly open: () => MemcacheNode;
  /**
   * Backoff before the next attempt, milliseconds; attempts count from 1 and restart after each
   * success.
   */
  readonly reconnectDelayMs: (attempt: number) => number;
  readonly onConnected: () => void;
  readonly onFailed: (error: Error) => void;
}

/** Uses a driver; `toFailure` converts an error of the driver into the one to report. */
export type Exchange = (driver: MemcacheNode, toFailure: (error: unknown) => Error) => Promise<void>;

/**
 * Limit of connecting, including TLS and a first answer. No request waits for it: without a
 * connection, requests fail open at once.
 */
const connectTimeoutMs = 5_000;

/** One connection to a memcached, which reconnects when it is lost. */
export class Connection {
  readonly #hooks: ConnectionHooks;
  readonly #timeoutMs: number;
  readonly #running = new Set<Promise<void>>();
  #driver: MemcacheNode | undefined;
  #connecting: MemcacheNode | undefined;
  #reconnect: NodeJS.Timeout | undefined;
  #closed: boolean = false;

  constructor(hooks: ConnectionHooks, timeoutMs: number) {
    this.#hooks = hooks;
    this.#timeoutMs = timeoutMs;
  }

  get isConnected(): boolean {
    return this.#driver !== undefined;
  }

  get load(): number {
    return this.#running.size;
  }

  /** Resolves when the first attempt to connect has succeeded or failed. */
  start(): Promise<void> {
    return this.#connect(1);
  }

  /**
   * Runs an exchange, which must not reject. One that exceeds the timeout closes the connection,
   * which fails all of its pending commands.
   */
  async run(exchange: Exchange, stats: StoreStats): Promise<void> {
    if (this.#driver === undefined) {
      throw new TypeError('an exchange needs a connection');
    }
    const done = runWithTimeout(this.#driver, exchange, { timeoutMs: this.#timeoutMs, stats });
    this.#running.add(done);
    await done;
    this.#running.delete(done);
  }

  /** Resolves when the running exchanges have ended; idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#reconnect);
    await this.#connecting?.disconnect();
    await Promise.all(this.#running);
    await this.#driver?.disconnect();
  }

  async #connect(attempt: number): Promise<void> {
    const driver = this.#hooks.open();
    const ended = Promise.withResolvers<never>();
    let failure: unknown;
    driver.on('error', (error) => {
      failure = error;
    });
    driver.on('close', () => {
      ended.reject(failure ?? new Error('the connection was closed at once'));
      this.#onClose(driver);
    });
    this.#connecting = driver;
    try {
      await inTime(
        // The driver does not settle an attempt that is closed.
        Promise.race([connectAndVerify(driver), ended.promise]),
        connectTimeoutMs,
        () => new Error(`no memcached answered within ${connectTimeoutMs}ms`),
      );
      if (this.#closed || !driver.isConnected()) {
        throw failure ?? new Error('the connection was closed at once');
      }
      this.#driver = driver;
      this.#hooks.onConnected();
    } catch (error) {
      await driver.disconnect();
      if (!this.#closed) {
        this.#hooks.onFailed(toError(error));
        this.#connectLater(attempt);
      }
    } finally {
      this.#connecting = undefined;
    }
  }

  #connectLater(attempt: number): void {
    this.#reconnect = setTimeout(
      () => void this.#connect(attempt + 1),
      this.#hooks.reconnectDelayMs(attempt),
    );
  }

  #onClose(driver: MemcacheNode): void {
    if (this.#driver === driver) {
      this.#driver = undefined;
      if (!this.#closed) this.#connectLater(1);
    }
  }
}

/**
 * A server at its connection limit accepts connections, too, so it has to answer a command first.
 */
async function connectAndVerify(driver: MemcacheNode): Promise<void> {
  await driver.connect();
  const answer: unknown = await driver.command('version');
  if (!String(answer).startsWith('VERSION')) {
    throw new Error('the server is not a memcached');
  }
}

async function runWithTimeout(
  driver: MemcacheNode,
  exchange: Exchange,
  { timeoutMs, stats }: { readonly timeoutMs: number; readonly stats: StoreStats },
): Promise<void> {
  let late: Error | undefined;
  let failure: StoreErrorReason | undefined;
  const begunMs = stats.begin();
  const clearDeadline = startDeadline(timeoutMs, () => {
    late = backendFailure(`memcached did not answer within ${timeoutMs}ms`);
    // Later answers would be taken for those of other commands.
    void driver.disconnect();
  });
  await exchange(driver, (error) => {
    failure = late === undefined ? 'lost' : 'timeout';
    return late ?? toFailure(error);
  });
  clearDeadline();
  stats.end(begunMs, failure);
}

function toFailure(error: unknown): Error {
  return isAppError(error) ? error : backendFailure(toError(error).message, error);
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
