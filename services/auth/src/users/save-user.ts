import type { AuditLog } from '../audit/audit-log.ts';
import type { BaseContext } from '../context.ts';
import type { Transactions } from '../db/connection.ts';
import { errors } from '../errors.ts';
import type { UserStore } from './store.ts';
import type { User, UserChanges } from './user.ts';

/** Base of the contexts of all folders that read and write users. */
export type UsersContext = BaseContext & {
  readonly store: { readonly users: UserStore; readonly audit: AuditLog } & Transactions;
};

/** @throws AppError `user_not_found`. */
export async function getUser(store: UsersContext['store'], id: string): Promise<User> {
  const user = await store.users.findById(id);
  if (user === undefined) throw errors.user_not_found();
  return user;
}

/** @throws AppError `user_not_found`, `email_exists`, `phone_exists`. */
export async function saveUser(
  store: UsersContext['store'],
  id: string,
  changes: UserChanges,
  options: Parameters<UserStore['update']>[2],
): Promise<User> {
  const updated = await store.users.update(id, changes, options);
  if (!updated.ok) throw errors[updated.reason === 'not_found' ? 'user_not_found' : updated.reason]();
  return updated.user;
}
