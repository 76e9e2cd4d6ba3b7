import t from 'tap';
import { auditEntry } from '../../src/domain/audit-entry.ts';
import type { OneTimeToken } from '../../src/ports/one-time-token-store.ts';
import { facts, insertUser, testStore } from '../helpers/test-store.ts';

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
  t.same(found?.token, token('second'));
  t.same(found?.user.recoverySentAt, at);
  t.equal(found?.user.confirmationSentAt, undefined);

  const spent = await Promise.all([1, 2, 3].map(() => store.oneTimeTokens.spend(token('second'))));
  t.same(spent.filter(Boolean), [true], 'one of three that come together');
});
