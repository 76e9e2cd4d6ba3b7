import { resolve } from 'node:path';
import { startEmbeddedPostgres } from '@tollgate/embedded-postgres/embedded-postgres';
import { keptSecret } from './environment.ts';
import { type FolderTaker, takeFolder } from './folder.ts';

/** The DATABASE_URL that stands for the PostgreSQL that development mode starts. */
export const embeddedDatabaseUrl = 'postgres://embedded';

/** A database that was started along with the service. */
export interface DevelopmentDatabase {
  readonly url: string;
  /** Resolves when it has ended although nobody stopped it. */
  readonly lost: Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the embedded PostgreSQL with its data in the development folder; undefined when DATABASE_URL names another one.
 *
 * @throws Error when another server uses the folder, or PostgreSQL does not start.
 */
export async function startDevelopmentDatabase(
  settings: { readonly databaseUrl: string; readonly developmentFolder: string },
  taker: FolderTaker,
): Promise<DevelopmentDatabase | undefined> {
  if (settings.databaseUrl !== embeddedDatabaseUrl) return undefined;
  const folder = resolve(settings.developmentFolder);
  // First: a PostgreSQL that runs on the folder is taken for one that was left behind, and ended.
  const giveBack = await takeFolder(folder, taker);
  try {
    const password = await keptSecret(folder, 'database-password');
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
        await giveBack();
      },
    };
  } catch (error) {
    await giveBack();
    throw error;
  }
}
