// The check that runs after each test with a database finds rows that GoTrue cannot read.
import postgres from 'postgres';
import t from 'tap';
import { findUnreadableRows, listConditions } from './readable-rows.ts';
import { allowUnreadableRows, testDatabase } from './test-database.ts';

/** A value of each type that meets no condition. */
const badValues: Readonly<Record<string, string>> = {
  timestamp: `'infinity'`,
  json: `'"text"'`,
  text: `'Bad value!'`,
  character: `'Bad value!'`,
  bigint: '-1',
};

/** A value of any type, for columns without conditions on it. */
const anyValues: Readonly<Record<string, string>> = {
  ...badValues,
  uuid: 'gen_random_uuid()',
  inet: `'192.0.2.1'`,
  bool: 'true',
  integer: '1',
  smallint: '1',
  bytea: `'x'`,
  'text[]': `'{}'`,
};

function badValue(type: string, enums: Readonly<Record<string, string>>): string {
  const [, value] = Object.entries(anyValues).findLast(([prefix]) => type.startsWith(prefix)) ?? [];
  return enums[type] ?? value ?? 'null';
}

t.test('a row with values that GoTrue cannot read is reported by its column', async (t) => {
  const { url } = await testDatabase(t);
  allowUnreadableRows(url);
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  t.same(await findUnreadableRows(url, 'own'), []);
  const conditions = await listConditions(sql, 'own');
  // Rows need no owner here.
  await sql`set session_replication_role = replica`;
  await sql.unsafe(`do $$ declare statement text; begin
    for statement in select format('alter table %s drop constraint %I', conrelid::regclass, conname) from pg_constraint
      where contype = 'c' and connamespace = 'auth'::regnamespace
    loop execute statement; end loop; end $$`);
  const enums = Object.fromEntries(
    (
      await sql`select format_type(enumtypid, null) as type, quote_literal(min(enumlabel::text)) as label from pg_enum group by enumtypid`
    ).map(({ type, label }) => [String(type), String(label)]),
  );
  const columns = await sql`
    select attrelid::regclass::text as table, attname as name, format_type(atttypid, atttypmod) as type
    from pg_attribute where attnum > 0 and not attisdropped and attgenerated = ''
      and attrelid::regclass::text = any(${[...new Set(conditions.map(({ from }) => from))]})`;
  for (const [table, all = []] of Object.entries(Object.groupBy(columns, ({ table }) => String(table)))) {
    const values = all.map(({ type }) => badValue(String(type), enums));
    await sql.unsafe(
      `insert into ${table} (${all.map(({ name }) => String(name)).join()}) values (${values.join()})`,
    );
  }
  const names = (kind: 'required' | 'value') =>
    new Set(conditions.filter((condition) => condition.kind === kind).map(({ name }) => name));
  const found = async () => new Set(await findUnreadableRows(url, 'own'));
  t.same(await found(), names('value'));
  for (const { from, name } of conditions.filter(({ kind }) => kind === 'required'))
    await sql.unsafe(`update ${from} set ${name.split('.').at(-1)} = null`);
  const reported = await found();
  t.same(
    [...names('required')].filter((name) => !reported.has(name)),
    [],
  );
});

t.test('hashes of codes must be stored as the servers of the database need them', async (t) => {
  const { url } = await testDatabase(t);
  allowUnreadableRows(url);
  const sql = postgres(url, { max: 1 });
  t.teardown(() => sql.end());
  await sql`set session_replication_role = replica`;
  const forms = { shared: 'ab'.repeat(28), own: `sha256:${'ab'.repeat(32)}` } as const;
  for (const [storage, other] of [
    ['shared', 'own'],
    ['own', 'shared'],
  ] as const) {
    await sql`delete from auth.one_time_tokens`;
    await sql`insert into auth.one_time_tokens (id, user_id, token_type, token_hash, relates_to)
      values (gen_random_uuid(), gen_random_uuid(), 'recovery_token', ${`pkce_${forms[storage]}`}, 'ada@example.com')`;
    t.same(await findUnreadableRows(url, storage), []);
    t.same(await findUnreadableRows(url, 'mixed'), []);
    t.same(await findUnreadableRows(url, other), ['one_time_tokens.token_hash']);
  }
});
