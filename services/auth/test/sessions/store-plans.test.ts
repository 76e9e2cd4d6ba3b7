import { randomUUID } from 'node:crypto';
import t from 'tap';
import { Store } from '../../src/app/store.ts';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { connect } from '../../src/db/connection.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { insertUser, metadata, newRefreshToken } from '../helpers/test-store.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

/** PostgreSQL switches to a generic plan after five executions. */
const callsUntilOnePlan = 7;

t.test('cost of a request does not depend on the number of sessions or refreshes', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  // Plans can only be inspected on the connection that prepared the statements.
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  await refreshOften(new Store(sql, { cipher: unencrypted }));

  const statements = await sql<{ name: string; parameters: number; statement: string }[]>`
    select name, statement, cardinality(parameter_types) as parameters
    from pg_prepared_statements
    where generic_plans > 0 and cardinality(parameter_types) > 0 and statement ~ 'from sessions where|update refresh_tokens'`;
  const plans = new Map<string, string>();
  for (const { name, parameters, statement } of statements) {
    const nulls = Array.from({ length: parameters }, () => 'null').join();
    const lines = await sql.unsafe(`explain execute "${name}"(${nulls})`);
    plans.set(statement, lines.map((line) => String(line['QUERY PLAN'])).join('\n'));
  }

  t.equal(plans.size, 3, 'statements that find a user, find a token, and rotate');
  for (const plan of plans.values()) {
    t.notMatch(plan, /Seq Scan on (sessions|refresh_tokens)/);
    t.notMatch(plan, /(session_id_revoked|sessions_user_id|user_id_created_at)_idx/);
  }
});

async function refreshOften(store: Store): Promise<void> {
  const user = await insertUser(store, { email: 'ada@example.com' });
  const at = new Date(metadata.nowMs);
  const { userAgent, clientAddress: ip } = metadata;
  for (let call = 0; call < callsUntilOnePlan; call++) {
    const [id, token, successor] = [randomUUID(), newRefreshToken(), newRefreshToken()];
    const audit = auditEntry(user, 'login', { metadata });
    await store.sessions.start(
      { id, userId: user.id, aal: 'aal1', method: 'otp', userAgent, ip, tag: '', refreshToken: token, at },
      audit,
    );
    await store.sessions.findWithUser(user.id, id);
    await store.refreshTokens.findByToken(token);
    const rotation = { token, successor, sessionId: id, userAgent, ip, at };
    t.ok(await store.refreshTokens.rotate(rotation, audit));
  }
}
