import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { insertGotrueRows } from '../helpers/gotrue-rows.ts';
import {
  createGotrueSchema,
  type GotrueSchemaDate,
  readCatalog,
  readGotrueSchema,
} from '../helpers/gotrue-schema.ts';
import { runCommand } from '../helpers/run-command.ts';
import { emptyDatabase, testDatabase } from '../helpers/test-database.ts';

/** Settings that start, with secrets in every place that has one. */
const environment = {
  GOTRUE_SITE_URL: 'https://shop.example.com',
  API_EXTERNAL_URL: 'https://auth.example.com',
  GOTRUE_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://auth:geheim@127.0.0.1:1/nowhere',
  GOTRUE_JWT_SECRET: 'geheim, at least thirty-two characters',
  GOTRUE_JWT_ADMIN_ROLES: 'service_role',
  GOTRUE_SMTP_HOST: 'smtp.example.com',
  GOTRUE_SMTP_ADMIN_EMAIL: 'auth@example.com',
  GOTRUE_SMTP_PASS: 'geheim',
  GOTRUE_SMTP_MAX_FREQUENCY: '0s',
  GOTRUE_OPERATOR_TOKEN: 'geheim',
  GOTRUE_EXTERNAL_VERCEL_MARKETPLACE_ENABLED: 'true',
  GOTRUE_EXTERNAL_GOOGLE_SECRET: 'geheim',
  GOTRUE_SAML_PRIVATE_KEY: 'geheim',
  GOTRUE_COOKIE_KEY: 'geheim',
  GOTRUE_UNKNOWN_SECRET: 'geheim',
  GOTRUE_DB_NAMESPACE: 'auth',
};

interface Checked {
  readonly code: number | null;
  readonly out: string;
  readonly errors: string;
}

async function check(
  t: Test,
  variables: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<Checked> {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const file = join(folder.path, 'gotrue.env');
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  await writeFile(file, lines.join('\n'));
  const { exitCode, output, errors } = await runCommand(['check', `--env-file=${file}`, ...args], {
    cwd: folder.path,
    // Variables here do not count: the file has all of them.
    env: { GOTRUE_SITE_URL: 'nonsense' },
  });
  t.notMatch(output + errors, 'geheim', 'no secret is shown');
  return { code: exitCode, out: output, errors };
}

/** A database of GoTrue with users in it. */
async function gotrueDatabase(t: Test, date: GotrueSchemaDate) {
  const { url } = await emptyDatabase(t);
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  await createGotrueSchema(sql, await readGotrueSchema(date));
  await insertGotrueRows(sql);
  return { url, sql };
}

t.test('check reports settings without effect, differences and database contents', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2024-10');
  await sql`update auth.users set encrypted_password = 'md5:1', raw_user_meta_data = ${sql.json({ x: 'y'.repeat(5000) })}
    where email = 'bob@example.com'`;
  await sql`update auth.users set encrypted_password = ${'{"key_id": "old","data":"geheim"}'}, is_sso_user = true
    where email = 'cleo@example.com'`;
  await sql`update auth.identities set provider = 'google' where email = 'dora@example.com'`;
  await sql`update auth.users set email = null where email = 'dora@example.com'`;
  await sql`update auth.mfa_factors set factor_type = 'webauthn'`;
  await sql`update auth.users set encrypted_password = '$pbkdf2-sha256$i=1$c2FsdA$aGFzaA'
    where email = 'emil@example.com'`;
  const before = await readCatalog(sql);
  const { code, out, errors } = await check(t, environment, ['--database-url', url]);
  t.equal(errors, '');
  t.equal(code, 0);
  for (const line of [
    'The server would start.',
    'GOTRUE_OPERATOR_TOKEN: accepted without effect',
    'GOTRUE_UNKNOWN_SECRET: unknown',
    'GOTRUE_COOKIE_KEY: The only cookie binds a sign-in',
    'GOTRUE_EXTERNAL_VERCEL_MARKETPLACE_ENABLED: this identity provider is not supported',
    'GOTRUE_SMTP_MAX_FREQUENCY: 0: no spacing; with GoTrue 60 s',
    'GOTRUE_DB_NAMESPACE: takes effect here; GoTrue reads DB_NAMESPACE only',
    'GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: not set: 10 s',
    'SVC_DB_SHARED_WITH_GOTRUE: not set',
    'SVC_SECURITY_TRUSTED_PROXIES: not set',
    /database \w+ at 127\.0\.0\.1:\d+ \(PostgreSQL \d+\S*\): schema auth, at migration 2024\d+ of GoTrue \(2024-\d\d-\d\d\), Tollgate has not run on it yet/,
    /pending migrations: 0001_users, .*0034_events.*, 0036_recovery_codes/,
    /which add: api_keys, .*mfa_recovery_code_sets, .*oauth_client_settings, .*rate_limits, .*tollgate_events, .*sessions\.refresh_token_counter/,
    'sessions: GoTrue before October 2025 CANNOT REFRESH SESSIONS',
    'indexes: tollgate_users_created, ',
    'users: 6',
    'passwords: 1 bcrypt',
    'passwords: 1 of an unknown format: CANNOT BE VERIFIED',
    'passwords: 1 encrypted with key old, which the settings do not have: CANNOT BE VERIFIED',
    'passwords: 1 PBKDF2, replaced by argon2id at the next sign-in',
    'passwords: 2 users without a password',
    'single sign-on: 1 users, who CANNOT SIGN IN',
    'identities of google: 1',
    'users without password, email and phone: 1, who can sign in with an external provider only',
    'factors by webauthn: 1, supported',
    'raw_user_meta_data: 1 users have more than 4 KiB',
    'docs/coming-from-gotrue.md',
  ])
    t.match(out, line);
  t.same(await readCatalog(sql), before, 'the database is unchanged');
});

t.test('check --json for a migrated database', async (t) => {
  const { url } = await testDatabase(t);
  const sql = postgres(url, { max: 1 });
  await sql`insert into auth.custom_oauth_providers (id, provider_type, identifier, name, client_id, client_secret,
    authorization_url, token_url, userinfo_url)
    values (gen_random_uuid(), 'oauth2', 'custom:x', 'X', 'x', 'x', 'https://x.test/a', 'https://x.test/t', 'https://x.test/u')`;
  await sql`insert into auth.oauth_clients (id, registration_type, redirect_uris, grant_types, client_secret_hash,
    token_endpoint_auth_method) select gen_random_uuid(), 'manual', 'https://x.test', grants, '', 'client_secret_post'
    from unnest(array['authorization_code', 'client_credentials']) grants`;
  await sql.end();
  const variables = { ...environment, GOTRUE_SAML_ENABLED: 'true', GOTRUE_JWT_EXP: 'soon' };
  const { code, out } = await check(t, variables, ['--json', `--database-url=${url}`]);
  t.equal(code, 1);
  t.notMatch(out, 'tollgate_users_created', 'no index is missing');
  t.match(out, /"oauth_clients",\s*"text": "1, whose users CANNOT SIGN IN with them/);
  t.match(out, /"custom_oauth_providers",\s*"text": "1, supported"/);
  t.match(JSON.parse(out), {
    wouldStart: false,
    stops: [
      { subject: 'GOTRUE_JWT_EXP', text: /^is "soon", expected a duration/ },
      {
        subject: 'GOTRUE_SAML_ENABLED',
        text: 'is "true", expected false: SAML single sign-on is not supported yet',
      },
    ],
    withoutEffect: [{ subject: 'GOTRUE_COOKIE_KEY' }],
    database: { schema: 'auth', tollgateHasRun: true, pendingMigrations: [], adds: [] },
  });
});

t.test('check finds the schema of GoTrue if DB_NAMESPACE is wrong', async (t) => {
  const { url } = await gotrueDatabase(t, '2026-06');
  const { GOTRUE_DB_NAMESPACE: _schema, ...variables } = environment;
  const { code, out } = await check(t, { ...variables, DB_NAMESPACE: 'people' }, ['--database-url', url]);
  t.equal(code, 0);
  t.match(
    out,
    'schema people: is empty and would be created, but GoTrue has tables in auth: set DB_NAMESPACE',
  );
});

t.test('check reports a schema that is too old for the OAuth server', async (t) => {
  const variables = { ...environment, GOTRUE_OAUTH_SERVER_ENABLED: 'true' };
  for (const date of ['2024-10', '2025-10', '2026-06'] as const) {
    const { url } = await gotrueDatabase(t, date);
    const { code, out } = await check(t, variables, ['--database-url', url]);
    const isCurrent = date === '2026-06';
    t.equal(code, isCurrent ? 0 : 1, date);
    t.equal(out.includes('the OAuth server needs the table oauth_clients'), !isCurrent, date);
  }
});

t.test('check reports databases that would prevent a start', async (t) => {
  const unavailable = await check(t, environment);
  t.equal(unavailable.code, 1);
  t.match(unavailable.out, 'would not start: 1 problem.');
  t.match(unavailable.out, 'DATABASE_URL: PostgreSQL is not reachable at 127.0.0.1:1');

  const { url, sql } = await gotrueDatabase(t, '2024-03');
  await sql`alter table auth.users drop column is_anonymous`;
  await sql`create role limited login password 'geheim'`;
  await sql`grant usage on schema auth to limited`;
  const limited = Object.assign(new URL(url), { username: 'limited', password: 'geheim' });
  const old = await check(t, environment, ['--database-url', limited.href]);
  t.equal(old.code, 1);
  t.match(
    old.out,
    'schema auth: too old: it lacks users.is_anonymous. The oldest supported schema is that of GoTrue from March 2024',
  );
  t.match(old.out, 'user limited: is not allowed to create tables in the schema auth');
  t.match(old.out, /user limited: does not own .*users.* of the schema auth/);
});

t.test('an unreadable file is a one-line error', async (t) => {
  t.match(await check(t, { 'A B': 'x' }), {
    code: 1,
    out: '',
    errors: /gotrue\.env:1: expected NAME=value\n$/,
  });
  // Node looks at that flag, too, wherever it stands.
  const { code, errors } = await check(t, environment, ['--env-file', '/nowhere/gotrue.env']);
  t.not(code, 0);
  t.match(errors, /^[^\n]*\/nowhere\/gotrue\.env[^\n]*\n$/);
  t.match(await check(t, environment, ['--help']), {
    code: 0,
    out: /check .*Check the environment.*--env-file <file>/s,
  });
  t.match(await check(t, environment, ['extra']), { code: 2, errors: /^check: accepts no arguments/ });
});
