import { monotonicNow } from '@tollgate/kit/time';
import { errors } from '../errors.ts';
import {
  type Parameter,
  type Queryable,
  queryAtMost,
  queryByIndex,
  queryOnce,
  type Row,
} from './connection.ts';

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

/** Adds a parameter and returns its name, `$n`. */
export type Bind = (value: Parameter) => string;

/** A statement built from constants, and its parameters. */
interface Statement {
  readonly text: string;
  readonly parameters: Parameter[];
}

/** How rows of a table are listed, in the order of `created_at` and `id`. */
export interface Listing<F> {
  readonly table: string;
  /** Name of the table in `columns`, conditions and counts. */
  readonly alias: string;
  /** Columns of a row on the page. */
  readonly columns: string;
  condition(filter: F, bind: Bind): string;
  /** An expression with the number of rows that match. */
  count(filter: F, bind: Bind): string;
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

function startStatement(): { readonly parameters: Parameter[]; readonly bind: Bind } {
  const parameters: Parameter[] = [];
  return { parameters, bind: (value) => `$${parameters.push(value)}` };
}

/** Reads whole rows only of the page: an index has what most filters need. */
function pageText<F>({ table, alias, columns }: Listing<F>, positions: string, order: Order): string {
  return `select ${alias}.created_at::text as position, ${columns}
    from (select ${alias}.id from ${table} ${alias} where ${positions}) p join ${table} ${alias} using (id)
    order by ${alias}.created_at ${order}, ${alias}.id ${order}`;
}

/** The number of rows, as `total`. */
export function countRows<F>(listing: Listing<F>, filter: F): Statement {
  const { parameters, bind } = startStatement();
  return { text: `select ${listing.count(filter, bind)}::int as total`, parameters };
}

/** A page by number. With the total, the last pages are counted from the end. */
function numberedPage<F>(listing: Listing<F>, filter: F, page: OrderedPage & { total?: number }): Statement {
  const { parameters, bind } = startStatement();
  const condition = listing.condition(filter, bind);
  const { order, limit, offset } = shortestScan(page, page.total);
  const { alias } = listing;
  const scan = `order by ${alias}.created_at ${order}, ${alias}.id ${order} limit ${bind(limit)} offset ${bind(offset)}`;
  return { text: pageText(listing, `${condition} ${scan}`, page.order), parameters };
}

/**
 * The page after a position. Its cost does not depend on how many pages precede it. Rows without a
 * creation time, which only other programs store, are omitted.
 */
export function nextPage<F>(listing: Listing<F>, filter: F, { order, limit, after }: CursorPage): Statement {
  const { parameters, bind } = startStatement();
  const condition = listing.condition(filter, bind);
  const { alias } = listing;
  const position = after
    ? `(${alias}.created_at, ${alias}.id) ${order === 'asc' ? '>' : '<'} (${bind(after.createdAt)}::text::timestamptz, ${bind(after.id)}::uuid)`
    : `${alias}.created_at is not null`;
  const scan = `${condition} and ${position} order by ${alias}.created_at ${order}, ${alias}.id ${order} limit ${bind(limit)}`;
  return { text: pageText(listing, scan, order), parameters };
}

/** Lists the rows of a table. Rows are not validated. */
export class Lister<F> {
  readonly #sql: Queryable;
  readonly #listing: Listing<F>;

  constructor(sql: Queryable, listing: Listing<F>) {
    this.#sql = sql;
    this.#listing = listing;
  }

  /** @throws AppError `request_timeout` if the filter reads all rows, and that takes too long. */
  async list(filter: F, page: OrderedPage): Promise<Page<Row>> {
    const deadlineMs = monotonicNow() + maxSearchMs;
    const count = countRows(this.#listing, filter);
    const [counted] =
      this.#listing.mustCountByIndex?.(filter) === true
        ? await queryByIndex(this.#sql, count)
        : await this.#run(filter, count, deadlineMs);
    const total = Number(counted?.total ?? 0);
    if (page.offset >= total) return { total, items: [] };
    const statement = numberedPage(this.#listing, filter, { ...page, total });
    return { total, items: await this.#run(filter, statement, deadlineMs) };
  }

  /** As `list`, without the total: whether another page follows. */
  async listUncounted(
    filter: F,
    { limit, ...page }: OrderedPage,
  ): Promise<{ readonly items: readonly Row[]; readonly hasMore: boolean }> {
    const statement = numberedPage(this.#listing, filter, { ...page, limit: limit + 1 });
    const rows = await this.#run(filter, statement);
    return { items: rows.slice(0, limit), hasMore: rows.length > limit };
  }

  /** Rows after a position. `next` is undefined for the last page. */
  async listAfter(
    filter: F,
    { limit, ...page }: CursorPage,
  ): Promise<{ readonly items: readonly Row[]; readonly next: Position | undefined }> {
    const rows = await this.#run(filter, nextPage(this.#listing, filter, { ...page, limit: limit + 1 }));
    const items = rows.slice(0, limit);
    const last = rows.length > limit ? items.at(-1) : undefined;
    return { items, next: last && { createdAt: String(last.position), id: String(last.id) } };
  }

  async #run(
    filter: F,
    { text, parameters }: Statement,
    deadlineMs = monotonicNow() + maxSearchMs,
  ): Promise<readonly Row[]> {
    const alternative = this.#listing.alternative(filter);
    if (alternative === undefined) return queryOnce(this.#sql, text, parameters);
    const late = () =>
      errors.request_timeout({
        message: `The search took longer than ${maxSearchMs / 1000} seconds because it reads all rows: ${alternative}`,
      });
    // 0 would be no limit.
    const timeoutMs = Math.max(1, Math.ceil(deadlineMs - monotonicNow()));
    return queryAtMost(this.#sql, { timeoutMs, late }, { text, parameters });
  }
}
