import { randomUUID } from 'node:crypto';
import t from 'tap';
import { Store } from '../../src/app/store.ts';
import { Batch, connect, disconnect, queryAtMost } from '../../src/db/connection.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

t.test('a statement has at most 500 items, others wait for a free slot', async (t) => {
  const sizes: number[] = [];
  const held: (() => void)[] = [];
  const batch = new Batch<number, number>({
    maxConcurrent: 4,
    async run(items) {
      sizes.push(items.length);
      await new Promise<void>((resolve) => held.push(resolve));
      return items.map((item) => -item);
    },
  });
  const numbers = Array.from({ length: 2_600 }, (_, index) => index + 1);
  const results = Promise.all(numbers.map((number) => batch.add(number)));
  while (sizes.length < 4) await nextTurn();
  await nextTurn();
  t.same(sizes, [500, 500, 500, 500]);
  held[0]?.();
  while (sizes.length < 5) await nextTurn();
  held[1]?.();
  while (sizes.length < 6) await nextTurn();
  t.same(sizes.slice(4), [500, 100]);
  for (const release of held) release();
  t.same(
    await results,
    numbers.map((number) => -number),
  );
});

t.test('an error rejects the items of its statement and frees the slot', async (t) => {
  const batch = new Batch<string, string>({
    maxConcurrent: 1,
    async run(items) {
      if (items.includes('bad')) throw new Error('failed');
      return items;
    },
  });
  const outcomes = await Promise.allSettled(['good', 'bad'].map((item) => batch.add(item)));
  t.ok(outcomes.every(({ status }) => status === 'rejected'));
  t.equal(await batch.add('next'), 'next');
});

t.test('items beyond 10,000 in the queue are rejected', async (t) => {
  const batch = new Batch<number, number>({ maxConcurrent: 1, run: async (items) => items });
  const accepted = Array.from({ length: 10_000 }, (_, index) => batch.add(index));
  await t.rejects(batch.add(10_000), { code: 'database_unavailable' });
  t.equal((await Promise.all(accepted)).length, 10_000);
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** After so many calls PostgreSQL keeps one plan for all values. */
const callsUntilOnePlan = 7;

t.test('cost of reading identities does not depend on the number of users and sessions', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  // All statements on one connection, which can tell their plans.
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => disconnect(sql));
  const store = new Store(sql, { cipher: unencrypted });
  const keys = Array.from({ length: 500 }, () => ({
    userId: randomUUID(),
    sessionId: randomUUID(),
    orgId: randomUUID(),
  }));
  for (let call = 0; call < callsUntilOnePlan; call++) await store.identityStates.findMany(keys);

  const statements = await sql<{ name: string }[]>`
    select name from pg_prepared_statements where generic_plans > 0 and statement ~ '^[ \\n]*select u.role'`;
  t.equal(statements.length, 1);
  const lines = await sql.unsafe(`explain execute "${statements[0]?.name}"(null, null, null)`);
  const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n');
  t.notMatch(plan, /Seq Scan/);
  t.match(plan, /sessions_pkey/);
  t.match(plan, /users_pkey/);
  t.match(plan, /organization_members_pkey/);
  t.match(plan, /organizations_pkey/);
});

t.test('a statement that takes too long is cancelled, and its connection stays usable', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => disconnect(sql));
  const text = `select pg_sleep($1)::text, current_setting('statement_timeout') as limit`;
  const late = () => new Error('too late');
  await t.rejects(queryAtMost({ timeoutMs: 1, late })(sql, text, [60]), { message: 'too late' });
  t.match(await queryAtMost({ timeoutMs: 20_000, late })(sql, text, [0]), [{ limit: '20s' }]);
  t.match(await sql`show statement_timeout`, [{ statement_timeout: '15s' }], 'for that statement only');
});
