import type { UserStore } from '../../../ports/user-store.ts';
import { containing } from '../like-pattern.ts';
import { type Queryable, query } from '../query.ts';
import { userColumns, userOf } from './user-columns.ts';

const matching = `
  from users u
  where u.aud = $1 and u.deleted_at is null and ($2::text is null
    or u.email like lower($2) or u.phone like $2 or u.raw_user_meta_data ->> 'full_name' ilike $2)`;

/** The count is there also when the page is empty. */
function textOf(order: 'asc' | 'desc'): string {
  return `select t.total, p.* from (select count(*)::int as total ${matching}) t left join lateral (
      select ${userColumns} ${matching} order by u.created_at ${order}, u.id limit $3 offset $4
    ) p on true
    order by p.created_at ${order}, p.id`;
}

const texts = { asc: textOf('asc'), desc: textOf('desc') } as const;

/** {@link UserStore.list} */
export function listUsers(sql: Queryable): UserStore['list'] {
  return async ({ aud, filter, order, limit, offset }) => {
    const pattern = filter === '' ? null : containing(filter);
    const rows = await query(sql, texts[order], [aud, pattern, limit, offset]);
    // Parsed boundary: the column selected above.
    const total = (rows[0] as { readonly total: number } | undefined)?.total ?? 0;
    return { total, items: rows.filter(({ id }) => id !== null).map(userOf) };
  };
}
