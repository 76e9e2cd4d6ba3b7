import { randomUUID } from 'node:crypto';
import t from 'tap';
import { connect, disconnect } from '../../src/db/connection.ts';
import { Store } from '../../src/db/store.ts';
import {
  BatchedReader,
  type IdentityKey,
  type IdentityStateStore,
} from '../../src/ext-authz/identity-cache.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

const onSend = () => 'sent';
const unanswered = new Promise<never>(() => undefined);

t.test('a statement reads at most 500 users, and at most four run concurrently', async (t) => {
  const sizes: number[] = [];
  const held: (() => void)[] = [];
  const store: Pick<IdentityStateStore, 'findMany'> = {
    async findMany(keys) {
      sizes.push(keys.length);
      await new Promise<void>((resolve) => held.push(resolve));
      return keys.map(() => undefined);
    },
  };
  const reads = new BatchedReader({ store, onSend });
  const begun = Array.from({ length: 2_600 }, () => reads.read(makeKey()));
  const answered = Promise.all(begun.map(({ state }) => state));
  while (sizes.length < 4) await nextTurn();
  await nextTurn();
  t.same(sizes, [500, 500, 500, 500]);
  t.equal(begun[1_999]?.sent, 'sent');
  t.equal(begun[2_000]?.sent, undefined, 'it is queued');
  held[0]?.();
  while (sizes.length < 5) await nextTurn();
  held[1]?.();
  while (sizes.length < 6) await nextTurn();
  t.same(sizes.slice(4), [500, 100]);
  for (const release of held) release();
  t.equal((await answered).length, 2_600);
});

t.test('a read times out and frees its slot', async (t) => {
  let asked = 0;
  const store: Pick<IdentityStateStore, 'findMany'> = {
    async findMany(keys) {
      asked += 1;
      return asked <= 4 ? unanswered : keys.map(() => undefined);
    },
  };
  const reads = new BatchedReader({ store, onSend, timeoutMs: 20 });
  for (let batch = 0; batch < 4; batch++) {
    const { state } = reads.read(makeKey());
    await t.rejects(state, { code: 'authorization_unavailable', detail: /did not respond/ });
  }
  t.equal(await reads.read(makeKey()).state, undefined);
});

t.test('reads beyond 10,000 in the queue are rejected', async (t) => {
  const reads = new BatchedReader({ store: { findMany: () => unanswered }, onSend, timeoutMs: 1 });
  const begun = Array.from({ length: 10_000 }, () => reads.read(makeKey()).state);
  t.throws(() => reads.read(makeKey()), { code: 'authorization_unavailable', detail: /too many/ });
  const outcomes = await Promise.allSettled(begun);
  t.ok(outcomes.every(({ status }) => status === 'rejected'));
});

function makeKey(): IdentityKey {
  return { userId: randomUUID(), sessionId: undefined };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** After so many calls PostgreSQL keeps one plan for all values. */
const callsUntilOnePlan = 7;

t.test('to ask for states does not cost more the more users and sessions there are', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  // All statements on one connection, which can tell their plans.
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => disconnect(sql));
  const store = new Store(sql, { cipher: unencrypted });
  const keys = Array.from({ length: 500 }, () => ({ userId: randomUUID(), sessionId: randomUUID() }));
  for (let call = 0; call < callsUntilOnePlan; call++) await store.identityStates.findMany(keys);

  const statements = await sql<{ name: string }[]>`
    select name from pg_prepared_statements where generic_plans > 0 and statement ~ '^[ \\n]*select u.role'`;
  t.equal(statements.length, 1);
  const lines = await sql.unsafe(`explain execute "${statements[0]?.name}"(null, null)`);
  const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n');
  t.notMatch(plan, /Seq Scan/);
  t.match(plan, /sessions_pkey/);
  t.match(plan, /users_pkey/);
});
