import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createBatchedReads } from '../../src/ext-authz/identity-cache.ts';
import type { IdentityKey, IdentityStateStore } from '../../src/ext-authz/store.ts';

const note = () => 'sent';
const unanswered = new Promise<never>(() => undefined);

t.test('a statement asks for 500 users at most, and four run at a time', async (t) => {
  const sizes: number[] = [];
  const held: (() => void)[] = [];
  const store: Pick<IdentityStateStore, 'findMany'> = {
    async findMany(keys) {
      sizes.push(keys.length);
      await new Promise<void>((resolve) => held.push(resolve));
      return keys.map(() => undefined);
    },
  };
  const reads = createBatchedReads({ store, note });
  const begun = Array.from({ length: 2_600 }, () => reads.begin(makeKey()));
  const answered = Promise.all(begun.map(({ state }) => state));
  while (sizes.length < 4) await nextTurn();
  await nextTurn();
  t.same(sizes, [500, 500, 500, 500]);
  t.equal(begun[1_999]?.sent, 'sent');
  t.equal(begun[2_000]?.sent, undefined, 'it waits');
  held[0]?.();
  while (sizes.length < 5) await nextTurn();
  held[1]?.();
  while (sizes.length < 6) await nextTurn();
  t.same(sizes.slice(4), [500, 100]);
  for (const release of held) release();
  t.equal((await answered).length, 2_600);
});

t.test('a database that does not answer is not waited for, and others may ask in its stead', async (t) => {
  let asked = 0;
  const store: Pick<IdentityStateStore, 'findMany'> = {
    async findMany(keys) {
      asked += 1;
      return asked <= 4 ? unanswered : keys.map(() => undefined);
    },
  };
  const reads = createBatchedReads({ store, note, answerTimeoutMs: 20 });
  for (let batch = 0; batch < 4; batch++) {
    const { state } = reads.begin(makeKey());
    await t.rejects(state, { code: 'authorization_unavailable', detail: /did not answer/ });
  }
  t.equal(await reads.begin(makeKey()).state, undefined);
});

t.test('who comes when 10,000 wait is refused', async (t) => {
  const reads = createBatchedReads({ store: { findMany: () => unanswered }, note, answerTimeoutMs: 1 });
  const begun = Array.from({ length: 10_000 }, () => reads.begin(makeKey()).state);
  t.throws(() => reads.begin(makeKey()), { code: 'authorization_unavailable', detail: /too many/ });
  const outcomes = await Promise.allSettled(begun);
  t.ok(outcomes.every(({ status }) => status === 'rejected'));
});

function makeKey(): IdentityKey {
  return { userId: randomUUID(), sessionId: undefined };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
