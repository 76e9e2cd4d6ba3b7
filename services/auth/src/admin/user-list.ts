import { parseInstant } from '@tollgate/kit/time';
import type { Static, Type } from 'typebox';
import type { Order } from '../db/paging.ts';
import { errors } from '../errors.ts';
import type { UserFilter } from '../users/search.ts';
import { parameter, readFlag } from './list-pages.ts';
import { userFilters } from './user-filters.ts';

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
