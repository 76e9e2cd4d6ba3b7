import { randomUUID } from 'node:crypto';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres, { type Sql } from 'postgres';
import t, { type Test } from 'tap';
import { Store } from '../../src/app/store.ts';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { connect } from '../../src/db/connection.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { insertUser, metadata, newRefreshToken } from '../helpers/test-store.ts';
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
  const [id, token] = [randomUUID(), 'first2345678'];
  const session = { id, userId: user.id, aal: 'aal1', method: 'otp', userAgent, ip, tag: '', at } as const;
  await store.sessions.start({ ...session, refreshToken: token }, audit);
  const rotation = { token, successor: 'second234567', sessionId: id, userAgent, ip, at };
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

t.test(
  'rotations of the same turn share a statement, and a locked session delays its own only',
  async (t) => {
    const { store, observer, user, audit, id, rotation } = await startSession(t);
    const others = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const [other, token] = [randomUUID(), newRefreshToken()];
        const session = {
          id: other,
          userId: user.id,
          aal: 'aal1',
          method: 'otp',
          userAgent,
          ip,
          tag: '',
          at,
        };
        await store.sessions.start({ ...session, aal: 'aal1', refreshToken: token }, audit);
        return {
          token,
          successor: newRefreshToken(),
          sessionId: other,
          userAgent: `"it's" {\\}, null`,
          ip,
          at,
        };
      }),
    );
    const waiting: Promise<boolean>[] = [];
    await store.transaction(async (within) => {
      await within.refreshTokens.touch(id, at);
      waiting.push(store.refreshTokens.rotate(rotation, audit));
      t.same(await Promise.all(others.map((other) => store.refreshTokens.rotate(other, audit))), [
        true,
        true,
        true,
      ]);
      await statementWaits(observer);
    });
    t.same(await Promise.all(waiting), [true]);
    const rows =
      await observer`select s.user_agent, s.refreshed_at at time zone 'utc' as at, s.ip, t.token, t.parent
    from auth.sessions s join auth.refresh_tokens t on t.session_id = s.id and not t.revoked where s.id = ${others[0]?.sessionId ?? ''}`;
    t.match(rows, [
      { user_agent: others[0]?.userAgent, at, ip, token: others[0]?.successor, parent: others[0]?.token },
    ]);
    const [written] = await observer`select count(*)::int from auth.audit_log_entries
    where payload ->> 'action' = 'token_refreshed' and xmin::text in (
      select xmin::text from auth.audit_log_entries group by 1 having count(*) = 3)`;
    t.match(written, { count: 3 }, 'one transaction');
  },
);

t.test('a rotation that fails does not affect the others of its statement', async (t) => {
  const { store, audit, rotation } = await startSession(t);
  const outcomes = await Promise.allSettled([
    store.refreshTokens.rotate({ ...rotation, sessionId: 'invalid' }, audit),
    store.refreshTokens.rotate(rotation, audit),
    store.refreshTokens.rotate({ ...rotation, successor: 'third2345678' }, audit),
  ]);
  t.match(outcomes, [{ status: 'rejected' }, { status: 'fulfilled' }, { status: 'fulfilled' }]);
  const rotated = outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value);
  t.equal(rotated.length, 1, 'each token is rotated once');
});
