import { type Html, html } from '@tollgate/kit/html';

type Cell = Html | string | number | undefined;

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => Cell;
  /** Right-aligned. */
  readonly isNumber?: boolean;
  /** Value of `sort` in the URL, for a column to sort by. */
  readonly sort?: string;
}

export interface TableOptions<Row> {
  /** Its heading. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Shown without rows. */
  readonly empty: Html;
  /** URL of the page, whose `sort` and `cursor` the links replace. */
  readonly url: URL;
  /** URL of the next page. */
  readonly nextCursor?: string | undefined;
  /** Shown below the rows. */
  readonly note?: Html;
  /** Identifies a row, so that updates move it. */
  readonly rowId?: (row: Row) => string;
}

/** A table with a sticky head. The first column is the heading of each row. */
export function table<Row>(options: TableOptions<Row>): Html {
  const { caption, columns, rows, empty, url, rowId, note } = options;
  const body =
    rows.length === 0
      ? empty
      : html`<div class="table" tabindex="0" role="region" aria-label="${caption}"><table>
<thead><tr>${columns.map((column) => head(column, url))}</tr></thead>
<tbody>${rows.map(
          (row) =>
            html`<tr${rowId !== undefined && html` id="${rowId(row)}"`}>${columns.map((column, index) => cell(column, row, index))}</tr>`,
        )}</tbody>
</table></div>`;
  return html`<section class="card"><h2>${caption}</h2>${body}${note !== undefined && html`<p class="dim">${note}</p>`}${pager(options)}</section>`;
}

function head<Row>({ title, sort, isNumber = false }: Column<Row>, url: URL): Html {
  const css = isNumber && html` class="number"`;
  if (sort === undefined) return html`<th scope="col"${css}>${title}</th>`;
  const current = url.searchParams.get('sort') ?? '';
  const isDescending = current === `${sort} desc`;
  const isSorted = isDescending || current === `${sort} asc`;
  const href = withQuery(url, { sort: `${sort} ${isDescending ? 'asc' : 'desc'}`, cursor: undefined });
  const order = isSorted && html` aria-sort="${isDescending ? 'descending' : 'ascending'}"`;
  return html`<th scope="col"${css}${order}><a href="${href}">${title}</a></th>`;
}

function cell<Row>({ cell, isNumber = false }: Column<Row>, row: Row, index: number): Html {
  const content = cell(row) ?? html`<span class="dim">–</span>`;
  if (index === 0) return html`<th scope="row">${content}</th>`;
  return html`<td${isNumber && html` class="number"`}>${content}</td>`;
}

function pager<Row>({ url, nextCursor }: TableOptions<Row>): Html | undefined {
  const isFirst = !url.searchParams.has('cursor');
  if (isFirst && nextCursor === undefined) return undefined;
  return html`<nav class="pager" aria-label="Pages of the table">
${!isFirst && html`<a href="${withQuery(url, { cursor: undefined })}">First page</a>`}
${nextCursor !== undefined && html`<a href="${withQuery(url, { cursor: nextCursor })}" rel="next">Next page</a>`}
</nav>`;
}

/** Path and query of a URL with other parameters; undefined removes one. */
export function withQuery(url: URL, parameters: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(url.searchParams);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) query.delete(name);
    else query.set(name, value);
  }
  return query.size === 0 ? url.pathname : `${url.pathname}?${query}`;
}
