import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startPostgres } from '@tollgate/testkit/postgres';
import t from 'tap';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { migrate } from '../../src/db/migrate.ts';
import type { IdentityState } from '../../src/ext-authz/identity-cache.ts';
import { isBanned } from '../../src/users/user.ts';
import { changeUser, type Replica, startReplica, startSession } from '../helpers/replica.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { insertUser, metadata } from '../helpers/test-store.ts';

/** The clocks stand still: changes take effect through notifications, not by expiry. */
const maxStalenessMs = 10_000;

t.test('a change by one replica takes effect on the others', async (t) => {
  const { url } = await testDatabase(t);
  const one = await startReplica(t, url, { maxStalenessMs });
  const other = await startReplica(t, url, { maxStalenessMs });
  const ada = await insertUser(one.store, { email: 'ada@example.com' });
  const sessionId = await startSession(one.store, ada);
  /** Waits until both replicas have the state. */
  const bothKnow = async (
    what: string,
    isSo: (state: IdentityState | undefined) => boolean,
  ): Promise<void> => {
    for (const { states } of [one, other])
      await awaitUntil(async () => isSo(await states.find(ada.id, sessionId)), { what });
    t.pass(what);
  };

  await bothKnow('the session', (state) => state?.session !== undefined && state.role === 'authenticated');
  await changeUser(one.store, ada, { role: 'editor', appMetadata: { plan: 'pro' } });
  await bothKnow('role and plan', (state) => state?.role === 'editor' && state.appMetadata.plan === 'pro');
  const bannedUntil = new Date(metadata.nowMs + 60_000);
  await changeUser(other.store, ada, { bannedUntil });
  await bothKnow('the ban', (state) => isBanned({ bannedUntil: state?.bannedUntil }, metadata.nowMs));
  await one.store.sessions.end(
    'local',
    { userId: ada.id, sessionId },
    auditEntry(ada, 'logout', { metadata }),
  );
  await bothKnow('the end of the session', (state) => state !== undefined && state.session === undefined);
  await one.store.users.delete(ada.id, auditEntry(ada, 'user_deleted', { metadata }));
  await bothKnow('the deletion', (state) => state === undefined);
});

t.test('without notifications a change takes effect when the cached state expires', async (t) => {
  const { url } = await testDatabase(t);
  const one = await startReplica(t, url, { maxStalenessMs });
  const deaf = await startReplica(t, url, { maxStalenessMs });
  await deaf.listener.stop();
  t.equal(deaf.listener.isUp(), false);
  const ada = await insertUser(one.store, { email: 'ada@example.com' });
  const sessionId = await startSession(one.store, ada);
  t.ok((await deaf.states.find(ada.id, sessionId))?.session);
  await one.store.sessions.end(
    'global',
    { userId: ada.id, sessionId },
    auditEntry(ada, 'logout', { metadata }),
  );
  await awaitUntil(() => one.received.length > 0, {
    what: 'the notification',
  });

  deaf.clock.advance(maxStalenessMs - 1);
  t.ok((await deaf.states.find(ada.id, sessionId))?.session, 'still within the bound');
  deaf.clock.advance(1);
  t.equal((await deaf.states.find(ada.id, sessionId))?.session, undefined);
});

t.test('when PostgreSQL stops, cached states are used until they expire', async (t) => {
  const server = await startPostgres();
  t.teardown(() => server.stop());
  const { url } = await server.createDatabase();
  await migrate({ databaseUrl: url, dbNamespace: 'auth' }, { logger: silent });
  const replica: Replica = await startReplica(t, url, { maxStalenessMs });
  const { store, states, clock, listener } = replica;
  const ada = await insertUser(store, { email: 'ada@example.com' });
  const sessionId = await startSession(store, ada);
  await states.find(ada.id, sessionId);

  await server.stop();
  await awaitUntil(() => !listener.isUp(), { what: 'the listener to notice' });
  clock.advance(maxStalenessMs - 1);
  t.match(states.find(ada.id, sessionId), { role: 'authenticated' });
  clock.advance(1);
  await t.rejects(Promise.resolve(states.find(ada.id, sessionId)));
});

const silent = createLogger({ level: 'fatal', format: 'json' });
