import { compareText } from '@tollgate/kit/text';

/** A part of a long list, in the order of the names. */
export interface PageOf<T> {
  /** All that there are. */
  readonly total: number;
  readonly items: readonly T[];
  /** Name of the last item when there are more: ask for those after it. */
  readonly next: string | undefined;
}

/** Which part. */
export interface PageQuery {
  /** Only what comes after this name. */
  readonly after: string;
  readonly limit: number;
}

/** Most items on one page, whoever asks for more: 10,000 objects with their messages are tens of megabytes. */
const maxPageSize = 1000;

/** Takes a page out of named items, in the order of the names by code units. */
export function pageOf<T>(
  named: Iterable<readonly [name: string, item: T]>,
  { after, limit }: PageQuery,
): PageOf<T> {
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

/** Reads `after` and `limit` of a query; what is no number is the default. */
export function readPageQuery(query: URLSearchParams, defaultLimit: number): PageQuery {
  const limit = Number(query.get('limit') ?? defaultLimit);
  return {
    after: query.get('after') ?? '',
    limit: Number.isInteger(limit) && limit > 0 ? limit : defaultLimit,
  };
}
