import { containing, startingWith } from '../db/connection.ts';
import { indexedExpressions, indexedText, isIndexedWhole } from '../db/indexes.ts';
import type { Bind, Listing } from '../db/paging.ts';
import { idsByEmail, userColumns } from './user.ts';

/** Which users to list. An absent member does not restrict the list. */
export interface UserFilter {
  readonly aud?: string;
  /** Part of email, phone or `full_name`, in any case. */
  readonly part?: string;
  /** How the email, phone or `full_name` starts, in any case. */
  readonly prefix?: string;
  /** In lower case. */
  readonly email?: string;
  /** Digits. */
  readonly phone?: string;
  /** Provider of one of the identities. */
  readonly provider?: string;
  /** As `provider`, for one that few users have: see {@link isRareProviderSql}. */
  readonly rareProvider?: string;
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

type FilterValues = Required<UserFilter>;

/** The condition of each member. Expressions are those of the indexes in `db/indexes.ts`. */
const conditions: {
  readonly [K in keyof FilterValues]: (value: FilterValues[K], bind: Bind) => string;
} = {
  aud: (aud, bind) => `u.aud = ${bind(aud)}`,
  prefix: (prefix, bind) => {
    const pattern = bind(startingWith(prefix));
    // Phone numbers are stored as digits.
    const phone = bind(startingWith(prefix.replaceAll(/[\s+]/g, '')));
    return `(${indexedExpressions.email} like lower(${pattern}) or u.phone like ${phone} or ${indexedExpressions.fullName} like lower(${pattern}))`;
  },
  part: (part, bind) => {
    const pattern = bind(containing(part));
    return `(${indexedExpressions.email} like lower(${pattern}) or u.phone like ${pattern} or ${indexedExpressions.wholeName} ilike ${pattern})`;
  },
  email: (email, bind) => `u.id = any(array(${idsByEmail(`array[${bind(email)}::text]`)}))`,
  phone: (phone, bind) => `u.phone = ${bind(phone)}`,
  provider: (provider, bind) =>
    `exists (select from identities i where i.user_id = u.id and i.provider = ${bind(provider)})`,
  // Reads the users of the provider, whereas the other condition looks each listed user up.
  rareProvider: (provider, bind) =>
    `u.id = any(array(select i.user_id from identities i where i.provider = ${bind(provider)}))`,
  role: (role, bind) => `u.role = ${bind(role)}`,
  plan: (plan, bind) => {
    const value = bind(plan);
    const prefix = `${indexedExpressions.plan} = ${indexedText(value)}`;
    return isIndexedWhole(plan) ? prefix : `${prefix} and u.raw_app_meta_data ->> 'plan' = ${value}`;
  },
  confirmed: (confirmed) => `u.confirmed_at is ${confirmed ? 'not null' : 'null'}`,
  banned: (banned) =>
    banned ? 'u.banned_until > now()' : '(u.banned_until is null or u.banned_until <= now())',
  anonymous: (anonymous) => (anonymous ? 'u.is_anonymous' : 'not u.is_anonymous'),
  createdFrom: (time, bind) => `u.created_at >= ${bind(time)}`,
  createdBefore: (time, bind) => `u.created_at < ${bind(time)}`,
  lastSignInFrom: (time, bind) => `u.last_sign_in_at >= ${bind(time)}`,
  lastSignInBefore: (time, bind) => `u.last_sign_in_at < ${bind(time)}`,
};

const filterKeys = Object.keys(conditions) as readonly (keyof FilterValues)[]; // of the constant above

/** So many users are read and sorted in about the time of a page of a provider with more. */
const maxRareUsers = 5_000;

/**
 * Whether few users have an identity of the provider `$1`. The planner underestimates what it costs
 * to look up, for each of the newest users, whether they are among the few.
 */
export const isRareProviderSql = `select count(*) <= ${maxRareUsers} as rare from (
  select from identities where provider = $1 limit ${maxRareUsers + 1}) i`;

function condition<K extends keyof FilterValues>(
  filter: Partial<FilterValues>,
  key: K,
  bind: Bind,
): string | undefined {
  const value = filter[key];
  return value === undefined ? undefined : conditions[key](value, bind);
}

function matching(filter: UserFilter, bind: Bind): string {
  return ['u.deleted_at is null', ...filterKeys.flatMap((key) => condition(filter, key, bind) ?? [])].join(
    ' and ',
  );
}

/** Conditions that most users match. Their opposites have indexes. */
const commonValues = { confirmed: true, banned: false, anonymous: false } as const;
const commonKeys = Object.keys(commonValues) as readonly (keyof typeof commonValues)[]; // of the constant above

/**
 * Subtracts the few users that do not match a common condition, which avoids reading all rows. A
 * search for a substring reads them anyway.
 */
function count(filter: UserFilter, bind: Bind): string {
  const provider = filter.provider ?? filter.rareProvider;
  if (provider !== undefined && filter.aud !== undefined && Object.keys(filter).length === 2)
    return countOfProvider(provider, filter.aud, bind);
  const common = commonKeys.find((key) => filter[key] === commonValues[key]);
  if (common === undefined || filter.part !== undefined)
    return `(select count(*) from users u where ${matching(filter, bind)})`;
  const { [common]: value, ...others } = filter;
  return `(${count(others, bind)} - ${count({ ...others, [common]: value !== true }, bind)})`;
}

/**
 * Counts the users of a provider in the index of identities, and subtracts the few that are not
 * listed. Looking all users of the provider up would read the table.
 */
function countOfProvider(provider: string, audience: string, bind: Bind): string {
  const [name, aud] = [bind(provider), bind(audience)];
  return `((select count(distinct i.user_id) from identities i where i.provider = ${name}) - (
    select count(*) from users u
    where (u.aud < ${aud} or u.aud > ${aud} or u.aud is null or u.aud = ${aud} and u.deleted_at is not null)
      and exists (select from identities i where i.user_id = u.id and i.provider = ${name})))`;
}

export const userListing: Listing<UserFilter> = {
  table: 'users',
  alias: 'u',
  columns: userColumns,
  condition: matching,
  count,
  alternative: ({ part }) =>
    part === undefined ? undefined : 'use prefix, email or phone instead of filter',
};
