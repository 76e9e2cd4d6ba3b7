import postgres, { type Sql } from 'postgres';
import { readConnectionString } from './connection-string.ts';

/** How the database is reached. */
export interface DatabaseOptions {
  readonly databaseUrl: string;
  /** Schema of all tables. */
  readonly dbNamespace: string;
  /** Most connections; 0 for {@link defaultPoolSize}. */
  readonly dbMaxPoolSize: number;
}

/**
 * Commits that wait together go to the disk together: with 20 connections a refresh cost a quarter less CPU than with 10. The default of
 * PostgreSQL is 100 for all who use it, which is enough for four replicas.
 */
const defaultPoolSize = 20;
const connectTimeoutSeconds = 10;
/** The library's own pauses grow to 20 s; a database that is back should be used at once. */
const longestPauseSeconds = 1;
/** Nobody waits for an answer any more when a pool is closed. */
const longestEndSeconds = 1;
/** A statement that takes longer is stuck; its client has gone away. */
const statementTimeoutMs = 15_000;

/** Object ids of date, timestamp and timestamptz. @see https://www.postgresql.org/docs/current/catalog-pg-type.html */
const dateTypes = [1082, 1114, 1184];
/** What PostgreSQL calls infinite is no date of JavaScript: these are as far away as a text with four digits for the year can say. */
const infiniteDates: Readonly<Record<string, string>> = {
  infinity: '9999-12-31T23:59:59.999Z',
  '-infinity': '0000-01-01T00:00:00.000Z',
};
const dates = {
  to: 1184,
  from: dateTypes,
  // What is text already is taken as it is.
  serialize: (date: Date | string): string => (date instanceof Date ? date.toISOString() : date),
  parse: (text: string): Date => new Date(infiniteDates[text] ?? text),
};

/** Opens a pool; connections are made when they are needed. Close it with {@link disconnect}. */
export function connect({ databaseUrl, dbNamespace, dbMaxPoolSize }: DatabaseOptions): Sql {
  const { url, tls } = readConnectionString(databaseUrl);
  return postgres(url, {
    ssl: tls.use === 'never' ? false : tls.use === 'if offered' ? 'prefer' : tls.options,
    max: dbMaxPoolSize === 0 ? defaultPoolSize : dbMaxPoolSize,
    connect_timeout: connectTimeoutSeconds,
    backoff: pauseSeconds,
    onnotice: () => undefined,
    types: { date: dates },
    connection: {
      application_name: 'tollgate-auth',
      search_path: dbNamespace,
      // Two columns have no time zone.
      TimeZone: 'UTC',
      statement_timeout: statementTimeoutMs,
    },
  });
}

/** Closes a pool once its statements have ended. Connections that were refused are sometimes never reported closed: they are given up. */
export async function disconnect(sql: Sql): Promise<void> {
  await sql.end({ timeout: longestEndSeconds });
}

function pauseSeconds(retries: number): number {
  return Math.min(2 ** retries / 100, longestPauseSeconds);
}
