import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import { ApiKeyStore } from '../../src/api-keys/store.ts';
import { connect } from '../../src/db/connection.ts';
import { Usage } from '../../src/db/usage.ts';
import { administerKeys, checkKey, createKeyOf, startKeyServer } from '../helpers/api-keys.ts';

const logger = createLogger({ level: 'fatal', format: 'json' });

function startUsage(recordUse: (uses: readonly { id: string; at: Date }[]) => Promise<void>) {
  const scheduled: (() => void)[] = [];
  const schedule = (_delayMs: number, run: () => void) => {
    scheduled.push(run);
    return () => undefined;
  };
  return { scheduled, usage: new Usage('API keys', { store: { recordUse }, schedule, logger }) };
}

t.test('uses are written in batches, and those of a key at most once a minute', async (t) => {
  const written: string[][] = [];
  const { usage, scheduled } = startUsage(async (uses) => {
    written.push(uses.map(({ id, at }) => `${id} ${at.getTime()}`));
  });
  usage.record('a', 1_000);
  usage.record('a', 2_000);
  usage.record('b', 3_000);
  t.equal(scheduled.length, 1, 'one flush for all');
  await usage.flush();
  usage.record('a', 60_999);
  usage.record('b', 63_000);
  await usage.flush();
  t.same(written, [['a 1000', 'b 3000'], ['b 63000']]);
});

t.test('many keys are written in statements of 500', async (t) => {
  const sizes: number[] = [];
  const { usage } = startUsage(async (uses) => void sizes.push(uses.length));
  for (let index = 0; index < 12_000; index += 1) usage.record(`key-${index}`, 1_000);
  await usage.stop();
  t.same(
    sizes,
    Array.from({ length: 20 }, () => 500),
    'at most 10,000 wait',
  );
});

t.test('a failed write is repeated with the next use', async (t) => {
  let fails = true;
  const written: string[] = [];
  const { usage } = startUsage(async (uses) => {
    if (fails) throw new Error('no database');
    written.push(...uses.map(({ id }) => id));
  });
  usage.record('a', 1_000);
  await usage.flush();
  fails = false;
  usage.record('a', 2_000);
  await usage.flush();
  t.same(written, ['a']);
});

t.test('a key that another transaction has locked does not hold up the others', async (t) => {
  const server = await startKeyServer(t);
  const [locked, free] = [await createKeyOf(server), await createKeyOf(server)];
  const sql = connect({ databaseUrl: server.databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 2 });
  t.teardown(() => sql.end());
  const at = new Date(server.clock.nowMs());
  await sql.begin(async (other) => {
    await other`select from api_keys where id = ${locked.id} for update`;
    await new ApiKeyStore(sql).recordUse([locked, free].map(({ id }) => ({ id, at })));
    t.match(await other`select id, last_used_at from api_keys where last_used_at is not null`, [
      { id: free.id, last_used_at: at },
    ]);
  });
});

t.test('the last use is stored when the server stops, and does not invalidate the key', async (t) => {
  const server = await startKeyServer(t);
  const other = await startKeyServer(t, { DB_DATABASE_URL: server.databaseUrl });
  const { id, key } = await createKeyOf(server);
  t.match(await checkKey(server, { 'x-api-key': key }), { status: 200 });
  const usedAt = new Date(server.clock.nowMs()).toISOString();
  await server.stop();
  t.match((await administerKeys(other, 'GET', `/${id}`)).body, { last_used_at: usedAt });
});
