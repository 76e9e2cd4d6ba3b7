import type { UserStore } from '../../../ports/user-store.ts';
import { tokenTypes } from '../one-time-tokens/token-columns.ts';
import { type Queryable, query } from '../query.ts';

// Another request for the same contact may have sent something in the meantime.
const text = `delete from users u where id = $1 and confirmed_at is null
  and not exists (select 1 from one_time_tokens t where t.user_id = u.id)
  and concat(${tokenTypes.join(', ')}) = ''`;

/** {@link UserStore.discardUnconfirmed} */
export function discardUnconfirmed(sql: Queryable): UserStore['discardUnconfirmed'] {
  return async (id) => {
    await query(sql, text, [id]);
  };
}
