import type { UserStore } from '../../../ports/user-store.ts';
import { type Queryable, query } from '../query.ts';

const text = `
  select taken from (
    select case when email = $2 and is_sso_user = false then 'email' when phone = $3 then 'phone' else 'id' end as taken
    from users
    where (email = $2 and is_sso_user = false) or phone = $3 or id = $1
  ) t
  order by array_position(array['email', 'phone', 'id'], taken) limit 1`;

/** {@link UserStore.findTaken} */
export function findTaken(sql: Queryable): UserStore['findTaken'] {
  return async ({ id, email, phone }) => {
    const [row] = await query(sql, text, [id, email || null, phone || null]);
    // Parsed boundary: one of the constants above.
    return (row as { readonly taken: 'email' | 'phone' | 'id' } | undefined)?.taken;
  };
}
