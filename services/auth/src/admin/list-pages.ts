import { parseInstant } from '@tollgate/kit/time';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Position } from '../db/paging.ts';
import { errors } from '../errors.ts';
import { setNextLink } from '../http/api.ts';

/** A query parameter. */
export function parameter(description: string) {
  return Type.Optional(Type.String({ description }));
}

/** @throws AppError `validation_failed`. */
export function readFlag(name: string, text = ''): boolean | undefined {
  if (text === '') return undefined;
  if (text !== 'true' && text !== 'false')
    throw errors.validation_failed({ message: `${name} must be true or false` });
  return text === 'true';
}

/** Query parameter of numbered pages. */
export const totalQuery = {
  total: parameter('`false`: without the total, which takes longer than the page. Default `true`.'),
};

/** @throws AppError `validation_failed`. */
export function wantsTotal({ total }: { readonly total?: string }): boolean {
  return readFlag('total', total) ?? true;
}

/** Query parameters of paging by cursor. */
export const cursorQuery = {
  cursor: parameter('Of the `Link` header of the previous page, or its `pagination.next_cursor`.'),
  limit: parameter('Items per page with a cursor, 1 to 1000. Default 50.'),
};

interface CursorQuery {
  readonly page?: string;
  readonly per_page?: string;
  readonly cursor?: string;
  readonly limit?: string;
}

/**
 * Whether to list by cursor: never with `page` or `per_page`; by default if the setting says so,
 * and always with `cursor` or `limit`.
 */
export function wantsCursor(
  { page = '', per_page: perPage = '', cursor = '', limit = '' }: CursorQuery,
  byDefault: boolean,
): boolean {
  return page === '' && perPage === '' && (byDefault || cursor !== '' || limit !== '');
}

const defaultLimit = 50;
/** Responses are built in memory. */
const maxLimit = 1000;

/** @throws AppError `validation_failed`. */
export function parseCursor({ cursor = '', limit = '' }: CursorQuery): {
  readonly limit: number;
  readonly after: Position | undefined;
} {
  const count = limit === '' ? defaultLimit : /^\d{1,10}$/.test(limit) ? Number(limit) : 0;
  if (count === 0)
    throw errors.validation_failed({
      message: `Bad Pagination Parameters: limit must be a number from 1 to ${maxLimit}`,
    });
  return { limit: Math.min(count, maxLimit), after: cursor === '' ? undefined : decode(cursor) };
}

export function encodeCursor({ createdAt, id }: Position): string {
  return Buffer.from(`${createdAt} ${id}`).toString('base64url');
}

/** Sets the header `Link` to the next page. Returns `pagination` of the body. */
export function setPagination(
  request: FastifyRequest,
  reply: FastifyReply,
  { limit, next }: { readonly limit: number; readonly next: Position | undefined },
): { readonly next_cursor?: string; readonly has_more: boolean } {
  if (next === undefined) return { has_more: false };
  const cursor = encodeCursor(next);
  setNextLink(request, reply, { cursor, limit: String(limit) });
  return { next_cursor: cursor, has_more: true };
}

/** A time as PostgreSQL prints it in UTC, and a UUID. */
const positionForm =
  /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

function decode(cursor: string): Position {
  const [, createdAt, id] = positionForm.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (createdAt === undefined || id === undefined || parseInstant(`${createdAt}:00`) === undefined)
    throw errors.validation_failed({
      message: 'Bad Pagination Parameters: cursor is not one that this server returned',
    });
  return { createdAt, id };
}
