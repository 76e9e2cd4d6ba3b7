import { randomUUID } from 'node:crypto';
import t from 'tap';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { insertUser, metadata, testStore } from '../helpers/test-store.ts';

t.test('changes of users are reported on commit, not on rollback', async (t) => {
  const announced: string[] = [];
  const store = await testStore(t, { onIdentityChange: (ids) => announced.push(...ids) });
  const user = await insertUser(store, { email: 'ada@example.com' });
  const audit = auditEntry(user, 'user_modified', { metadata });
  const at = new Date(metadata.nowMs);
  const ids = { userId: user.id, sessionId: randomUUID() };
  t.same(announced, [], 'a new user is in no cache');

  await store.sessions.end('local', ids, audit);
  t.same(announced.splice(0), [user.id]);
  await store.transaction(async (within) => {
    await within.users.update(user.id, { role: 'editor' }, { at, audit });
    await within.transaction((inner) => inner.sessions.end('global', ids, audit));
    t.same(announced, []);
  });
  t.same(announced.splice(0), [user.id]);
  const failed = store.transaction(async (within) => {
    await within.users.update(user.id, { role: 'owner' }, { at, audit });
    throw new Error('no');
  });
  await t.rejects(failed, { message: 'no' });
  t.same(announced, []);
  await store.users.delete(user.id, audit);
  t.same(announced, [user.id]);
});
