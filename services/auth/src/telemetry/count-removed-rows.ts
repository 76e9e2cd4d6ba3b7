import { Counter, type Registry } from 'prom-client';
import type { RemoveExpired } from '../use-cases/cleanup/remove-expired.ts';

/** Counts the rows that were removed because they had expired, by kind. Without a registry, nothing. */
export function countRemovedRows(
  removeExpired: RemoveExpired,
  registry: Registry | undefined,
): RemoveExpired {
  if (registry === undefined) return removeExpired;
  const rows = new Counter({
    name: 'gotrue_cleanup_affected_rows_total',
    help: 'Expired rows removed, by kind.',
    labelNames: ['kind'],
    registers: [registry],
  });
  return async (nowMs, signal) => {
    const removed = await removeExpired(nowMs, signal);
    for (const [kind, count] of Object.entries(removed)) rows.inc({ kind }, count);
    return removed;
  };
}
