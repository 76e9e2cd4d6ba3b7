import { parseInstant } from '@tollgate/kit/time';
import { type Static, Type } from 'typebox';
import type { Order } from '../db/paging.ts';
import { errors } from '../errors.ts';
import type { UserFilter, UserPosition } from '../users/search.ts';
import { userFilters } from './user-filters.ts';

function parameter(description: string) {
  return Type.Optional(Type.String({ description }));
}

/** Query parameters that restrict and order a list of users. Empty values are ignored. */
export const filterQuery = {
  filter: parameter(userFilters.filter),
  prefix: parameter(userFilters.prefix),
  email: parameter(userFilters.email),
  phone: parameter(userFilters.phone),
  provider: parameter(userFilters.provider),
  role: parameter(userFilters.role),
  plan: parameter(userFilters.plan),
  confirmed: parameter(userFilters.confirmed),
  banned: parameter(userFilters.banned),
  anonymous: parameter(userFilters.anonymous),
  created_from: parameter(userFilters.created_from),
  created_before: parameter(userFilters.created_before),
  last_sign_in_from: parameter(userFilters.last_sign_in_from),
  last_sign_in_before: parameter(userFilters.last_sign_in_before),
  sort: parameter(userFilters.sort),
} satisfies Record<keyof typeof userFilters, unknown>;

type FilterQuery = Static<ReturnType<typeof Type.Object<typeof filterQuery>>>;

/** @throws AppError `validation_failed`. */
export function readFilter(query: FilterQuery): UserFilter {
  const { filter = '', prefix = '', email = '', phone = '', provider = '', role = '', plan = '' } = query;
  const confirmed = readFlag('confirmed', query.confirmed);
  const banned = readFlag('banned', query.banned);
  const anonymous = readFlag('anonymous', query.anonymous);
  const createdFrom = readTime('created_from', query.created_from);
  const createdBefore = readTime('created_before', query.created_before);
  const lastSignInFrom = readTime('last_sign_in_from', query.last_sign_in_from);
  const lastSignInBefore = readTime('last_sign_in_before', query.last_sign_in_before);
  return {
    ...(filter !== '' && { part: filter }),
    ...(prefix !== '' && { prefix }),
    ...(email !== '' && { email: email.trim().toLowerCase() }),
    // A plus that is not encoded arrives as a space.
    ...(phone !== '' && { phone: phone.replaceAll(/[\s+]/g, '') }),
    ...(provider !== '' && { provider }),
    ...(role !== '' && { role }),
    ...(plan !== '' && { plan }),
    ...(confirmed !== undefined && { confirmed }),
    ...(banned !== undefined && { banned }),
    ...(anonymous !== undefined && { anonymous }),
    ...(createdFrom && { createdFrom }),
    ...(createdBefore && { createdBefore }),
    ...(lastSignInFrom && { lastSignInFrom }),
    ...(lastSignInBefore && { lastSignInBefore }),
  };
}

function readFlag(name: string, text = ''): boolean | undefined {
  if (text === '') return undefined;
  if (text !== 'true' && text !== 'false')
    throw errors.validation_failed({ message: `${name} must be true or false` });
  return text === 'true';
}

function readTime(name: keyof FilterQuery, text = ''): Date | undefined {
  if (text === '') return undefined;
  const time = parseInstant(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (time === undefined)
    throw errors.validation_failed({
      message: `${name} must be a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31`,
    });
  return time;
}

/** Reads `created_at`, `created_at asc` or `created_at desc`; descending when empty. */
export function readOrder(sort = ''): Order {
  const [field = '', direction = 'desc', ...rest] = sort.trim().toLowerCase().split(/\s+/);
  if (field === '') return 'desc';
  if (field !== 'created_at' || rest.length > 0)
    throw errors.validation_failed({
      message: `Bad Sort Parameters: bad field for sort ${JSON.stringify(sort.slice(0, 64))}, only created_at is known`,
    });
  if (direction !== 'asc' && direction !== 'desc')
    throw errors.validation_failed({
      message: `Bad Sort Parameters: bad direction for sort ${JSON.stringify(direction.slice(0, 64))}, only asc and desc allowed`,
    });
  return direction;
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
  cursor: parameter('`pagination.next_cursor` of the previous page.'),
  limit: parameter('Users per page with a cursor, 1 to 1000. Default 50.'),
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
  readonly after: UserPosition | undefined;
} {
  const count = limit === '' ? defaultLimit : /^\d{1,10}$/.test(limit) ? Number(limit) : 0;
  if (count === 0)
    throw errors.validation_failed({
      message: `Bad Pagination Parameters: limit must be a number from 1 to ${maxLimit}`,
    });
  return { limit: Math.min(count, maxLimit), after: cursor === '' ? undefined : decode(cursor) };
}

export function encodeCursor({ createdAt, id }: UserPosition): string {
  return Buffer.from(`${createdAt} ${id}`).toString('base64url');
}

/** A time as PostgreSQL prints it in UTC, and a UUID. */
const positionForm =
  /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

function decode(cursor: string): UserPosition {
  const [, createdAt, id] = positionForm.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (createdAt === undefined || id === undefined || parseInstant(`${createdAt}:00`) === undefined)
    throw errors.validation_failed({
      message: 'Bad Pagination Parameters: cursor is not one that this server returned',
    });
  return { createdAt, id };
}
