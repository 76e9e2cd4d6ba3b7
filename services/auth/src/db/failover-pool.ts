import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow } from '@tollgate/kit/time';
import type { Sql } from 'postgres';
import { findWritableHost, type ParsedConnectionString } from './connection-string.ts';
import { classifyFailure, type DatabaseFailure, unavailableError } from './failures.ts';

interface FailoverPoolOptions {
  /** Creates a pool, which connects on demand. */
  readonly open: (url: string) => Sql;
  readonly connectionString: ParsedConnectionString;
  readonly logger?: Logger | undefined;
  /** Default 30 s: more than a statement may take (`statement_timeout`). */
  readonly maxSilenceMs?: number;
}

const defaultMaxSilenceMs = 30_000;
const watchEveryMs = 1_000;
/** No requests are in flight when the service stops. */
const closeTimeoutSeconds = 1;
/**
 * Statements in flight on a server that became read-only have this time: reads still succeed there.
 */
const retireTimeoutSeconds = 5;
/** A database that stays read-only must not get new connections for each statement. */
const retireEveryMs = 5_000;
/** Limits how often the pool is replaced during an outage. */
const renewEveryMs = 250;
/** Bounds the connections that are opened to look for a host while there is none. */
const chooseEveryMs = 500;

/**
 * A pool that is replaced when its connections are of no use any more:
 *
 * - The server became read-only, such as a primary that was demoted. Its connections stay open, so
 *   that every write would fail; new ones resolve the name of the host again.
 * - No statement is answered any more. TCP gives a connection to a lost host up after 15 minutes.
 * - A connection was lost. The library (3.4.9) may keep it in a state in which it never connects
 *   again: when it is lost while a statement waits to be written.
 *
 * With several hosts, statements wait until the one that accepts writes is known.
 */
export class FailoverPool {
  readonly #options: FailoverPoolOptions;
  readonly #retiring = new Set<Promise<void>>();
  readonly #watch: NodeJS.Timeout;
  #current: Sql;
  #url: string;
  #isChosen: boolean;
  /** Since a connection of the current pool was lost. */
  #isBroken = false;
  #choice: Promise<void> | undefined;
  /** Times are monotonic. */
  #noChoiceUntilMs = 0;
  #noRetirementUntilMs = 0;
  #noRenewalUntilMs = 0;
  #inFlight = 0;
  #lastAnswerMs = 0;

  constructor(options: FailoverPoolOptions) {
    const { urls } = options.connectionString;
    this.#options = options;
    [this.#url] = urls;
    this.#current = options.open(this.#url);
    this.#isChosen = urls.length === 1;
    this.#watch = setInterval(() => this.#retireSilent(), watchEveryMs).unref();
  }

  get current(): Sql {
    return this.#current;
  }

  /** Runs a statement or a transaction. @throws AppError `database_unavailable` */
  async run<T>(work: (pool: Sql) => PromiseLike<T>): Promise<T> {
    if (!this.#isChosen) await this.#choose();
    if (this.#isBroken) this.#renew();
    const pool = this.#current;
    if (this.#inFlight === 0) this.#lastAnswerMs = monotonicNow();
    this.#inFlight += 1;
    try {
      return await work(pool);
    } catch (error) {
      const failure = classifyFailure(error);
      if (failure === undefined) throw error;
      this.#react(failure, pool);
      throw unavailableError(failure, error);
    } finally {
      this.#inFlight -= 1;
      this.#lastAnswerMs = monotonicNow();
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#watch);
    // The timeout is needed because the library may never report refused connections as closed.
    await Promise.all([this.#current.end({ timeout: closeTimeoutSeconds }), ...this.#retiring]);
  }

  #react(failure: DatabaseFailure, pool: Sql): void {
    // A late error of a pool that was replaced already.
    if (pool !== this.#current) return;
    if (failure === 'disconnected') this.#isBroken = true;
    if (failure === 'read-only') this.#retire('replaced connections: the database is read-only');
    if (this.#options.connectionString.urls.length > 1) this.#isChosen = false;
  }

  #retireSilent(): void {
    const { maxSilenceMs = defaultMaxSilenceMs } = this.#options;
    if (this.#inFlight === 0 || monotonicNow() - this.#lastAnswerMs < maxSilenceMs) return;
    this.#retire('replaced connections: the database does not answer', 0);
    if (this.#options.connectionString.urls.length > 1) this.#isChosen = false;
  }

  #renew(): void {
    const nowMs = monotonicNow();
    if (nowMs < this.#noRenewalUntilMs) return;
    this.#noRenewalUntilMs = nowMs + renewEveryMs;
    this.#replace(this.#url, retireTimeoutSeconds);
  }

  /** Statements that wait for a connection of the old pool end with it. */
  #retire(message: string, timeoutSeconds = retireTimeoutSeconds): void {
    const nowMs = monotonicNow();
    if (nowMs < this.#noRetirementUntilMs) return;
    this.#noRetirementUntilMs = nowMs + retireEveryMs;
    this.#options.logger?.warn(message);
    this.#replace(this.#url, timeoutSeconds);
  }

  #replace(url: string, timeoutSeconds: number): void {
    const old = this.#current;
    this.#url = url;
    this.#isBroken = false;
    this.#current = this.#options.open(url);
    this.#lastAnswerMs = monotonicNow();
    const retiring = old.end({ timeout: timeoutSeconds }).finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
  }

  /** Concurrent statements share one search. */
  async #choose(): Promise<void> {
    if (this.#choice === undefined && monotonicNow() < this.#noChoiceUntilMs)
      throw unavailableError('unavailable', undefined);
    this.#choice ??= this.#findHost().finally(() => {
      this.#choice = undefined;
    });
    await this.#choice;
  }

  async #findHost(): Promise<void> {
    try {
      const url = await findWritableHost(this.#options.connectionString);
      if (url !== this.#url) {
        this.#replace(url, retireTimeoutSeconds);
        this.#options.logger?.info({ host: new URL(url).host }, 'using another host of DATABASE_URL');
      }
      this.#isChosen = true;
    } catch (error) {
      this.#noChoiceUntilMs = monotonicNow() + chooseEveryMs;
      throw unavailableError('unavailable', error);
    }
  }
}
