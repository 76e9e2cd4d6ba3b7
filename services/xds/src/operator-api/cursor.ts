import { errors } from '../errors.ts';
import type { PageQuery as NameQuery, Page } from '../paging.ts';

/** The part of a query that all lists have. */
export interface PageQuery extends NameQuery {
  /** Part of a name. */
  readonly find?: string;
}

/** The page that a query asks for. */
export function readPageQuery<T extends { readonly limit: number; readonly cursor?: string }>({
  cursor,
  ...query
}: T): Omit<T, 'cursor'> & NameQuery {
  return { ...query, after: cursor === undefined ? '' : decode(cursor) };
}

/** The page with a cursor for the next one. */
export function toPage<T>({ next, ...page }: Page<T>) {
  return { ...page, ...(next !== undefined && { next: Buffer.from(next).toString('base64url') }) };
}

/** @throws AppError `invalid_cursor` */
function decode(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString();
  if (name === '' || Buffer.from(name).toString('base64url') !== cursor) throw errors.invalid_cursor();
  return name;
}
