import type { UserStore } from '../../../ports/user-store.ts';
import { type Queryable, query } from '../query.ts';

// Of two that come together the second waits for the row of the user, and then counts on.
const text = `
  update users set email_change_confirm_status = least(coalesce(email_change_confirm_status, 0) + 1, 2), updated_at = $2
  where id = $1 returning email_change_confirm_status as confirmed`;

/** {@link UserStore.countEmailConfirmation} */
export function countEmailConfirmation(sql: Queryable): UserStore['countEmailConfirmation'] {
  return async (id, at) => {
    const [row] = await query(sql, text, [id, at]);
    return Number(row?.confirmed ?? 0);
  };
}
