import { resolve } from 'node:path';
import { startEmbeddedPostgres } from '@tollgate/embedded-postgres/embedded-postgres';
import { keptSecret } from './kept-secret.ts';

/** The DATABASE_URL that stands for the PostgreSQL that development mode starts. */
export const embeddedDatabaseUrl = 'postgres://embedded';

/** A database that was started along with the service. */
export interface DevelopmentDatabase {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the embedded PostgreSQL with its data in the development folder; undefined when DATABASE_URL names another one. */
export async function startDevelopmentDatabase(settings: {
  readonly databaseUrl: string;
  readonly developmentFolder: string;
}): Promise<DevelopmentDatabase | undefined> {
  if (settings.databaseUrl !== embeddedDatabaseUrl) return undefined;
  const folder = resolve(settings.developmentFolder);
  const password = await keptSecret(folder, 'database-password');
  const server = await startEmbeddedPostgres({ folder, password });
  return { url: server.url('postgres'), stop: server.stop };
}
