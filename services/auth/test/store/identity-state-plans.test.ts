import { randomUUID } from 'node:crypto';
import t from 'tap';
import { connect, disconnect } from '../../src/db/connection.ts';
import { Store } from '../../src/db/store.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

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
