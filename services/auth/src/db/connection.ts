import type { Sql } from 'postgres';
import postgres from 'postgres';
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

/** Which database was tried. */
export interface TriedDatabase {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
}

/** Codes of Node for a host that does not answer, and a name that is not known (yet). */
const networkCodes: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/**
 * States of PostgreSQL that pass: connection failures, too many connections, a start or an end that is under way.
 *
 * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const passingStates = /^(?:08...|53300|57P0[123])$/;

/** What the library says without a code. */
const withoutCode = /timeout expired|Connection terminated/;

/** Does the error say that the database is not there at the moment? */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  if (code === undefined) return withoutCode.test(error.message);
  return networkCodes.has(code) || passingStates.test(code);
}

/** Says what an operator can do about a schema that could not be brought up to date. The error itself is the cause. */
export function explainStartFailure(error: unknown, tried: TriedDatabase): Error {
  const because = error instanceof Error ? messageOf(error) : String(error);
  return new Error(`${advice(error, tried)}: ${because}`, { cause: error });
}

function advice(error: unknown, { databaseUrl, dbNamespace }: TriedDatabase): string {
  const { where, user, database } = describe(databaseUrl);
  if (isAway(error)) return `no PostgreSQL answers ${where}. Is it running, and does DATABASE_URL name it`;
  switch (codeOf(error)) {
    case '28P01':
    case '28000':
      return `PostgreSQL ${where} refuses the user ${user} or the password of DATABASE_URL`;
    case '3D000':
      return `PostgreSQL ${where} has no database ${database}. Create it, or name another one in DATABASE_URL`;
    case '42501':
      return `the user ${user} may not change the schema ${dbNamespace} of database ${database}. Make them its owner, or let another user run tollgate-auth migrate`;
    default:
      return `the schema ${dbNamespace} of database ${database} ${where} could not be brought up to date`;
  }
}

/** Names a database, without the password of its connection string. */
export function describeDatabase({ databaseUrl }: Pick<TriedDatabase, 'databaseUrl'>): string {
  const { where, database } = describe(databaseUrl);
  return `database ${database} ${where}`;
}

/** What a connection string names, without its password. */
function describe(databaseUrl: string): { where: string; user: string; database: string } {
  // One that lists several hosts is none for this parser.
  const url = URL.parse(databaseUrl);
  if (url === null) return { where: 'where DATABASE_URL says', user: '', database: '' };
  const database = decoded(url.pathname.slice(1)) || decoded(url.username);
  return { where: `at ${url.host || 'the local socket'}`, user: decoded(url.username), database };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** An error for several addresses of one host says nothing itself. */
function messageOf(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map((part) => (part instanceof Error ? part.message : String(part))).join('; ');
}

function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
