import { type Attributes, type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Tracing } from '@tollgate/kit/telemetry';
import type { Sql, TransactionSql } from 'postgres';
import { Gauge, type Registry } from 'prom-client';

/**
 * Shows how many statements and transactions are sent or wait for a connection, beside how many
 * connections there may be. The library has no such number. Without a registry, nothing.
 */
export function measureDatabase(sql: Sql, registry: Registry | undefined): Sql {
  if (registry === undefined) return sql;
  const registers = [registry];
  const inFlight = new Gauge({
    name: 'auth_database_statements_in_flight',
    help: 'Statements and transactions that were sent to the database or wait for a connection.',
    registers,
  });
  new Gauge({
    name: 'auth_database_pool_connections',
    help: 'Most connections to the database.',
    registers,
  }).set(sql.options.max);

  function track<T extends PromiseLike<unknown>>(work: T): T {
    inFlight.inc();
    const end = (): void => inFlight.dec();
    work.then(end, end);
    return work;
  }

  return new Proxy(sql, {
    get(target, property) {
      if (property === 'unsafe') return (...args: Parameters<Sql['unsafe']>) => track(target.unsafe(...args));
      if (property === 'begin') return (...args: Parameters<Sql['begin']>) => track(target.begin(...args));
      return Reflect.get(target, property);
    },
  });
}

/** Statements are constants; a set of them that grows would be a mistake, and must not fill the memory. */
const maxStatements = 1_000;
/** Longer statements are cut off in spans. */
const maxTextLength = 2_048;

/**
 * Gives each statement and transaction of a request a span. Statements are recorded as they are written in the program, with `$1` in
 * the place of values, which are not recorded. Without tracing, nothing.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/db/postgresql/
 */
export function traceDatabase(sql: Sql, tracing: Tracing): Sql {
  if (!tracing.enabled) return sql;
  const { database, host, port } = sql.options;
  const common: Attributes = {
    'db.system.name': 'postgresql',
    'db.namespace': database,
    ...(host[0] !== undefined && { 'server.address': host[0] }),
    ...(port[0] !== undefined && { 'server.port': port[0] }),
  };
  const known = new Map<string, Statement>();

  function statementOf(text: string): Statement {
    const statement = known.get(text) ?? describe(text);
    if (known.size < maxStatements) known.set(text, statement);
    return statement;
  }

  /** Statements outside of requests, such as those of the clean-up, are not traced: each would be a trace of its own. */
  function begin({ name, attributes }: Statement): Span | undefined {
    if (tracing.activeSpan()?.isRecording() !== true) return undefined;
    return tracing.startSpan(name, { kind: SpanKind.CLIENT, attributes: { ...common, ...attributes } });
  }

  function follow<T extends PromiseLike<unknown>>(span: Span | undefined, work: T): T {
    if (span !== undefined)
      work.then(
        () => span.end(),
        (error: unknown) => fail(span, error),
      );
    return work;
  }

  function traced<T extends Sql | TransactionSql>(connection: T): T {
    return new Proxy(connection, {
      get(target, property) {
        if (property === 'unsafe')
          return (...args: Parameters<Sql['unsafe']>) =>
            follow(begin(statementOf(args[0])), target.unsafe(...args));
        if (property === 'begin' && 'begin' in target)
          return (work: (connection: TransactionSql) => unknown) => {
            const span = begin(transaction);
            const run = (): Promise<unknown> => target.begin((inner) => work(traced(inner)));
            return follow(span, span === undefined ? run() : tracing.withSpan(span, run));
          };
        return Reflect.get(target, property);
      },
    });
  }

  return traced(sql);
}

interface Statement {
  readonly name: string;
  readonly attributes: Attributes;
}

const transaction: Statement = { name: 'TRANSACTION', attributes: { 'db.operation.name': 'TRANSACTION' } };

/** Names a statement by what it does and the first table that it names. */
function describe(text: string): Statement {
  const operation = /\b(?:select|insert|update|delete|with)\b/i.exec(text)?.[0].toUpperCase() ?? 'STATEMENT';
  const table = /\b(?:from|into|update|join)\s+([\w."]+)/i.exec(text)?.[1];
  return {
    name: table === undefined ? operation : `${operation} ${table}`,
    attributes: {
      'db.operation.name': operation,
      ...(table !== undefined && { 'db.collection.name': table }),
      'db.query.text': text.trim().slice(0, maxTextLength),
    },
  };
}

/** The message of an error may quote values; its code does not. */
function fail(span: Span, error: unknown): void {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : undefined;
  span.setAttribute('error.type', code ?? (error instanceof Error ? error.name : 'unknown'));
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code)) span.setAttribute('db.response.status_code', code);
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
