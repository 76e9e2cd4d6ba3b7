import { monotonicNow } from '@tollgate/kit/time';
import { errors } from '../errors.ts';
import { type Queryable, queryAtMost, queryByIndex, queryOnce } from './connection.ts';
import { type Columns, integer, type RowOf, type SqlType, text, uuid } from './sql-types.ts';
import { bind, type Fragment, fragment, raw, type Statement, statement } from './statement.ts';

export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
}

export type Order = 'asc' | 'desc';

export interface OrderedPage extends PageRequest {
  readonly order: Order;
}

/** The last row of a page. */
export interface Position {
  /** As PostgreSQL prints it: a Date has milliseconds only. */
  readonly createdAt: string;
  readonly id: string;
}

export interface CursorPage {
  readonly order: Order;
  readonly limit: number;
  readonly after: Position | undefined;
}

interface ListedColumns extends Columns {
  readonly id: SqlType<string>;
  /** Creation time as text; the list adds it to the columns. */
  readonly position: SqlType<string | null>;
}

/** How rows of a table are listed, in the order of `created_at` and `id`. */
export interface Listing<F, C extends ListedColumns> {
  readonly table: string;
  /** Name of the table in `columns`, conditions and counts. */
  readonly alias: string;
  /** Columns of a row on the page. */
  readonly columns: Fragment<unknown>;
  readonly row: C;
  condition(filter: F): Fragment<unknown>;
  /** An expression with the number of rows that match. */
  count(filter: F): Fragment<unknown>;
  /** Whether the planner may count by reading the table, although an index is quicker. */
  readonly mustCountByIndex?: (filter: F) => boolean;
  /** Alternative to a filter that reads all rows. */
  alternative(filter: F): string | undefined;
}

/** Lists must be answered before the default of `SVC_API_MAX_REQUEST_DURATION`, 10 s. */
const maxSearchMs = 8_000;

const reversed = { asc: 'desc', desc: 'asc' } as const satisfies Record<Order, Order>;

/**
 * The scan with the smallest offset that reads a page: in the other order for pages near the end.
 */
function shortestScan(page: OrderedPage, total: number | undefined): OrderedPage {
  const { order, limit, offset } = page;
  if (total === undefined || offset <= total / 2) return page;
  return {
    order: reversed[order],
    limit: Math.max(0, Math.min(limit, total - offset)),
    offset: Math.max(0, total - offset - limit),
  };
}

/** Reads whole rows only of the page: an index has what most filters need. */
function readPage<F, C extends ListedColumns>(
  { table, alias, columns, row }: Listing<F, C>,
  positions: Fragment<unknown>,
  order: Order,
): Statement<unknown, RowOf<C>> {
  const t = raw(alias);
  return statement(row)`select ${t}.created_at::text as position, ${columns}
    from (select ${t}.id from ${raw(table)} ${t} where ${positions}) p join ${raw(table)} ${t} using (id)
    ${inOrder(alias, order)}`;
}

function inOrder(alias: string, order: Order): Fragment<unknown> {
  return raw(`order by ${alias}.created_at ${order}, ${alias}.id ${order}`);
}

/** The number of rows, as `total`. */
export function countRows<F, C extends ListedColumns>(listing: Listing<F, C>, filter: F) {
  return statement({ total: integer })`select ${listing.count(filter)}::int as total`;
}

/** A page by number. With the total, the last pages are counted from the end. */
function numberedPage<F, C extends ListedColumns>(
  listing: Listing<F, C>,
  filter: F,
  page: OrderedPage & { total?: number },
): Statement<unknown, RowOf<C>> {
  const { order, limit, offset } = shortestScan(page, page.total);
  const positions = fragment`${listing.condition(filter)} ${inOrder(listing.alias, order)}
    limit ${bind(integer, limit)} offset ${bind(integer, offset)}`;
  return readPage(listing, positions, page.order);
}

/**
 * The page after a position. Its cost does not depend on how many pages precede it. Rows without a
 * creation time, which only other programs store, are omitted.
 */
export function nextPage<F, C extends ListedColumns>(
  listing: Listing<F, C>,
  filter: F,
  { order, limit, after }: CursorPage,
): Statement<unknown, RowOf<C>> {
  const t = raw(listing.alias);
  const isAfter = after
    ? fragment`(${t}.created_at, ${t}.id) ${raw(order === 'asc' ? '>' : '<')} (${bind(text, after.createdAt)}::text::timestamptz, ${bind(uuid, after.id)}::uuid)`
    : fragment`${t}.created_at is not null`;
  const positions = fragment`${listing.condition(filter)} and ${isAfter} ${inOrder(listing.alias, order)}
    limit ${bind(integer, limit)}`;
  return readPage(listing, positions, order);
}

/** Lists the rows of a table. Rows are not validated. */
export class Lister<F, C extends ListedColumns> {
  readonly #sql: Queryable;
  readonly #listing: Listing<F, C>;

  constructor(sql: Queryable, listing: Listing<F, C>) {
    this.#sql = sql;
    this.#listing = listing;
  }

  /** @throws AppError `request_timeout` if the filter reads all rows, and that takes too long. */
  async list(filter: F, page: OrderedPage): Promise<Page<RowOf<C>>> {
    const deadlineMs = monotonicNow() + maxSearchMs;
    const count = countRows(this.#listing, filter);
    const [counted] =
      this.#listing.mustCountByIndex?.(filter) === true
        ? await count.run(this.#sql, {}, queryByIndex)
        : await this.#run(filter, count, deadlineMs);
    const total = counted?.total ?? 0;
    if (page.offset >= total) return { total, items: [] };
    const query = numberedPage(this.#listing, filter, { ...page, total });
    return { total, items: await this.#run(filter, query, deadlineMs) };
  }

  /** Lists without the total: says whether another page follows. */
  async listUncounted(
    filter: F,
    { limit, ...page }: OrderedPage,
  ): Promise<{ readonly items: readonly RowOf<C>[]; readonly hasMore: boolean }> {
    const query = numberedPage(this.#listing, filter, { ...page, limit: limit + 1 });
    const rows = await this.#run(filter, query);
    return { items: rows.slice(0, limit), hasMore: rows.length > limit };
  }

  /** Rows after a position. `next` is undefined for the last page. */
  async listAfter(
    filter: F,
    { limit, ...page }: CursorPage,
  ): Promise<{ readonly items: readonly RowOf<C>[]; readonly next: Position | undefined }> {
    const rows = await this.#run(filter, nextPage(this.#listing, filter, { ...page, limit: limit + 1 }));
    const items = rows.slice(0, limit);
    const last = rows.length > limit ? items.at(-1) : undefined;
    return { items, next: last && { createdAt: String(last.position), id: last.id } };
  }

  async #run<R>(
    filter: F,
    query: Statement<unknown, R>,
    deadlineMs = monotonicNow() + maxSearchMs,
  ): Promise<readonly R[]> {
    const alternative = this.#listing.alternative(filter);
    if (alternative === undefined) return query.run(this.#sql, {}, queryOnce);
    const late = () =>
      errors.request_timeout({
        message: `The search took longer than ${maxSearchMs / 1000} seconds because it reads all rows: ${alternative}`,
      });
    // 0 would be no limit.
    const timeoutMs = Math.max(1, Math.ceil(deadlineMs - monotonicNow()));
    return query.run(this.#sql, {}, queryAtMost({ timeoutMs, late }));
  }
}
