import { backoffDelays } from '@tollgate/kit/backoff';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { Client, ClientConfig } from 'pg';
import type { DatabaseOptions } from '../db/connection.ts';
import { openClient } from '../db/connection-string.ts';
import type { ChangedIds } from '../db/state-reads.ts';

export interface IdentityListenerOptions extends Pick<DatabaseOptions, 'databaseUrl' | 'dbNamespace'> {
  /**
   * Called for each change, and with `all` after each (re)connect, because changes may have been
   * missed.
   */
  readonly onChange: (changed: ChangedIds) => void;
  readonly logger: Logger;
}

/** The triggers of the schema notify this channel. */
const channel = 'tollgate_identity';
const connectTimeoutMs = 5_000;
const queryTimeoutMs = 5_000;
/** Keeps idle connections alive in NAT gateways and firewalls. */
const keepAliveDelayMs = 10_000;
/** Limit of a graceful close. */
const closeTimeoutMs = 1_000;
/** The jitter keeps replicas from reconnecting at the same time. */
const backoff = { initialMs: 500, maxMs: 5_000, jitter: 0.5 };

const clientConfig: ClientConfig = {
  connectionTimeoutMillis: connectTimeoutMs,
  query_timeout: queryTimeoutMs,
  keepAlive: true,
  keepAliveInitialDelayMillis: keepAliveDelayMs,
  application_name: 'tollgate-auth-listen',
};

/**
 * Receives changes of users and sessions, which database triggers send. It has a connection of its
 * own, and reconnects when it is lost. Transaction poolers (pgbouncer) do not support LISTEN.
 *
 * @see https://www.postgresql.org/docs/current/sql-listen.html
 */
export class IdentityListener implements LifecycleComponent {
  readonly name = 'identity listener';
  readonly #options: IdentityListenerOptions;
  readonly #delayAfter = backoffDelays(backoff);
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #failures = 0;
  #isUp = false;

  constructor(options: IdentityListenerOptions) {
    this.#options = options;
  }

  /**
   * Does not wait for the connection: without it, changes take effect when cached states expire.
   */
  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  isUp(): boolean {
    return this.#isUp;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const error = await this.#listenUntilLost();
      if (signal.aborted) return;
      this.#failures += 1;
      // Logs an outage once.
      if (this.#failures === 1)
        this.#options.logger.warn({ err: error }, 'lost LISTEN connection, falling back to cache TTL');
      await sleepFor(this.#delayAfter(this.#failures), { signal }).catch(() => undefined);
    }
  }

  /** Returns why the connection was lost. */
  async #listenUntilLost(): Promise<unknown> {
    const { signal } = this.#stopping;
    const lost = Promise.withResolvers<unknown>();
    let client: Client | undefined;
    const prepare = (next: Client): void => {
      client = next;
      // A plaintext client may have replaced one with TLS, which ends then.
      const lose = (error: unknown): void => (client === next ? lost.resolve(error) : undefined);
      next.on('error', lose);
      next.on('end', () => lose(new Error('the connection was closed')));
      next.on('notification', ({ payload = '' }) => this.#receive(payload));
    };
    const abort = (): void => lost.resolve(undefined);
    signal.addEventListener('abort', abort);
    try {
      await Promise.race([this.#connect(prepare), lost.promise]);
      return await lost.promise;
    } catch (error) {
      return error;
    } finally {
      signal.removeEventListener('abort', abort);
      if (client !== undefined) await close(client);
      this.#isUp = false;
    }
  }

  async #connect(prepare: (client: Client) => void): Promise<void> {
    const { databaseUrl, onChange, logger } = this.#options;
    const client = await openClient(databaseUrl, clientConfig, prepare);
    await client.query(`listen ${channel}`);
    this.#isUp = true;
    if (this.#failures > 0) logger.info('restored LISTEN connection');
    else logger.debug('opened LISTEN connection');
    this.#failures = 0;
    onChange('all');
  }

  #receive(payload: string): void {
    const { dbNamespace, onChange } = this.#options;
    // Other schemas of the database use the same channel.
    if (!payload.startsWith(`${dbNamespace}:`)) return;
    const ids = payload.slice(dbNamespace.length + 1);
    onChange(ids === '*' ? 'all' : ids.split(','));
  }
}

async function close(client: Client): Promise<void> {
  const closed = new AbortController();
  const timeout = sleepFor(closeTimeoutMs, closed);
  await Promise.race([client.end(), timeout]).catch(() => undefined);
  closed.abort();
  await timeout.catch(() => undefined);
}
