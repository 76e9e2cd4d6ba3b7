import { containing, startingWith } from '../db/connection.ts';
import { indexed, indexedExpressions, isIndexedWhole } from '../db/indexes.ts';
import type { Listing } from '../db/paging.ts';
import { boolean, text, timestamptz } from '../db/sql-types.ts';
import { bind, type Fragment, fragment, join, parameters, raw, statement } from '../db/statement.ts';
import { idsByEmail, userColumns, userRow } from './user.ts';

/** Which users to list. An absent member does not restrict the list. */
export interface UserFilter {
  readonly aud?: string;
  /** Part of email, phone or `full_name`, in any case. */
  readonly part?: string;
  /** How the email, phone or `full_name` starts, in any case. */
  readonly prefix?: string;
  /** A lower-case address. */
  readonly email?: string;
  /** Digits. */
  readonly phone?: string;
  /** Provider of one of the identities. */
  readonly provider?: string;
  /** A provider that few users have: see {@link isRareProvider}. */
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

const email = raw(indexedExpressions.email);
const fullName = raw(indexedExpressions.fullName);

/** The condition of each member. Expressions are those of the indexes in `db/indexes.ts`. */
const conditions: { readonly [K in keyof FilterValues]: (value: FilterValues[K]) => Fragment<unknown> } = {
  aud: (aud) => fragment`u.aud = ${bind(text, aud)}`,
  prefix: (prefix) => {
    const pattern = bind(text, startingWith(prefix));
    // Phone numbers are stored as digits.
    const phone = bind(text, startingWith(prefix.replaceAll(/[\s+]/g, '')));
    return fragment`(${email} like lower(${pattern}) or u.phone like ${phone} or ${fullName} like lower(${pattern}))`;
  },
  part: (part) => {
    const pattern = bind(text, containing(part));
    return fragment`(${email} like lower(${pattern}) or u.phone like ${pattern} or ${raw(indexedExpressions.wholeName)} ilike ${pattern})`;
  },
  email: (value) => fragment`u.id = any(array(${idsByEmail(fragment`array[${bind(text, value)}::text]`)}))`,
  phone: (phone) => fragment`u.phone = ${bind(text, phone)}`,
  provider: (provider) =>
    fragment`exists (select from identities i where i.user_id = u.id and i.provider = ${bind(text, provider)})`,
  // Reads the users of the provider, whereas the other condition looks each listed user up.
  rareProvider: (provider) =>
    fragment`u.id = any(array(select i.user_id from identities i where i.provider = ${bind(text, provider)}))`,
  role: (role) => fragment`u.role = ${bind(text, role)}`,
  plan: (plan) => {
    const value = bind(text, plan);
    const prefix = fragment`${raw(indexedExpressions.plan)} = ${indexed(value)}`;
    return isIndexedWhole(plan) ? prefix : fragment`${prefix} and u.raw_app_meta_data ->> 'plan' = ${value}`;
  },
  confirmed: (confirmed) => raw(`u.confirmed_at is ${confirmed ? 'not null' : 'null'}`),
  banned: (banned) =>
    raw(banned ? 'u.banned_until > now()' : '(u.banned_until is null or u.banned_until <= now())'),
  anonymous: (anonymous) => raw(anonymous ? 'u.is_anonymous' : 'not u.is_anonymous'),
  createdFrom: (time) => fragment`u.created_at >= ${bind(timestamptz, time)}`,
  createdBefore: (time) => fragment`u.created_at < ${bind(timestamptz, time)}`,
  lastSignInFrom: (time) => fragment`u.last_sign_in_at >= ${bind(timestamptz, time)}`,
  lastSignInBefore: (time) => fragment`u.last_sign_in_at < ${bind(timestamptz, time)}`,
};

const filterKeys = Object.keys(conditions) as readonly (keyof FilterValues)[]; // of the constant above

/** So many users are read and sorted in about the time of a page of a provider with more. */
const maxRareUsers = 5_000;

const p = parameters(text, 'provider');

/**
 * Whether few users have an identity of the provider. The planner underestimates what it costs
 * to look up, for each of the newest users, whether they are among the few.
 */
export const isRareProvider = statement({ rare: boolean })`
  select count(*) <= ${raw(maxRareUsers)} as rare from (
    select from identities where provider = ${p.provider} limit ${raw(maxRareUsers + 1)}) i`;

function condition<K extends keyof FilterValues>(
  filter: Partial<FilterValues>,
  key: K,
): Fragment<unknown> | undefined {
  const value = filter[key];
  return value === undefined ? undefined : conditions[key](value);
}

function matching(filter: UserFilter): Fragment<unknown> {
  const parts = filterKeys.flatMap((key) => condition(filter, key) ?? []);
  return join([raw('u.deleted_at is null'), ...parts], ' and ');
}

/** Conditions that most users match. Their opposites have indexes. */
const commonValues = { confirmed: true, banned: false, anonymous: false } as const;
const commonKeys = Object.keys(commonValues) as readonly (keyof typeof commonValues)[]; // of the constant above

/**
 * Subtracts the few users that do not match a common condition, which avoids reading all rows. A
 * search for a substring reads them anyway.
 */
function count(filter: UserFilter): Fragment<unknown> {
  const provider = filter.provider ?? filter.rareProvider;
  if (provider !== undefined && filter.aud !== undefined && Object.keys(filter).length === 2)
    return countOfProvider(provider, filter.aud);
  const common = commonKeys.find((key) => filter[key] === commonValues[key]);
  if (common === undefined || filter.part !== undefined)
    return fragment`(select count(*) from users u where ${matching(filter)})`;
  const { [common]: value, ...others } = filter;
  return fragment`(${count(others)} - ${count({ ...others, [common]: value !== true })})`;
}

/**
 * Counts the users of a provider in the index of identities, and subtracts the few that are not
 * listed. Looking all users of the provider up would read the table.
 */
function countOfProvider(provider: string, audience: string): Fragment<unknown> {
  const [name, aud] = [bind(text, provider), bind(text, audience)];
  return fragment`((select count(distinct i.user_id) from identities i where i.provider = ${name}) - (
    select count(*) from users u
    where (u.aud < ${aud} or u.aud > ${aud} or u.aud is null or u.aud = ${aud} and u.deleted_at is not null)
      and exists (select from identities i where i.user_id = u.id and i.provider = ${name})))`;
}

const listedRow = { ...userRow, position: text.orNull };

export const userListing: Listing<UserFilter, typeof listedRow> = {
  table: 'users',
  alias: 'u',
  columns: userColumns,
  row: listedRow,
  condition: matching,
  count,
  alternative: ({ part }) =>
    part === undefined ? undefined : 'use prefix, email or phone instead of filter',
};
