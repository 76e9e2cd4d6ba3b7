import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres from 'postgres';
import t from 'tap';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { migrate } from '../../src/db/migrate.ts';
import { IdentityListener } from '../../src/ext-authz/identity-listener.ts';
import { changeUser, type Replica, startReplica, startSession } from '../helpers/replica.ts';
import { allowUnreadableRows, testDatabase } from '../helpers/test-database.ts';
import { insertUser, metadata } from '../helpers/test-store.ts';

const at = new Date(metadata.nowMs);

t.test('changes of role, metadata, ban and session are received with the user id', async (t) => {
  const { replica, sql } = await start(t);
  const { store } = replica;
  const ada = await insertUser(store, { email: 'ada@example.com' });
  const sessionId = await startSession(store, ada);
  const changes: Readonly<Record<string, () => Promise<unknown>>> = {
    role: () => changeUser(store, ada, { role: 'editor' }),
    metadata: () => changeUser(store, ada, { appMetadata: { plan: 'pro' } }),
    ban: () => changeUser(store, ada, { bannedUntil: new Date('2030-01-01') }),
    'no longer anonymous': () => changeUser(store, ada, { isAnonymous: true }),
    'end of a session set': () => sql`update auth.sessions set not_after = now()`,
    'a session ended': () =>
      store.sessions.end('local', { userId: ada.id, sessionId }, auditEntry(ada, 'logout', { metadata })),
    'deleted, but kept': () =>
      store.users.softDelete(ada.id, { at, audit: auditEntry(ada, 'user_deleted', { metadata }) }),
    deleted: () => sql`delete from auth.users`,
  };
  for (const [what, change] of Object.entries(changes)) {
    replica.received.length = 0;
    await change();
    await awaitUntil(() => replica.received.length > 0, {
      what: `${what} to be received`,
    });
    t.same(replica.received, [[ada.id]], what);
  }
});

t.test('sign-ins, refreshes and user metadata send no notification', async (t) => {
  const { replica, sql } = await start(t);
  const { store } = replica;
  const ada = await insertUser(store, { email: 'ada@example.com' });
  const sessionId = await startSession(store, ada);
  await store.refreshTokens.touch(sessionId, at);
  const [{ token } = { token: '' }] = await sql<{ token: string }[]>`select token from auth.refresh_tokens`;
  const rotation = { token, successor: 'successor234', sessionId, userAgent: '', ip: '', at };
  t.ok(await store.refreshTokens.rotate(rotation, auditEntry(ada, 'token_refreshed', { metadata })));
  await changeUser(store, ada, { userMetadata: { name: 'Ada' }, emailConfirmedAt: at });
  await changeUser(store, ada, { role: ada.role, appMetadata: {} });

  const last = await insertUser(store, { email: 'last@example.com' });
  await changeUser(store, last, { role: 'editor' });
  await awaitUntil(() => replica.received.length > 0, { what: 'the last change' });
  t.same(replica.received, [[last.id]]);
});

t.test('a change of more than 200 users invalidates all', async (t) => {
  const { replica, sql } = await start(t);
  const insert = (count: number) => sql`
    insert into auth.users (id, is_sso_user, is_anonymous, role)
    select gen_random_uuid(), true, false, 'authenticated' from generate_series(1, ${count})`;

  await insert(200);
  await sql`delete from auth.users`;
  await awaitUntil(() => replica.received.length > 0, { what: 'the deletion of 200' });
  t.equal(replica.received.length, 1);
  t.equal(new Set(replica.received[0]).size, 200);

  replica.received.length = 0;
  await insert(201);
  await sql`update auth.users set role = 'editor'`;
  await awaitUntil(() => replica.received.includes('all'), { what: 'the update of 201' });
  t.equal(replica.received.length, 201, 'the first 200 by id, and all');

  replica.received.length = 0;
  await sql`delete from auth.users`;
  await awaitUntil(() => replica.received.length > 0, { what: 'the deletion of 201' });
  t.same(replica.received, ['all']);

  replica.received.length = 0;
  await sql`truncate auth.users cascade`;
  await awaitUntil(() => replica.received.length > 0, { what: 'the truncation' });
  t.same(replica.received, ['all']);
});

t.test('rollbacks and changes of other schemas are not received', async (t) => {
  const { replica, sql, databaseUrl } = await start(t);
  const { store } = replica;
  allowUnreadableRows(databaseUrl);
  await migrate({ databaseUrl, dbNamespace: 'other' }, { logger: silent });
  const ada = await insertUser(store, { email: 'ada@example.com' });
  await t.rejects(
    store.transaction(async (within) => {
      await changeUser(within, ada, { role: 'editor' });
      throw new Error('no');
    }),
    { message: 'no' },
  );
  await sql`insert into other.users (id, role) values (${ada.id}, 'authenticated')`;
  await sql`update other.users set role = 'editor'`;

  const last = await insertUser(store, { email: 'last@example.com' });
  await changeUser(store, last, { role: 'editor' });
  await awaitUntil(() => replica.received.length > 0, { what: 'the last change' });
  t.same(replica.received, [[last.id]]);
});

t.test('a listener reconnects after a lost connection and invalidates all', async (t) => {
  const { replica, sql } = await start(t);
  const { listener, received } = replica;
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'tollgate-auth-listen' and datname = current_database()`;
  await awaitUntil(() => received.includes('all'), { what: 'the listener to be back' });
  t.equal(listener.isUp(), true);
  t.match(replica.logs(), /terminating connection.*lost LISTEN connection.*restored LISTEN connection/s);
});

t.test('without a database the listener starts, stops, and logs the failure once', async (t) => {
  const lines: string[] = [];
  const received: unknown[] = [];
  const listener = new IdentityListener({
    databaseUrl: 'postgres://postgres@127.0.0.1:1/nothing',
    dbNamespace: 'auth',
    onChange: (changed) => received.push(changed),
    logger: createLogger({
      level: 'info',
      format: 'json',
      destination: { write: (line) => lines.push(line) },
    }),
  });
  listener.start();
  await awaitUntil(() => lines.length > 0, { what: 'a line in the log' });
  t.equal(listener.isUp(), false);
  await listener.stop();
  await listener.stop();
  t.equal(lines.length, 1);
  t.match(lines[0], /ECONNREFUSED.*lost LISTEN connection/);
  t.same(received, []);
});

const silent = createLogger({ level: 'fatal', format: 'json' });

/** A replica with a database of its own, and a connection to it. */
async function start(
  test: Pick<typeof t, 'name' | 'teardown'>,
): Promise<{ replica: Replica; sql: postgres.Sql; databaseUrl: string }> {
  const { url: databaseUrl } = await testDatabase(test);
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  test.teardown(() => sql.end());
  return { replica: await startReplica(test, databaseUrl, { maxStalenessMs: 0 }), sql, databaseUrl };
}
