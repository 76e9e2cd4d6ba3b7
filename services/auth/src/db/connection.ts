import type { Sql } from 'postgres';
import postgres from 'postgres';
import { parseConnectionString } from './connection-string.ts';

export interface DatabaseOptions {
  readonly databaseUrl: string;
  /** Schema of all tables. */
  readonly dbNamespace: string;
  /** Maximum number of connections; 0 for {@link defaultPoolSize}. */
  readonly dbMaxPoolSize: number;
}

/**
 * PostgreSQL groups concurrent commits: with 20 connections a refresh takes 25 % less CPU than with
 * 10. Four replicas stay below PostgreSQL's default limit of 100.
 */
const defaultPoolSize = 20;
const connectTimeoutSeconds = 10;
/** The library's default backoff grows to 20 s. */
const maxBackoffSeconds = 1;
/** No requests are in flight when the pool is closed. */
const closeTimeoutSeconds = 1;
/** By then the client has closed the connection. */
const statementTimeoutMs = 15_000;

/**
 * Object ids of date, timestamp and timestamptz.
 *
 * @see https://www.postgresql.org/docs/current/catalog-pg-type.html
 */
const dateTypes = [1082, 1114, 1184];
/** JavaScript has no infinite dates: these are the limits of four-digit years. */
const infiniteDates: Readonly<Record<string, string>> = {
  infinity: '9999-12-31T23:59:59.999Z',
  '-infinity': '0000-01-01T00:00:00.000Z',
};
const dates = {
  to: 1184,
  from: dateTypes,
  serialize: (date: Date | string): string => (date instanceof Date ? date.toISOString() : date),
  parse: (text: string): Date => new Date(infiniteDates[text] ?? text),
};

/** Creates a pool, which connects on demand. Close it with {@link disconnect}. */
export function connect({ databaseUrl, dbNamespace, dbMaxPoolSize }: DatabaseOptions): Sql {
  const { url, tls } = parseConnectionString(databaseUrl);
  return postgres(url, {
    ssl: tls.use === 'never' ? false : tls.use === 'if offered' ? 'prefer' : tls.options,
    max: dbMaxPoolSize === 0 ? defaultPoolSize : dbMaxPoolSize,
    connect_timeout: connectTimeoutSeconds,
    backoff: getBackoffSeconds,
    onnotice: () => undefined,
    types: { date: dates },
    connection: {
      application_name: 'tollgate-auth',
      search_path: dbNamespace,
      // Two columns have no time zone; their values are UTC.
      TimeZone: 'UTC',
      statement_timeout: statementTimeoutMs,
    },
  });
}

/** The timeout is needed because the library may never report refused connections as closed. */
export async function disconnect(sql: Sql): Promise<void> {
  await sql.end({ timeout: closeTimeoutSeconds });
}

function getBackoffSeconds(retries: number): number {
  return Math.min(2 ** retries / 100, maxBackoffSeconds);
}

export interface DatabaseTarget {
  readonly databaseUrl: string;
  readonly dbNamespace: string;
}

/** Node's codes for hosts that are unreachable or not (yet) known. */
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
 * Transient SQLSTATEs: connection failures, too many connections, startup or shutdown in progress.
 *
 * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const transientStates = /^(?:08...|53300|57P0[123])$/;

/** Messages of the library that have no code. */
const transientMessages = /timeout expired|Connection terminated/;

/** Whether the database is temporarily unavailable. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = getCode(error);
  if (code === undefined) return transientMessages.test(error.message);
  return networkCodes.has(code) || transientStates.test(code);
}

/** Explains a failed migration to operators. The error itself is the cause. */
export function explainMigrationFailure(error: unknown, target: DatabaseTarget): Error {
  const because = error instanceof Error ? getMessage(error) : String(error);
  return new Error(`${getAdvice(error, target)}: ${because}`, { cause: error });
}

function getAdvice(error: unknown, { databaseUrl, dbNamespace }: DatabaseTarget): string {
  const { where, user, database } = parseTarget(databaseUrl);
  if (isUnavailable(error))
    return `PostgreSQL is not reachable ${where}: check that it is running and that DATABASE_URL is correct`;
  switch (getCode(error)) {
    case '28P01':
    case '28000':
      return `PostgreSQL ${where} rejected the user ${user} or the password of DATABASE_URL`;
    case '3D000':
      return `PostgreSQL ${where} has no database ${database}: create it, or change DATABASE_URL`;
    case '42501':
      return `the user ${user} is not allowed to change the schema ${dbNamespace} of database ${database}: make it the owner, or run tollgate-auth migrate as another user`;
    default:
      return `failed to migrate the schema ${dbNamespace} of database ${database} ${where}`;
  }
}

/** Without the password. */
export function describeDatabase({ databaseUrl }: Pick<DatabaseTarget, 'databaseUrl'>): string {
  const { where, database } = parseTarget(databaseUrl);
  return `database ${database} ${where}`;
}

function parseTarget(databaseUrl: string): { where: string; user: string; database: string } {
  // URLs with several hosts cannot be parsed.
  const url = URL.parse(databaseUrl);
  if (url === null) return { where: 'at DATABASE_URL', user: '', database: '' };
  const database = decode(url.pathname.slice(1)) || decode(url.username);
  return { where: `at ${url.host || 'the local socket'}`, user: decode(url.username), database };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** An AggregateError (several addresses of a host) has no message itself. */
function getMessage(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message;
  return error.errors.map((part) => (part instanceof Error ? part.message : String(part))).join('; ');
}

function getCode(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
