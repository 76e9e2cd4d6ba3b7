import type { Json, JsonObject } from '@tollgate/kit/json';
import type { Logger } from '@tollgate/kit/logger';
import { inTime } from '@tollgate/kit/time';
import type { ParameterOrJSON, Sql, TransactionSql } from 'postgres';
import postgres from 'postgres';
import { QueueFull } from '../work-queue.ts';
import { type ParsedConnectionString, parseConnectionString } from './connection-string.ts';
import { FailoverPool } from './failover-pool.ts';
import { getCode, unavailableError } from './failures.ts';

export interface DatabaseOptions {
  readonly databaseUrl: string;
  /** Schema of all tables. */
  readonly dbNamespace: string;
  /** Maximum number of connections; 0 for {@link defaultPoolSize}. */
  readonly dbMaxPoolSize: number;
  /** If set, changes write events. */
  readonly eventWebhookUri?: string;
  /** If true, changes write events for the endpoints in the database. */
  readonly eventWebhooksEnabled?: boolean;
  /** Failovers are logged. */
  readonly logger?: Logger;
}

/**
 * PostgreSQL groups concurrent commits: with 20 connections a refresh takes 25 % less CPU than with
 * 10. Four replicas stay below PostgreSQL's default limit of 100.
 */
const defaultPoolSize = 20;
const connectTimeoutSeconds = 10;
/** The library's default backoff grows to 20 s. */
const maxBackoffSeconds = 1;
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

/**
 * Creates a pool, which connects on demand. Close it with {@link disconnect}. Statements and
 * transactions reject with `database_unavailable` while the database is away; see {@link
 * FailoverPool}. Tagged templates are for tests.
 */
export function connect(options: DatabaseOptions): Sql {
  const { databaseUrl, logger } = options;
  const connectionString = parseConnectionString(databaseUrl);
  const pool = new FailoverPool({
    open: (url) => openPool(url, connectionString.tls, options),
    connectionString,
    logger,
  });
  return new Proxy(pool.current, {
    apply: (_pool, _this, args: Parameters<Sql>) => Reflect.apply(pool.current, undefined, args),
    get(_pool, property) {
      if (property === 'unsafe')
        return (...args: Parameters<Sql['unsafe']>) => pool.run((current) => current.unsafe(...args));
      if (property === 'begin')
        return (...args: Parameters<Sql['begin']>) => pool.run((current) => current.begin(...args));
      if (property === 'end') return () => pool.close();
      return Reflect.get(pool.current, property);
    },
  });
}

function openPool(
  url: string,
  tls: ParsedConnectionString['tls'],
  { dbNamespace, dbMaxPoolSize, eventWebhookUri = '', eventWebhooksEnabled = false }: DatabaseOptions,
): Sql {
  const endpoints = [
    ...(eventWebhookUri === '' ? [] : ['settings']),
    ...(eventWebhooksEnabled ? ['api'] : []),
  ].join();
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
      // Read by triggers (migrations 0034 and 0042).
      ...(endpoints !== '' && { 'tollgate.events': 'on', 'tollgate.event_endpoints': endpoints }),
    },
  });
}

export async function disconnect(sql: Sql): Promise<void> {
  await sql.end();
}

function getBackoffSeconds(retries: number): number {
  return Math.min(2 ** retries / 100, maxBackoffSeconds);
}

/** Part of the stores of a context. */
export interface Transactions {
  /**
   * Runs `work` in a transaction, which is rolled back when it throws. `work` must use the stores
   * that it gets. Within a transaction, a further one is part of it.
   */
  transaction<T>(work: (store: this) => Promise<T>): Promise<T>;
}

/** A pool, or the connection of a transaction. */
export type Queryable = Sql | TransactionSql;

export function isPool(sql: Queryable): sql is Sql {
  return 'begin' in sql;
}

/** A row, not validated. */
type Row = Readonly<Record<string, unknown>>;

/** Text, number, boolean, date, `null`, a list of them, or an object for JSON. */
type Parameter = unknown;

/**
 * Runs a statement. `text` must be a constant, which is prepared once per connection; values go
 * into `parameters`.
 */
export async function query(
  sql: Queryable,
  text: string,
  parameters: readonly Parameter[],
): Promise<readonly Row[]> {
  // Parsed boundary: the server, not the library's type, determines the types of parameters.
  return await sql.unsafe(text, parameters as ParameterOrJSON<never>[], { prepare: true });
}

/** A way to run a statement. */
export type Query = typeof query;

/**
 * Runs a statement that is planned for the values of its parameters: the best index of a list
 * depends on them. Costs a round trip more than {@link query}.
 */
export const queryOnce: Query = async (sql, text, parameters) =>
  // Parsed boundary: the server, not the library's type, determines the types of parameters.
  await sql.unsafe(text, parameters as ParameterOrJSON<never>[], { prepare: false });

const statementTimedOut = '57014';

interface TimeLimit {
  readonly timeoutMs: number;
  readonly late: () => Error;
}

/** Runs a statement that may read a large table. Takes three more round trips. */
export function queryAtMost({ timeoutMs, late }: TimeLimit): Query {
  return async (sql, text, parameters) => {
    if (!isPool(sql)) return queryOnce(sql, text, parameters);
    return sql.begin(async (transaction) => {
      await query(transaction, `set local statement_timeout = ${timeoutMs}`, []);
      try {
        return await queryOnce(transaction, text, parameters);
      } catch (error) {
        throw getCode(error) === statementTimedOut ? late() : error;
      }
    });
  };
}

/**
 * Runs a statement without reading a table from its start to its end. Meant for conditions on JSON
 * with an index, whose evaluation the planner takes for free. Takes three more round trips.
 */
export const queryByIndex: Query = async (sql, text, parameters) => {
  if (!isPool(sql)) return queryOnce(sql, text, parameters);
  return sql.begin(async (transaction) => {
    await query(transaction, 'set local enable_seqscan = off', []);
    return queryOnce(transaction, text, parameters);
  });
};

/** Rows of a batched statement, which takes a few milliseconds for so many. */
export const maxBatchRows = 500;

interface BatchOptions<T, R> {
  /** Runs one statement. Returns the results in the order of the items. */
  readonly run: (items: readonly T[]) => Promise<readonly R[]>;
  /** Statements in flight. Each uses a connection of the pool. */
  readonly maxConcurrent: number;
  /** Limit of an item, from when it is added. Default: none. */
  readonly deadline?: { readonly timeoutMs: number; readonly late: () => Error };
}

interface QueuedItem<T, R> {
  readonly item: T;
  readonly result: PromiseWithResolvers<R>;
  /** The deadline has passed. */
  isLate: boolean;
}

/** Further items would wait longer than clients do. */
const maxQueued = 10_000;

/**
 * Runs one statement for many items: those added in the same turn of the event loop, or while the
 * maximum number of statements is in flight. The round trip and the work of PostgreSQL to start a
 * statement, and to commit, are then shared. With tracing, the span of a statement belongs to the
 * request that added its first item.
 */
export class Batch<T, R> {
  readonly #options: BatchOptions<T, R>;
  readonly #queue: QueuedItem<T, R>[] = [];
  #inFlight = 0;
  #scheduled: NodeJS.Immediate | undefined;

  constructor(options: BatchOptions<T, R>) {
    this.#options = options;
  }

  /** @throws AppError `database_unavailable` if too many items are waiting */
  async add(item: T): Promise<R> {
    if (this.#queue.length >= maxQueued) this.#dropLate();
    if (this.#queue.length >= maxQueued)
      throw unavailableError('unavailable', new QueueFull(`${maxQueued} items are waiting already`));
    const queued = { item, result: Promise.withResolvers<R>(), isLate: false };
    this.#queue.push(queued);
    this.#schedule();
    const { promise } = queued.result;
    const { deadline } = this.#options;
    if (deadline === undefined) return promise;
    return inTime(promise, deadline.timeoutMs, () => {
      queued.isLate = true;
      return deadline.late();
    });
  }

  /** Items are in the order of their deadlines. */
  #dropLate(): void {
    const first = this.#queue.findIndex(({ isLate }) => !isLate);
    this.#queue.splice(0, first === -1 ? this.#queue.length : first);
  }

  #schedule(): void {
    if (this.#queue.length === 0 || this.#inFlight >= this.#options.maxConcurrent) return;
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#dropLate();
      if (this.#queue.length === 0) return;
      void this.#run(this.#queue.splice(0, maxBatchRows));
      this.#schedule();
    });
  }

  /** Never rejects: an error rejects the items of the statement. */
  async #run(batch: readonly QueuedItem<T, R>[]): Promise<void> {
    this.#inFlight += 1;
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      for (const [index, { result }] of batch.entries()) {
        // The contract of `run`: as many results as items.
        result.resolve(results[index] as R);
      }
    } catch (error) {
      for (const { result } of batch) result.reject(error);
    } finally {
      this.#inFlight -= 1;
      this.#schedule();
    }
  }
}

/** @see https://www.postgresql.org/docs/18/errcodes-appendix.html */
const uniqueViolation = '23505';

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === uniqueViolation;
}

/** A `like` pattern for a substring. */
export function containing(text: string): string {
  return `%${startingWith(text)}`;
}

/** A `like` pattern for a prefix. */
export function startingWith(text: string): string {
  return `${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/**
 * A JSON column as an object. GoTrue's command line and imports by SQL leave other values in some,
 * such as JSON `null`; they count as empty. `jsonObject` is the same in SQL.
 */
export function toObject(value: Json): JsonObject {
  // Parsed boundary: `Array.isArray` does not narrow readonly arrays.
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
