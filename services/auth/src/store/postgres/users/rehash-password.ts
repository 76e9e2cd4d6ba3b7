import type { ColumnCipher } from '../../../encryption/column-cipher.ts';
import type { UserStore } from '../../../ports/user-store.ts';
import { type Queryable, query } from '../query.ts';

const text = 'update users set encrypted_password = $3 where id = $1 and encrypted_password = $2';

/** {@link UserStore.rehashPassword} */
export function rehashPassword(sql: Queryable, cipher: ColumnCipher): UserStore['rehashPassword'] {
  return async (id, { from, to }) => {
    await query(sql, text, [id, from, cipher.seal(id, to)]);
  };
}
