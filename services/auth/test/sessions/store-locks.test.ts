import { randomUUID } from 'node:crypto';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres, { type Sql } from 'postgres';
import t, { type Test } from 'tap';
import { auditEntry } from '../../src/db/audit-log.ts';
import { connect } from '../../src/db/connection.ts';
import { Store } from '../../src/db/store.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { insertUser, metadata } from '../helpers/test-store.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

const at = new Date(metadata.nowMs);
const { userAgent, clientAddress: ip } = metadata;

/** A session with one refresh token. */
async function startSession(t: Test) {
  const { url: databaseUrl } = await testDatabase(t);
  const pool = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 5 });
  const observer = postgres(databaseUrl, { max: 1 });
  t.teardown(() => Promise.all([pool.end(), observer.end()]));
  const store = new Store(pool, { cipher: unencrypted });
  const user = await insertUser(store, { email: 'ada@example.com' });
  const audit = auditEntry(user, 'token_refreshed', { metadata });
  const [id, token] = [randomUUID(), 'first-token'];
  const session = { id, userId: user.id, aal: 'aal1', method: 'otp', userAgent, ip, tag: '', at } as const;
  await store.sessions.start({ ...session, refreshToken: token }, audit);
  const rotation = { token, successor: 'second-token', sessionId: id, userAgent, ip, at };
  return { store, observer, user, audit, id, rotation };
}

async function statementWaits(observer: Sql): Promise<void> {
  const waits = async (): Promise<boolean> =>
    (
      await observer`select 1 from pg_stat_activity
        where datname = current_database() and application_name = 'tollgate-auth' and wait_event_type = 'Lock'`
    ).length > 0;
  await awaitUntil(waits, { what: 'a statement to wait for another' });
}

t.test('refresh that waits for a logout adds no token', async (t) => {
  const { store, observer, user, audit, id, rotation } = await startSession(t);
  const refreshed: Promise<boolean>[] = [];
  await store.transaction(async (within) => {
    await within.refreshTokens.touch(id, at);
    refreshed.push(store.refreshTokens.rotate(rotation, audit));
    await statementWaits(observer);
    await within.sessions.end('local', { userId: user.id, sessionId: id }, audit);
  });
  t.same(await Promise.all(refreshed), [false]);
});

t.test('logout removes the token of a concurrent refresh', async (t) => {
  const { store, observer, user, audit, id, rotation } = await startSession(t);
  const ended: Promise<void>[] = [];
  await store.transaction(async (within) => {
    t.ok(await within.refreshTokens.rotate(rotation, audit));
    ended.push(store.sessions.end('local', { userId: user.id, sessionId: id }, audit));
    await statementWaits(observer);
  });
  await Promise.all(ended);
  t.same([...(await observer`select token from auth.refresh_tokens`)], []);
});
