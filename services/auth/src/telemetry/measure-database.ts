import type { Sql } from 'postgres';
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
