import { randomUUID } from 'node:crypto';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres, { type Sql } from 'postgres';
import t from 'tap';
import { integer, json, type SqlType, text, timestamptz, uuid } from '../../src/db/sql-types.ts';
import { parameters, type Statement, statement, statementChannel } from '../../src/db/statement.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { unencrypted } from '../helpers/unencrypted.ts';
import { findWrongValues, valueType } from '../helpers/value-types.ts';

type AnyStatement = Statement<never, unknown>;

const source = join(import.meta.dirname, '../../src');

/**
 * The statements that modules of the service declare, and composed ones.
 * Modules must not be loaded before.
 */
async function loadStatements(sql: Sql): Promise<readonly AnyStatement[]> {
  const statements: AnyStatement[] = [];
  statementChannel.subscribe((message) => {
    // Only statements are published.
    statements.push(message as AnyStatement);
  });
  for await (const file of glob('**/*.ts', { cwd: source })) {
    const path = join(source, file);
    if (/\bstatement\(/.test(await readFile(path, 'utf8'))) await import(path);
  }
  const { UserStore } = await import('../../src/users/store.ts');
  const { AuditLog } = await import('../../src/audit/audit-log.ts');
  const users = new UserStore(sql, unencrypted);
  const at = new Date();
  const changes = {
    ...{ aud: 'a', role: 'a', email: 'a', phone: '1', passwordHash: 'a', newEmail: 'a', newPhone: '1' },
    ...{ emailConfirmedAt: at, phoneConfirmedAt: at, invitedAt: at, bannedUntil: at },
    ...{ emailChangeConfirmStatus: 1, isAnonymous: false, appMetadata: {}, userMetadata: {} },
  };
  await users.update(randomUUID(), changes, { at, audit: { payload: {}, at, ip: '' } });
  const filter = {
    ...{ aud: 'a', part: 'a', prefix: 'a', email: 'a', phone: '1', provider: 'a', role: 'a', plan: 'a' },
    ...{ confirmed: true, banned: false, anonymous: false },
    ...{ createdFrom: at, createdBefore: at, lastSignInFrom: at, lastSignInBefore: at },
  };
  await users.listAfter(filter, {
    order: 'asc',
    limit: 1,
    after: { createdAt: '2026-01-01', id: randomUUID() },
  });
  await users.list(filter, { order: 'asc', limit: 1, offset: 0 });
  const search = { scope: 'author', text: 'a' } as const;
  const page = { limit: 1, offset: 0 };
  await new AuditLog(sql).list({ search, actorId: 'a', action: 'a', kind: 'a' }, page);
  await new AuditLog(sql).listUncounted({}, page);
  return statements;
}

/** The driver also sends numbers as text. */
function accepts(actual: string, declared: string): boolean {
  return valueType(actual) === valueType(declared) || (actual === 'bigint' && declared === 'integer');
}

/** A value of which the driver sends the type, as it does for values of requests. */
function sample({ name }: SqlType<unknown>): unknown {
  const values: Readonly<Record<string, unknown>> = { boolean: true, Date: new Date(), Buffer: Buffer.of(0) };
  return name.endsWith('[]') ? ['x'] : (values[valueType(name)] ?? null);
}

interface Catalog {
  /** Names by object id. */
  readonly types: ReadonlyMap<number, string>;
  /** `table id.number` of columns that can be null. */
  readonly nullable: ReadonlySet<string>;
}

async function readCatalog(sql: Sql): Promise<Catalog> {
  const types = await sql<{ oid: number; name: string }[]>`
    select oid, format_type(oid, null) as name from pg_type`;
  const columns = await sql<{ name: string }[]>`
    select attrelid || '.' || attnum as name from pg_attribute where not attnotnull`;
  return {
    types: new Map(types.map(({ oid, name }) => [oid, name])),
    nullable: new Set(columns.map(({ name }) => name)),
  };
}

/** The types in the library lack where a column comes from. */
interface Described {
  readonly types: readonly number[];
  readonly columns: readonly {
    readonly name: string;
    readonly type: number;
    readonly table: number;
    readonly number: number;
  }[];
}

/** Where a statement differs from what it declares. */
async function findMistakes(
  sql: Sql,
  { types, nullable }: Catalog,
  { text, parameters, columns, outerColumns }: AnyStatement,
): Promise<string[]> {
  const values = parameters.map(({ type }) => sample(type));
  const described = (await sql
    .unsafe(text, values as never[], { prepare: true })
    .describe()) as unknown as Described;
  const typeName = (id: number | undefined): string => types.get(id ?? 0) ?? 'unknown';
  const mistakes = parameters.flatMap(({ type }, index) => {
    const actual = typeName(described.types[index]);
    return accepts(actual, type.name) ? [] : `$${index + 1} is ${actual}, declared as ${type.name}`;
  });
  const declared = new Map([columns, ...outerColumns].flatMap(Object.entries<SqlType<unknown>>));
  if (declared.size === 0) return mistakes;
  const actualNames = new Set(described.columns.map(({ name }) => name));
  for (const name of declared.keys()) if (!actualNames.has(name)) mistakes.push(`${name} is missing`);
  for (const { name, type, table, number } of described.columns) {
    const expected = declared.get(name);
    const actual = typeName(type);
    if (expected === undefined) mistakes.push(`${name} is not declared`);
    else if (valueType(actual) !== valueType(expected.name))
      mistakes.push(`${name} is ${actual}, declared as ${expected.name}`);
    else if (nullable.has(`${table}.${number}`) && expected.nulls === 'none')
      mistakes.push(`${name} can be null`);
  }
  return mistakes;
}

async function openCatalog(test: Pick<typeof t, 'teardown' | 'name'>) {
  const { url: databaseUrl } = await testDatabase(test);
  const sql = postgres(databaseUrl, { max: 1, connection: { search_path: 'auth' } });
  test.teardown(() => sql.end());
  return { sql, catalog: await readCatalog(sql) };
}

t.test('each statement has the parameters and columns that it declares', async (t) => {
  const { sql, catalog } = await openCatalog(t);
  const statements = await loadStatements(sql);
  t.ok(statements.length > 90, `${statements.length} statements`);
  const mistakes: string[] = [];
  for (const statement of statements) {
    const found = await findMistakes(sql, catalog, statement);
    if (found.length > 0) mistakes.push(`${found.join('; ')}: ${statement.text.trim().slice(0, 200)}`);
  }
  t.same(mistakes, []);
});

t.test('wrong declarations are found', async (t) => {
  const { sql, catalog } = await openCatalog(t);
  const find = (wrong: AnyStatement) => findMistakes(sql, catalog, wrong);
  const p = { ...parameters(json, 'id'), ...parameters(text, 'at') };
  t.same(await find(statement({ role: text.orNull })`select role from users where id = ${p.id}`), [
    '$1 is uuid, declared as jsonb',
  ]);
  t.same(await find(statement({})`select from users where created_at < ${p.at}`), [
    '$1 is timestamp with time zone, declared as text',
  ]);
  t.same(await find(statement({ id: uuid, role: text, aud: integer })`select role, aud, email from users`), [
    'id is missing',
    'role can be null',
    'aud is character varying, declared as integer',
    'email is not declared',
  ]);
});

t.test('values that are not as declared are found', async (t) => {
  const find = (wrong: AnyStatement, row: Readonly<Record<string, unknown>>) =>
    findWrongValues({ statement: wrong, rows: [row] }).map((message) => message.split(' ')[0]);
  const user = statement(
    { id: uuid, role: text.orNull, count: integer },
    { at: timestamptz, by: text },
  )`select`;
  const right = { id: 'x', role: null, count: 1, at: new Date(), by: 'x' };
  t.same(find(user, right), []);
  t.same(find(user, { ...right, at: null, by: null }), [], 'no row of the outer join');
  t.same(find(user, { ...right, at: null }), ['at']);
  t.same(find(user, { ...right, id: null, count: '1' }), ['id', 'count']);
});
