import { containing, noInstance, type Parameter } from '../db/connection.ts';
import { userColumns } from './user.ts';

/** Which users to list. An absent member does not restrict the list. */
export interface UserFilter {
  readonly aud?: string;
  /** Part of email, phone or `full_name`, in any case. */
  readonly part?: string;
  /** In lower case. */
  readonly email?: string;
  /** Digits. */
  readonly phone?: string;
  /** Of one of the identities. */
  readonly provider?: string;
  readonly role?: string;
  /** `plan` of the app metadata. */
  readonly plan?: string;
  readonly confirmed?: boolean;
  readonly banned?: boolean;
  readonly anonymous?: boolean;
  readonly createdFrom?: Date;
  readonly createdBefore?: Date;
  readonly lastSignInFrom?: Date;
  readonly lastSignInBefore?: Date;
}

/** By creation time. */
export type UserOrder = 'asc' | 'desc';

/** The last user of a page. */
export interface UserPosition {
  /** As PostgreSQL prints it: a Date has milliseconds only. */
  readonly createdAt: string;
  readonly id: string;
}

/** The condition of each member, given its parameter `$n`. */
const conditions: { readonly [K in keyof UserFilter]-?: (parameter: string) => string } = {
  aud: (parameter) => `u.aud = ${parameter}`,
  part: (parameter) =>
    `(u.email like lower(${parameter}) or u.phone like ${parameter} or u.raw_user_meta_data ->> 'full_name' ilike ${parameter})`,
  // The index of emails that includes single sign-on users has both columns.
  email: (parameter) => `u.instance_id = ${noInstance} and lower(u.email) = ${parameter}`,
  phone: (parameter) => `u.phone = ${parameter}`,
  provider: (parameter) =>
    `exists (select from identities i where i.user_id = u.id and i.provider = ${parameter})`,
  role: (parameter) => `u.role = ${parameter}`,
  plan: (parameter) => `u.raw_app_meta_data ->> 'plan' = ${parameter}`,
  confirmed: (parameter) => `(u.confirmed_at is not null) = ${parameter}`,
  banned: (parameter) => `coalesce(u.banned_until > now(), false) = ${parameter}`,
  anonymous: (parameter) => `u.is_anonymous = ${parameter}`,
  createdFrom: (parameter) => `u.created_at >= ${parameter}`,
  createdBefore: (parameter) => `u.created_at < ${parameter}`,
  lastSignInFrom: (parameter) => `u.last_sign_in_at >= ${parameter}`,
  lastSignInBefore: (parameter) => `u.last_sign_in_at < ${parameter}`,
};

const filterKeys = Object.keys(conditions) as readonly (keyof UserFilter)[]; // of the constant above

/** A statement built from constants, and its parameters. */
interface Statement {
  readonly text: string;
  readonly parameters: Parameter[];
}

function matching(filter: UserFilter): Statement {
  const keys = filterKeys.filter((key) => filter[key] !== undefined);
  const parts = keys.map((key, index) => conditions[key](`$${index + 1}`));
  return {
    text: `from users u where ${['u.deleted_at is null', ...parts].join(' and ')}`,
    parameters: keys.map((key) => (key === 'part' ? containing(filter.part ?? '') : filter[key])),
  };
}

/** A page by number. The total is returned even if the page is empty. */
export function numberedPage(
  filter: UserFilter,
  { order, limit, offset }: { readonly order: UserOrder; readonly limit: number; readonly offset: number },
): Statement {
  const { text, parameters } = matching(filter);
  const next = parameters.length + 1;
  return {
    text: `select t.total, p.* from (select count(*)::int as total ${text}) t left join lateral (
        select ${userColumns} ${text} order by u.created_at ${order}, u.id limit $${next} offset $${next + 1}
      ) p on true
      order by p.created_at ${order}, p.id`,
    parameters: [...parameters, limit, offset],
  };
}

/**
 * The page after a position. Its cost does not depend on how many pages precede it, given an index
 * on `created_at`. Users without a creation time, which only other programs store, are omitted.
 */
export function nextPage(
  filter: UserFilter,
  options: {
    readonly order: UserOrder;
    readonly limit: number;
    readonly after: UserPosition | undefined;
  },
): Statement {
  const { order, limit, after } = options;
  const { text, parameters } = matching(filter);
  const next = parameters.length + 1;
  const comparison = order === 'asc' ? '>' : '<';
  const position = after
    ? `(u.created_at, u.id) ${comparison} ($${next + 1}::text::timestamptz, $${next + 2}::uuid)`
    : 'u.created_at is not null';
  return {
    text: `select u.created_at::text as position, ${userColumns} ${text} and ${position}
      order by u.created_at ${order}, u.id ${order} limit $${next}`,
    parameters: [...parameters, limit, ...(after ? [after.createdAt, after.id] : [])],
  };
}
