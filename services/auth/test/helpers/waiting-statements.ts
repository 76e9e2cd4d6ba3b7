import { awaitUntil } from '@tollgate/testkit/await-until';
import type { TransactionSql } from 'postgres';

/** Waits until at least this number of statements wait for locks, such as those of `sql`. */
export function awaitWaiting(sql: TransactionSql, count: number): Promise<unknown> {
  const isReached = async () => {
    const [row] = await sql`select count(*)::int as n from pg_locks where not granted`;
    return Number(row?.n) >= count;
  };
  return awaitUntil(isReached, { what: `${count} statements that wait` });
}
