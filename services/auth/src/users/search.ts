import { containing, noInstance, type Parameter, startingWith } from '../db/connection.ts';
import { indexedExpressions, indexedText } from '../db/indexes.ts';
import { type Order, type OrderedPage, shortestScan } from '../db/paging.ts';
import { userColumns } from './user.ts';

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

/** The last user of a page. */
export interface UserPosition {
  /** As PostgreSQL prints it: a Date has milliseconds only. */
  readonly createdAt: string;
  readonly id: string;
}

/** Adds a parameter and returns its name, `$n`. */
type Bind = (value: Parameter) => string;

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
    return `(u.email like lower(${pattern}) or u.phone like ${pattern} or u.raw_user_meta_data ->> 'full_name' ilike ${pattern})`;
  },
  // The index of emails that includes single sign-on users has both columns.
  email: (email, bind) => `u.instance_id = ${noInstance} and lower(u.email) = ${bind(email)}`,
  phone: (phone, bind) => `u.phone = ${bind(phone)}`,
  provider: (provider, bind) =>
    `exists (select from identities i where i.user_id = u.id and i.provider = ${bind(provider)})`,
  role: (role, bind) => `u.role = ${bind(role)}`,
  plan: (plan, bind) => {
    const value = bind(plan);
    return `${indexedExpressions.plan} = ${indexedText(value)} and u.raw_app_meta_data ->> 'plan' = ${value}`;
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

/** A statement built from constants, and its parameters. */
interface Statement {
  readonly text: string;
  readonly parameters: Parameter[];
}

function condition<K extends keyof FilterValues>(
  filter: Partial<FilterValues>,
  key: K,
  bind: Bind,
): string | undefined {
  const value = filter[key];
  return value === undefined ? undefined : conditions[key](value, bind);
}

function matching(filter: UserFilter): Statement & { readonly bind: Bind } {
  const parameters: Parameter[] = [];
  const bind: Bind = (value) => `$${parameters.push(value)}`;
  const parts = filterKeys.flatMap((key) => condition(filter, key, bind) ?? []);
  return { text: `from users u where ${['u.deleted_at is null', ...parts].join(' and ')}`, parameters, bind };
}

export function countUsers(filter: UserFilter): Statement {
  const { text, parameters } = matching(filter);
  return { text: `select count(*)::int as total ${text}`, parameters };
}

/** Reads whole rows only of the users on the page: an index has what the filters need. */
function page(positions: string, order: Order): string {
  return `select u.created_at::text as position, ${userColumns} from (select u.id ${positions}) p join users u using (id)
    order by u.created_at ${order}, u.id ${order}`;
}

/** A page by number. With the total, the last pages are counted from the end. */
export function numberedPage(filter: UserFilter, requested: OrderedPage, total?: number): Statement {
  const { text, parameters, bind } = matching(filter);
  const { order, limit, offset } = shortestScan(requested, total);
  const scan = `order by u.created_at ${order}, u.id ${order} limit ${bind(limit)} offset ${bind(offset)}`;
  return { text: page(`${text} ${scan}`, requested.order), parameters };
}

/**
 * The page after a position. Its cost does not depend on how many pages precede it. Users without a
 * creation time, which only other programs store, are omitted.
 */
export function nextPage(
  filter: UserFilter,
  options: {
    readonly order: Order;
    readonly limit: number;
    readonly after: UserPosition | undefined;
  },
): Statement {
  const { order, limit, after } = options;
  const { text, parameters, bind } = matching(filter);
  const comparison = order === 'asc' ? '>' : '<';
  const position = after
    ? `(u.created_at, u.id) ${comparison} (${bind(after.createdAt)}::text::timestamptz, ${bind(after.id)}::uuid)`
    : 'u.created_at is not null';
  const ordered = `${text} and ${position} order by u.created_at ${order}, u.id ${order} limit ${bind(limit)}`;
  return { text: page(ordered, order), parameters };
}
