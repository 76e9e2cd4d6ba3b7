import { randomUUID } from 'node:crypto';
import type t from 'tap';
import { Store, type StoreOptions } from '../../src/app/store.ts';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { connect } from '../../src/db/connection.ts';
import type { RequestMetadata } from '../../src/http/request-metadata.ts';
import { randomBase32, systemRandomness } from '../../src/keys/secrets.ts';
import { newContactUser } from '../../src/users/new-user.ts';
import type { User } from '../../src/users/user.ts';
import { testDatabase } from './test-database.ts';
import { unencrypted } from './unencrypted.ts';

/** Metadata of a test request. */
export const metadata: RequestMetadata = {
  nowMs: Date.parse('2026-03-04T05:06:07.089Z'),
  clientAddress: '192.0.2.1',
  userAgent: 'test',
  requestId: 'test',
};

/** A store with its own database. */
export async function testStore(
  test: Pick<typeof t, 'name' | 'teardown'>,
  options: Partial<StoreOptions> = {},
): Promise<Store> {
  const { url: databaseUrl } = await testDatabase(test);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 5 });
  test.teardown(() => sql.end());
  return new Store(sql, { cipher: unencrypted, ...options });
}

/** Inserts a confirmed user. */
export async function insertUser(store: Store, { email }: { readonly email: string }): Promise<User> {
  const user = newContactUser({
    id: randomUUID(),
    aud: '',
    role: 'authenticated',
    contact: { kind: 'email', email },
    passwordHash: undefined,
    confirmed: true,
    userMetadata: {},
    at: new Date(metadata.nowMs),
  });
  await store.users.insert(user, auditEntry(user, 'user_signedup', { metadata }));
  const inserted = await store.users.findById(user.id);
  if (inserted === undefined) throw new Error(`no user ${email}`);
  return inserted;
}

/** A refresh token of version 1. */
export function newRefreshToken(): string {
  return randomBase32(systemRandomness, 12);
}
