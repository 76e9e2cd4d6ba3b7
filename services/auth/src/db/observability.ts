import { type Attributes, type Span, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Tracing } from '@tollgate/kit/telemetry';
import type { Sql, TransactionSql } from 'postgres';
import { Gauge, type Registry } from 'prom-client';

/**
 * Exports the number of statements and transactions in flight, which the library does not report,
 * and the size of the pool. Without a registry, returns `sql`.
 */
export function measureDatabase(sql: Sql, registry: Registry | undefined): Sql {
  if (registry === undefined) return sql;
  const registers = [registry];
  const inFlight = new Gauge({
    name: 'auth_database_statements_in_flight',
    help: 'Statements and transactions that are running or waiting for a connection.',
    registers,
  });
  new Gauge({
    name: 'auth_database_pool_connections',
    help: 'Maximum number of connections to the database.',
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

/** Statements are constants. The limit protects the memory if one is not. */
const maxStatements = 1_000;
/** Longer statements are truncated in spans. */
const maxTextLength = 2_048;

/**
 * Records statements and transactions of requests as spans, with `$1` instead of values. Without
 * tracing, returns `sql`.
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

  function getStatement(text: string): Statement {
    const statement = known.get(text) ?? describe(text);
    if (known.size < maxStatements) known.set(text, statement);
    return statement;
  }

  /**
   * Statements outside of requests, such as the clean-up, are not traced: each would be a trace.
   */
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
            follow(begin(getStatement(args[0])), target.unsafe(...args));
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

/** Names a statement by its operation and its first table. */
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

/** Records the code only: the message may have values. */
function fail(span: Span, error: unknown): void {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : undefined;
  span.setAttribute('error.type', code ?? (error instanceof Error ? error.name : 'unknown'));
  if (code !== undefined && /^[0-9A-Z]{5}$/.test(code)) span.setAttribute('db.response.status_code', code);
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
