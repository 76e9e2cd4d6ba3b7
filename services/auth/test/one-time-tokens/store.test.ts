import t from 'tap';
import { Store } from '../../src/app/store.ts';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { connect, disconnect } from '../../src/db/connection.ts';
import type { OneTimeToken } from '../../src/one-time-tokens/store.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { insertUser, metadata, testStore } from '../helpers/test-store.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

t.test('token replaces its predecessor, is found by its hash and spent once', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const at = new Date(metadata.nowMs);
  const token = (hash: string): OneTimeToken => {
    return { userId: user.id, type: 'recovery_token', hash, relatesTo: user.email, at };
  };
  const audit = auditEntry(user, 'user_recovery_requested', { metadata });

  await store.oneTimeTokens.replace([token('first')], audit);
  await store.oneTimeTokens.replace([token('second')], audit);

  t.equal(await store.oneTimeTokens.find(['first'], ['recovery_token']), undefined);
  t.equal(await store.oneTimeTokens.find(['second'], ['confirmation_token']), undefined);
  const found = await store.oneTimeTokens.find(['second'], ['confirmation_token', 'recovery_token']);
  const { hash: _hash, ...rest } = token('second');
  t.match(found?.token, { ...rest, storedHash: /^sha256:[0-9a-f]{64}$/ });
  t.same(found?.user.recoverySentAt, at);
  t.equal(found?.user.confirmationSentAt, undefined);

  if (found === undefined) throw new Error('just found');
  const spent = await Promise.all([1, 2, 3].map(() => store.oneTimeTokens.spend(found.token)));
  t.same(spent.filter(Boolean), [true], 'one of three concurrent requests');
});

t.test('token sent before the spacing has passed is not stored', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const audit = auditEntry(user, 'user_recovery_requested', { metadata });
  const send = (hash: string, type: OneTimeToken['type'], nowMs: number) =>
    store.oneTimeTokens.replace(
      [{ userId: user.id, type, hash, relatesTo: user.email, at: new Date(nowMs) }],
      audit,
      { notSince: new Date(nowMs - 60_000) },
    );
  const { nowMs } = metadata;
  const together = await Promise.all(['a', 'b', 'c'].map((hash) => send(hash, 'recovery_token', nowMs)));
  t.same(together.filter(Boolean), [true]);
  t.equal(await send('d', 'confirmation_token', nowMs), true, 'another type');
  t.equal(await send('e', 'recovery_token', nowMs + 59_999), false);
  t.equal(await store.oneTimeTokens.find(['e'], ['recovery_token']), undefined);
  t.equal(await send('f', 'recovery_token', nowMs + 60_000), true);
});

t.test('time of a token is that of the last message, also for a change of email', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const audit = auditEntry(user, 'user_modified', { metadata });
  const tokenOf = (type: OneTimeToken['type'], nowMs: number): OneTimeToken => {
    return { userId: user.id, type, hash: type, relatesTo: user.email, at: new Date(nowMs) };
  };
  await store.oneTimeTokens.replace([tokenOf('email_change_token_new', metadata.nowMs)], audit);
  const later = tokenOf('email_change_token_current', metadata.nowMs + 3_600_000);
  await store.oneTimeTokens.replace([later], audit);
  const found = await store.oneTimeTokens.find([later.hash], ['email_change_token_current']);
  t.same(found?.token.at, later.at);
});

t.test('withdrawn token leaves no trace', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const at = new Date(metadata.nowMs);
  const token: OneTimeToken = {
    userId: user.id,
    type: 'recovery_token',
    hash: 'first',
    relatesTo: user.email,
    at,
  };
  const audit = auditEntry(user, 'user_recovery_requested', { metadata });
  await store.oneTimeTokens.replace([token], audit);
  await store.oneTimeTokens.replace([{ ...token, type: 'confirmation_token', hash: 'other' }], audit);
  await store.oneTimeTokens.withdraw([token]);
  t.equal(await store.oneTimeTokens.find(['first'], ['recovery_token']), undefined);
  const after = await store.users.findById(user.id);
  t.equal(after?.recoverySentAt, undefined);
  t.same(after?.confirmationSentAt, at);
});

t.test('spending a token empties the column of the user where GoTrue stores it', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => disconnect(sql));
  const store = new Store(sql, { cipher: unencrypted, dbSharedWithGotrue: true });
  const user = await insertUser(store, { email: 'ada@example.com' });
  const audit = auditEntry(user, 'user_recovery_requested', { metadata });
  const token: OneTimeToken = {
    userId: user.id,
    type: 'recovery_token',
    hash: 'a'.repeat(56),
    relatesTo: user.email,
    at: new Date(metadata.nowMs),
  };
  const next = { ...token, hash: 'b'.repeat(56) };
  const columns = async () =>
    (await sql`select recovery_token, confirmation_token from users where id = ${user.id}`)[0];

  await store.oneTimeTokens.replace([token], audit);
  t.match(await columns(), { recovery_token: token.hash, confirmation_token: '' });
  await store.oneTimeTokens.replace([next], audit);
  t.match(await columns(), { recovery_token: next.hash });
  const found = await store.oneTimeTokens.find([next.hash], ['recovery_token']);
  t.match(found?.token, { storedHash: next.hash, isGuessable: true });
  if (found === undefined) throw new Error('just found');
  t.equal(await store.oneTimeTokens.spend({ ...found.token, storedHash: token.hash }), false);
  t.equal(await store.oneTimeTokens.spend(found.token), true);
  t.match(await columns(), { recovery_token: '' });

  await store.oneTimeTokens.replace([token], audit);
  await store.oneTimeTokens.clear(user.id, { except: ['recovery_token'] });
  t.match(await columns(), { recovery_token: token.hash });
  await store.oneTimeTokens.clear(user.id);
  t.match(await columns(), { recovery_token: '' });

  await store.oneTimeTokens.replace([token], audit);
  await store.oneTimeTokens.withdraw([token]);
  t.match(await columns(), { recovery_token: '' });

  const digesting = new Store(sql, { cipher: unencrypted });
  await store.oneTimeTokens.replace([token], audit);
  await digesting.oneTimeTokens.replace([next], audit);
  t.match(await columns(), { recovery_token: '' }, 'GoTrue cannot use a digest');
});
