import { getErrorMessage } from '@tollgate/kit/errors';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { Client } from 'pg';
import { openClient } from './connection-string.ts';
import { buildIndexes } from './indexes.ts';

interface IndexBuilderOptions {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
  readonly store: { missingIndexes(): Promise<readonly string[]> };
  readonly logger: Logger;
  /** Time between attempts, also while another replica makes them. */
  readonly retryMs?: number;
}

const connectTimeoutMs = 10_000;
const defaultRetryMs = 60_000;

/**
 * Makes the indexes that an existing database lacks, while the server works without them. One
 * replica does it, on a connection of its own; the others wait. A build that fails, for example
 * because the user is not the owner of the table, is tried again.
 */
export class IndexBuilder implements LifecycleComponent {
  readonly name = 'indexes';
  readonly #options: IndexBuilderOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: IndexBuilderOptions) {
    this.#options = options;
  }

  /** Does not wait: an index of a large table takes minutes. */
  start(): void {
    this.#running = this.#run();
  }

  /** PostgreSQL may complete the index in progress by itself; an invalid one is replaced. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, logger, retryMs = defaultRetryMs } = this.#options;
    const { signal } = this.#stopping;
    let isLogged = false;
    while (!signal.aborted) {
      try {
        const missing = await store.missingIndexes();
        if (missing.length === 0) return;
        if (!isLogged) logger.info({ indexes: missing }, 'making indexes in the background');
        isLogged = true;
        if (await this.#build()) return;
      } catch (error) {
        if (!signal.aborted)
          logger.warn(
            { problem: getErrorMessage(error) },
            'failed to make indexes, lists of users stay slow: tollgate-auth migrate as the owner of the tables makes them',
          );
      }
      await sleepFor(retryMs, { signal }).catch(() => undefined);
    }
  }

  /** Returns whether the indexes exist. */
  async #build(): Promise<boolean> {
    const { databaseUrl, dbNamespace, logger } = this.#options;
    const { signal } = this.#stopping;
    let client: Client | undefined;
    // Also ends a statement that is running.
    const close = (): void => void client?.end().catch(() => undefined);
    signal.addEventListener('abort', close);
    try {
      client = await openClient(
        databaseUrl,
        { connectionTimeoutMillis: connectTimeoutMs, application_name: 'tollgate-auth-indexes' },
        // Queries report a lost connection; an unhandled error event would end the process.
        (next) => next.on('error', () => undefined),
      );
      signal.throwIfAborted();
      return await buildIndexes(client, { schema: dbNamespace, concurrently: true, logger });
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  }
}
