import type { UserStore } from '../../../ports/user-store.ts';
import { type Queryable, query } from '../query.ts';
import { userColumns, userOf } from './user-columns.ts';

const byId = `select ${userColumns} from users u where u.id = $1 and u.deleted_at is null`;
const byEmail = `select ${userColumns} from users u
  where u.email = $1 and u.aud = $2 and u.is_sso_user = false and u.deleted_at is null`;
const byPhone = `select ${userColumns} from users u
  where u.phone = $1 and u.aud = $2 and u.is_sso_user = false and u.deleted_at is null`;

/** The `find…` functions of {@link UserStore}. */
export function findUser(sql: Queryable): Pick<UserStore, 'findById' | 'findByEmail' | 'findByPhone'> {
  const find = async (text: string, parameters: readonly string[]) => {
    const [row] = await query(sql, text, parameters);
    return row && userOf(row);
  };
  return {
    findById: (id) => find(byId, [id]),
    findByEmail: (email, aud) => find(byEmail, [email, aud]),
    findByPhone: (phone, aud) => find(byPhone, [phone, aud]),
  };
}
