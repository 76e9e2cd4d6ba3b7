import t from 'tap';
import { auditEntry } from '../../src/domain/audit-entry.ts';
import type { OneTimeToken } from '../../src/ports/one-time-token-store.ts';
import { connect, disconnect } from '../../src/store/postgres/connect.ts';
import { createPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { facts, insertUser, testStore } from '../helpers/test-store.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

t.test('a token replaces its predecessor, is found by its hash, and spent once', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const at = new Date(facts.nowMs);
  const token = (hash: string): OneTimeToken => {
    return { userId: user.id, type: 'recovery_token', hash, relatesTo: user.email, at };
  };
  const audit = auditEntry(user, 'user_recovery_requested', { facts });

  await store.oneTimeTokens.replace([token('first')], audit);
  await store.oneTimeTokens.replace([token('second')], audit);

  t.equal(await store.oneTimeTokens.find(['first'], ['recovery_token']), undefined);
  t.equal(await store.oneTimeTokens.find(['second'], ['confirmation_token']), undefined);
  const found = await store.oneTimeTokens.find(['second'], ['confirmation_token', 'recovery_token']);
  const { hash: _hash, ...rest } = token('second');
  t.match(found?.token, { ...rest, keptAs: /^sha256:[0-9a-f]{64}$/ });
  t.same(found?.user.recoverySentAt, at);
  t.equal(found?.user.confirmationSentAt, undefined);

  if (found === undefined) throw new Error('just found');
  const spent = await Promise.all([1, 2, 3].map(() => store.oneTimeTokens.spend(found.token)));
  t.same(spent.filter(Boolean), [true], 'one of three that come together');
});

t.test('of tokens that are sent too soon after one another only the first is kept', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const audit = auditEntry(user, 'user_recovery_requested', { facts });
  const send = (hash: string, type: OneTimeToken['type'], nowMs: number) =>
    store.oneTimeTokens.replace(
      [{ userId: user.id, type, hash, relatesTo: user.email, at: new Date(nowMs) }],
      audit,
      { notSince: new Date(nowMs - 60_000) },
    );
  const { nowMs } = facts;
  const together = await Promise.all(['a', 'b', 'c'].map((hash) => send(hash, 'recovery_token', nowMs)));
  t.same(together.filter(Boolean), [true]);
  t.equal(await send('d', 'confirmation_token', nowMs), true, 'of another kind');
  t.equal(await send('e', 'recovery_token', nowMs + 59_999), false);
  t.equal(await store.oneTimeTokens.find(['e'], ['recovery_token']), undefined);
  t.equal(await send('f', 'recovery_token', nowMs + 60_000), true);
});

t.test('a token that could not be sent leaves no trace', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const at = new Date(facts.nowMs);
  const token: OneTimeToken = {
    userId: user.id,
    type: 'recovery_token',
    hash: 'first',
    relatesTo: user.email,
    at,
  };
  const audit = auditEntry(user, 'user_recovery_requested', { facts });
  await store.oneTimeTokens.replace([token], audit);
  await store.oneTimeTokens.replace([{ ...token, type: 'confirmation_token', hash: 'other' }], audit);
  await store.oneTimeTokens.withdraw([token]);
  t.equal(await store.oneTimeTokens.find(['first'], ['recovery_token']), undefined);
  const after = await store.users.findById(user.id);
  t.equal(after?.recoverySentAt, undefined);
  t.same(after?.confirmationSentAt, at);
});

t.test('a token that only a column of its user has is found, spent, replaced and cleared', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  // All statements on one connection, which can tell their plans.
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => disconnect(sql));
  const store = createPostgresStore(sql, unencrypted);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const audit = auditEntry(user, 'user_recovery_requested', { facts });
  const at = new Date(facts.nowMs);
  const hash = 'a'.repeat(56);
  const types = ['recovery_token', 'confirmation_token'] as const;
  const giveToken = () =>
    sql`update users set recovery_token = ${hash}, recovery_sent_at = ${at} where id = ${user.id}`;
  const find = () => store.oneTimeTokens.find([hash], types);

  await giveToken();
  const found = await find();
  t.match(found?.token, { userId: user.id, type: 'recovery_token', keptAs: hash, relatesTo: user.email, at });
  if (found === undefined) throw new Error('just found');
  const spent = await Promise.all([1, 2].map(() => store.oneTimeTokens.spend(found.token)));
  t.same(spent.filter(Boolean), [true]);
  t.equal(await find(), undefined);

  await giveToken();
  await store.oneTimeTokens.clear(user.id, { except: ['recovery_token'] });
  t.ok(await find());
  await store.oneTimeTokens.clear(user.id);
  t.equal(await find(), undefined);

  await giveToken();
  const next = { userId: user.id, hash: 'b'.repeat(56), relatesTo: user.email, at };
  await store.oneTimeTokens.replace([{ ...next, type: 'recovery_token' }], audit);
  t.equal(await find(), undefined);

  await sql`set plan_cache_mode = force_generic_plan`;
  await find();
  const [statement] = await sql<{ name: string }[]>`
    select name from pg_prepared_statements
    where statement like '%recovery_token = h.hash%' and statement not like '%pg_prepared_statements%'`;
  const lines = await sql.unsafe(`explain execute "${statement?.name}"(null, null)`);
  const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n');
  t.notMatch(plan, /Seq Scan/);
  for (const type of types) t.match(plan, `${type}_idx`);
});
