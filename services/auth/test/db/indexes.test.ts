import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres from 'postgres';
import t from 'tap';
import { Store } from '../../src/app/store.ts';
import { connect } from '../../src/db/connection.ts';
import { IndexBuilder } from '../../src/db/index-builder.ts';
import { ownIndexes } from '../../src/db/indexes.ts';
import { migrate } from '../../src/db/migrate.ts';
import { countRows } from '../../src/db/paging.ts';
import { userListing } from '../../src/users/search.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { allowUnreadableRows, testDatabase } from '../helpers/test-database.ts';
import { unencrypted } from '../helpers/unencrypted.ts';

const silent = createLogger({ level: 'fatal', format: 'json' });

const readDefinitions = `select indexname, indexdef from pg_indexes where schemaname = 'auth' order by 1`;

t.test('replicas make missing and invalid indexes, one of them at a time', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 2 });
  t.teardown(() => sql.end());
  const store = new Store(sql, { cipher: unencrypted });
  const before = await sql.unsafe(readDefinitions);
  t.same(await store.missingIndexes(), [], 'a new database has all');
  await sql`drop index tollgate_users_created, tollgate_audit_created`;
  await sql`update pg_index set indisvalid = false where indexrelid = 'tollgate_users_email'::regclass`;
  const missing = ['tollgate_users_created', 'tollgate_users_email', 'tollgate_audit_created'];
  t.same(await store.missingIndexes(), missing);

  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ level: 'info', format: 'json', destination });
  // Another process, which ends.
  const other = postgres(databaseUrl, { max: 1 });
  await other`select pg_advisory_lock(hashtextextended('tollgate_indexes auth', 0))`;
  const builders = [1, 2].map(
    () => new IndexBuilder({ databaseUrl, dbNamespace: 'auth', store, logger, retryMs: 5 }),
  );
  for (const builder of builders) builder.start();
  await awaitUntil(() => lines.filter((line) => line.includes('another process')).length > 2, {
    what: 'attempts of builders that wait',
  });
  t.same(await store.missingIndexes(), missing);
  await other.end();
  await awaitUntil(async () => (await store.missingIndexes()).length === 0, { what: 'the indexes' });
  await Promise.all(builders.map((builder) => builder.stop()));
  t.same(await sql.unsafe(readDefinitions), before);
  for (const name of missing)
    t.equal(lines.filter((line) => line.includes(`"index":"${name}"`)).length, 1, `${name} is made once`);
});

t.test('a user who may not make indexes is logged with what to do', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  await sql`drop index tollgate_users_phone`;
  await sql`create role reader login in role pg_read_all_data`;
  t.teardown(() => sql`drop role reader`);
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const builder = new IndexBuilder({
    databaseUrl: databaseUrl.replace('postgres@', 'reader@'),
    dbNamespace: 'auth',
    store: new Store(sql, { cipher: unencrypted }),
    logger: createLogger({ level: 'warn', format: 'json', destination }),
  });
  builder.start();
  await awaitUntil(() => lines.length > 0, { what: 'a warning' });
  await builder.stop();
  t.match(lines[0], /must be owner of table users.*tollgate-auth migrate/);
});

t.test('tables with rows get indexes after the start, or by the migrate command', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  const store = new Store(sql, { cipher: unencrypted });
  allowUnreadableRows(databaseUrl);
  await sql`insert into users (id) values (gen_random_uuid())`;
  const always = ownIndexes.filter(({ extension }) => extension === undefined);
  for (const { name } of always) await sql`drop index ${sql(name)}`;
  const options = { databaseUrl, dbNamespace: 'auth' };
  await migrate(options, { logger: silent });
  t.equal((await store.missingIndexes()).length, always.length);
  await migrate(options, { logger: silent, indexes: 'wait' });
  t.same(await store.missingIndexes(), []);
});

t.test(
  'an installed pg_trgm adds an index for substrings, and an index that was replaced goes away',
  async (t) => {
    const { url: databaseUrl } = await testDatabase(t);
    const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
    t.teardown(() => sql.end());
    const store = new Store(sql, { cipher: unencrypted });
    await sql`create schema "My extensions"`;
    await sql`create extension pg_trgm schema "My extensions"`;
    await sql`create index tollgate_users_plan on users (left(raw_app_meta_data ->> 'plan', 100))`;
    allowUnreadableRows(databaseUrl);
    await sql`insert into users (id, email) select gen_random_uuid(), 'user' || n || '@example.com' from generate_series(1, 5000) n`;
    t.same(await store.missingIndexes(), ['tollgate_users_substrings']);
    await migrate({ databaseUrl, dbNamespace: 'auth' }, { logger: silent, indexes: 'wait' });
    t.same(await store.missingIndexes(), []);
    t.same(await sql`select 1 from pg_indexes where indexname = 'tollgate_users_plan'`, []);
    const count = countRows(userListing, { part: 'ada@' });
    const lines = await sql.unsafe(`explain ${count.text}`, count.bind({}) as string[], { prepare: false });
    const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n');
    t.equal(plan.split('on tollgate_users_substrings').length - 1, 3, plan);
  },
);

t.test('/ready names missing indexes and is ready', async (t) => {
  const server = await startAuthServer(t);
  t.match(await server.call('GET', '/ready'), { status: 200, text: '{"status":"ready"}' });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  await sql`drop index auth.tollgate_users_created`;
  t.match(await server.call('GET', '/ready'), {
    status: 200,
    body: { status: 'ready', missing_indexes: ['tollgate_users_created'] },
  });
});
