import { randomUUID } from 'node:crypto';
import { createLogger } from '@tollgate/kit/logger';
import postgres, { type Sql } from 'postgres';
import t, { type Test } from 'tap';
import { ownIndexes } from '../../src/db/indexes.ts';
import { migrate } from '../../src/db/migrate.ts';
import {
  createEarlierSchema,
  createGotrueSchema,
  gotrueSchemaDates,
  readCatalog,
  readExpectedSchema,
  readGotrueSchema,
  sortedSchema,
} from '../helpers/gotrue-schema.ts';
import { allowUnreadableRows, emptyDatabase, testDatabase } from '../helpers/test-database.ts';

const silent = createLogger({ level: 'fatal', format: 'json' });
const noInstance = '00000000-0000-0000-0000-000000000000';

/** Tables of ours, next to those of GoTrue. */
const ownTables = [
  'oauth_client_settings',
  'api_keys',
  ...['organization_domains', 'organization_invitations', 'organization_members', 'organizations'],
  ...[
    'rate_limits',
    'session_authorization_details',
    'session_keys',
    'session_organizations',
    'session_resources',
    'dpop_proofs',
  ],
  ...['session_authentications', 'oidc_authorizations', 'oauth_consent_resources'],
  ...['oauth_device_codes', 'oauth_pushed_requests', 'browser_sessions'],
  'tollgate_events',
  'tollgate_migrations',
  'tollgate_totp_periods',
  'tollgate_webhooks',
];

/** The catalog without our indexes on tables of GoTrue, and those. */
async function readWithoutOwnIndexes(sql: Sql) {
  const { tables, ...catalog } = await readCatalog(sql);
  const isOwn = (index: string) =>
    ownIndexes.some(({ name }) => index.startsWith(`CREATE INDEX ${name} ON `));
  const others = Object.entries(tables).map(
    ([name, { indexes, ...table }]) =>
      [name, { ...table, indexes: (indexes ?? []).filter((index) => !isOwn(index)) }] as const,
  );
  const own = Object.values(tables).flatMap(({ indexes }) => (indexes ?? []).filter(isOwn));
  return { catalog, tables: Object.fromEntries(others), own };
}

function open(t: Test, url: string) {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  return sql;
}

for (const date of gotrueSchemaDates)
  t.test(`the schema of ${date} matches its file`, async (t) => {
    const sql = open(t, (await emptyDatabase(t)).url);
    const schema = await readGotrueSchema(date);
    await createGotrueSchema(sql, schema);
    t.same(await readCatalog(sql), sortedSchema(schema));
  });

t.test('a new database has the schema of GoTrue and our tables', async (t) => {
  const sql = open(t, (await testDatabase(t)).url);
  const { tables, catalog, own } = await readWithoutOwnIndexes(sql);
  const { tables: expected, ...rest } = sortedSchema(await readExpectedSchema());
  t.same(catalog, rest, 'enums and migrations');
  const always = ownIndexes.filter(({ extension }) => extension === undefined);
  t.equal(own.length, always.length, 'each of our indexes');
  t.same(new Set(Object.keys(tables)), new Set([...Object.keys(expected), ...ownTables]));
  for (const [name, table] of Object.entries(expected)) t.same(tables[name], table, name);
});

t.test('tables of recovery codes that GoTrue made are kept', async (t) => {
  const { url: databaseUrl } = await emptyDatabase(t);
  const sql = open(t, databaseUrl);
  const schema = await readExpectedSchema();
  await createGotrueSchema(sql, schema);
  await migrate({ databaseUrl, dbNamespace: 'auth' }, { logger: silent });
  const { catalog, tables } = await readWithoutOwnIndexes(sql);
  const { enums } = catalog;
  t.same(enums.factor_type, schema.enums.factor_type);
  const { tables: expected } = sortedSchema(schema);
  for (const name of ['mfa_recovery_code_sets', 'mfa_recovery_codes']) t.same(tables[name], expected[name]);
});

t.test('migrations that run again change nothing', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = open(t, databaseUrl);
  const before = await readCatalog(sql);
  await sql`delete from auth.tollgate_migrations`;
  await migrate({ databaseUrl, dbNamespace: 'auth' }, { logger: silent });
  t.same(await readCatalog(sql), before);
});

t.test('a database of an earlier version is migrated with its data', async (t) => {
  const { url: databaseUrl } = await emptyDatabase(t);
  allowUnreadableRows(databaseUrl);
  const sql = open(t, databaseUrl);
  await createEarlierSchema(sql);
  const [user, proven, other] = [randomUUID(), randomUUID(), randomUUID()];
  await sql.unsafe(`
    insert into auth.users (id, aud, role, email, confirmation_token, email_change, created_at, updated_at)
      values ('${user}', '', 'authenticated', 'ada@example.com', null, null, now(), now());
    insert into auth.audit_log_entries (payload, created_at) values ('{}', now());
    insert into auth.flow_state (id, user_id, provider_type, authentication_method, created_at, updated_at)
      values ('${other}', '${user}', 'email', 'otp', now(), now());
    insert into auth.mfa_factors (id, user_id, factor_type, status, created_at, updated_at, last_challenged_at, last_totp_period)
      select id::uuid, '${user}', 'totp', 'verified', now(), now(), '2026-01-01', period
      from (values ('${proven}', 58000000), ('${other}', null)) as f(id, period)`);

  await migrate({ databaseUrl, dbNamespace: 'auth' }, { logger: silent });

  const { tables, catalog, own } = await readWithoutOwnIndexes(sql);
  const { tables: expected, ...rest } = sortedSchema(await readExpectedSchema());
  t.same(own, [], 'tables with rows get our indexes while the server works');
  t.same(catalog, rest);
  t.same(new Set(Object.keys(tables)), new Set([...Object.keys(expected), ...ownTables]));
  for (const [name, { columns, ...table }] of Object.entries(expected)) {
    // Encrypted passwords may be in there.
    const kept = columns.map((column) => column.replace(/^(encrypted_password) .*/, '$1 text'));
    t.same(tables[name], { ...table, columns: kept }, name);
  }
  t.match(await sql`select confirmation_token, recovery_token, email_change, instance_id from auth.users`, [
    { confirmation_token: '', recovery_token: '', email_change: '', instance_id: noInstance },
  ]);
  t.match(await sql`select instance_id from auth.audit_log_entries`, [{ instance_id: noInstance }]);
  t.match(await sql`select provider_access_token from auth.flow_state where auth_code is not null`, [
    { provider_access_token: '' },
  ]);
  t.match(await sql`select * from auth.tollgate_totp_periods`, [{ factor_id: proven, period: 58_000_000 }]);
  t.equal((await sql`select 1 from auth.mfa_factors where last_challenged_at is not null`).length, 1);
  t.match(await sql`select secret, friendly_name from auth.mfa_factors`, [
    { secret: '', friendly_name: '' },
    { secret: '', friendly_name: '' },
  ]);
});
