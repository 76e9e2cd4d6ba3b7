import t from 'tap';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { insertUser, metadata, testStore } from '../helpers/test-store.ts';

t.test('update changes the given values, merges metadata and returns the user', async (t) => {
  const store = await testStore(t);
  const user = await insertUser(store, { email: 'ada@example.com' });
  const of = { at: new Date(metadata.nowMs + 1000), audit: auditEntry(user, 'user_modified', { metadata }) };

  const first = await store.users.update(
    user.id,
    { phone: '4915112345678', userMetadata: { a: 1, b: 2 }, bannedUntil: new Date(metadata.nowMs) },
    of,
  );
  t.match(first, { ok: true, user: { email: user.email, phone: '4915112345678', updatedAt: of.at } });
  const second = await store.users.update(
    user.id,
    { phone: null, userMetadata: { a: null, c: 3 }, bannedUntil: null },
    of,
  );
  t.ok(second.ok);
  if (!second.ok) return;
  t.match(second.user, { phone: '', userMetadata: { b: 2, c: 3 }, bannedUntil: undefined });
  t.notOk('a' in second.user.userMetadata);
  t.same(await store.users.findById(user.id), second.user);
});

t.test('update to a contact of another user is rejected', async (t) => {
  const store = await testStore(t);
  const ada = await insertUser(store, { email: 'ada@example.com' });
  const bob = await insertUser(store, { email: 'bob@example.com' });
  const of = { at: new Date(metadata.nowMs), audit: auditEntry(bob, 'user_modified', { metadata }) };
  await store.users.update(ada.id, { phone: '1555' }, of);
  t.same(await store.users.update(bob.id, { email: ada.email }, of), { ok: false, reason: 'email_exists' });
  t.same(await store.users.update(bob.id, { phone: '1555' }, of), { ok: false, reason: 'phone_exists' });
  const unknownId = '00000000-0000-4000-8000-000000000000';
  t.same(await store.users.update(unknownId, { role: 'x' }, of), { ok: false, reason: 'not_found' });
});
