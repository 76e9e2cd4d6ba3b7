import { compareText } from '@tollgate/kit/text';

/** Part of a list, sorted by name. */
export interface Page<T> {
  /** Size of the whole list. */
  readonly total: number;
  readonly items: readonly T[];
  /** Name of the last item when there are more: `after` of the next page. */
  readonly next: string | undefined;
}

export interface PageQuery {
  /** The page begins after this name. */
  readonly after: string;
  readonly limit: number;
}

/** Largest page: 10,000 objects with their messages are tens of megabytes. */
const maxPageSize = 1000;

/** Sorts by code units of the names. */
export function paginate<T>(
  named: Iterable<readonly [name: string, item: T]>,
  { after, limit }: PageQuery,
): Page<T> {
  const all = [...named];
  const left = all.filter(([name]) => after === '' || compareText(name, after) > 0);
  left.sort(([a], [b]) => compareText(a, b));
  const page = left.slice(0, Math.min(limit, maxPageSize));
  const isLast = page.length === left.length;
  return {
    total: all.length,
    items: page.map(([, item]) => item),
    next: isLast ? undefined : page.at(-1)?.[0],
  };
}

/** An invalid `limit` is replaced by the default. */
export function parsePageQuery(query: URLSearchParams, defaultLimit: number): PageQuery {
  const limit = Number(query.get('limit') ?? defaultLimit);
  return {
    after: query.get('after') ?? '',
    limit: Number.isInteger(limit) && limit > 0 ? limit : defaultLimit,
  };
}
