import { randomBytes, randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Sql } from 'postgres';
import postgres from 'postgres';
import type { Test } from 'tap';
import t from 'tap';
import { hashOneTimeToken } from '../../../src/one-time-tokens/hash.ts';
import { toStoredHash } from '../../../src/one-time-tokens/store.ts';
import { makeCounterToken } from '../../../src/sessions/refresh-token.ts';
import { adminToken } from '../../helpers/admin.ts';
import {
  type Answer,
  type AuthServer,
  jwtSecret,
  signedIn,
  startAuthServer,
} from '../../helpers/auth-server.ts';
import { gotrueHash, gotrueUsers, insertGotrueRows } from '../../helpers/gotrue-rows.ts';
import {
  createEarlierSchema,
  createGotrueSchema,
  type GotrueSchemaDate,
  gotrueSchemaDates,
  readGotrueSchema,
} from '../../helpers/gotrue-schema.ts';
import { allowUnreadableRows, emptyDatabase } from '../../helpers/test-database.ts';

const { ada, bob, cleo, dora, emil, gus } = gotrueUsers;
const token = adminToken();
const fay = { email: 'fay@example.com', password: 'battery staple' };

async function gotrueDatabase(t: Test, date: GotrueSchemaDate): Promise<{ url: string; sql: Sql }> {
  const { url } = await emptyDatabase(t);
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  await createGotrueSchema(sql, await readGotrueSchema(date));
  await insertGotrueRows(sql);
  return { url, sql };
}

/** The schema as it would be where nothing has a default. */
async function dropDefaults(sql: Sql): Promise<void> {
  const rows = await sql`select table_name, column_name from information_schema.columns
    where table_schema = 'auth' and column_default is not null`;
  for (const { table_name: table, column_name: column } of rows)
    await sql`alter table auth.${sql(String(table))} alter column ${sql(String(column))} drop default`;
}

function post(server: AuthServer, path: string, body: object, more: object = {}): Promise<Answer> {
  return server.call('POST', path, { body, ...more });
}

function refresh(server: AuthServer, refreshToken: string): Promise<Answer> {
  return post(server, '/token?grant_type=refresh_token', { refresh_token: refreshToken });
}

/** Response of a link. */
async function follow(server: AuthServer, type: string, hash: string): Promise<URL> {
  const { status, headers, text } = await server.call('GET', `/verify?type=${type}&token=${hash}`);
  if (status !== 303) throw new Error(`no redirect: ${status} ${text}`);
  return new URL(headers.get('location') ?? '');
}

async function useAll(t: Test, server: AuthServer): Promise<void> {
  t.equal((await server.call('GET', '/ready')).status, 200);

  const iat = Math.floor(server.clock.nowMs() / 1000);
  const issued = adminToken({
    iss: 'https://example.com/auth/v1',
    sub: ada.id,
    aud: 'authenticated',
    iat,
    exp: iat + 3600,
    email: ada.email,
    phone: '',
    role: 'authenticated',
    aal: 'aal1',
    amr: [{ method: 'password', timestamp: iat }],
    session_id: ada.sessionId,
    is_anonymous: false,
  });
  t.equal((await server.call('GET', '/user', { token: issued })).status, 200, 'an access token of GoTrue');
  const old = signedIn(await refresh(server, ada.refreshToken));
  t.match(old.refreshToken, /^[a-z2-7]{12}$/);
  const current = signedIn(await refresh(server, old.refreshToken));
  t.match(await server.call('GET', '/user', { token: current.accessToken }), {
    status: 200,
    body: { email: ada.email, factors: [{ id: ada.factorId, status: 'verified' }] },
  });
  const byPassword = await post(server, '/token?grant_type=password', {
    email: ada.email,
    password: ada.password,
  });
  const { accessToken } = signedIn(byPassword);
  t.match(await post(server, '/token?grant_type=password', { email: ada.email, password: 'wrong horse' }), {
    status: 400,
    body: { error_code: 'invalid_credentials' },
  });

  const challenge = await post(server, `/factors/${ada.factorId}/challenge`, {}, { token: accessToken });
  const verified = await post(
    server,
    `/factors/${ada.factorId}/verify`,
    {
      challenge_id: challenge.body.id,
      code: TOTP.generate({
        secret: Secret.fromBase32(ada.totpSecret),
        timestamp: server.clock.nowMs(),
      }),
    },
    { token: accessToken },
  );
  t.equal((await refresh(server, signedIn(verified).refreshToken)).status, 200, 'a second factor');

  const confirmed = await follow(server, 'signup', gotrueHash(bob.email, bob.code));
  t.match(confirmed.hash, /access_token=/, 'a link of a sign-up');
  t.match((await follow(server, 'signup', gotrueHash(bob.email, bob.code))).hash, /otp_expired/, 'once');
  const recovered = { type: 'recovery', email: cleo.email, token: cleo.code };
  t.equal((await post(server, '/verify', recovered)).status, 200, 'a code of a recovery');
  t.equal((await post(server, '/verify', recovered)).status, 403, 'once');
  const link = await follow(server, 'magiclink', `pkce_${gotrueHash(dora.email, dora.code)}`);
  const exchange = { auth_code: link.searchParams.get('code'), code_verifier: dora.verifier };
  t.equal((await post(server, '/token?grant_type=pkce', exchange)).status, 200, 'a link with PKCE');
  t.match(
    await post(server, '/verify', { type: 'email_change', email: emil.newEmail, token: emil.code }),
    { status: 200, body: { user: { email: emil.newEmail } } },
    'a change of email',
  );
  t.match(
    await post(server, '/verify', { type: 'sms', phone: `+${gus.phone}`, token: gus.code }),
    { status: 200, body: { user: { phone: gus.phone } } },
    'a code to a phone',
  );

  const signedUp = signedIn(await post(server, '/signup', fay));
  signedIn(await post(server, '/token?grant_type=password', fay));
  const enrolled = await post(server, '/factors', { factor_type: 'totp' }, { token: signedUp.accessToken });
  t.equal(enrolled.status, 200);
  const again = await post(
    server,
    `/factors/${String(enrolled.body.id)}/challenge`,
    {},
    { token: signedUp.accessToken },
  );
  t.equal(again.status, 200);
  for (const type of ['magiclink', 'recovery']) {
    const generated = await post(server, '/admin/generate_link', { type, email: fay.email }, { token });
    t.match((await follow(server, type, String(generated.body.hashed_token))).hash, /access_token=/, type);
    const { body } = await post(server, '/admin/generate_link', { type, email: fay.email }, { token });
    const byCode = { type, email: fay.email, token: body.email_otp };
    t.equal((await post(server, '/verify', byCode)).status, 200, `a code of ${type}`);
  }

  const users = `/admin/users/${bob.id}`;
  t.match(await server.call('GET', '/admin/users?per_page=10', { token }), {
    body: { users: { length: 7 } },
  });
  t.match(await server.call('GET', users, { token }), { body: { email: bob.email } });
  t.match(await server.call('PUT', users, { token, body: { role: 'editor' } }), { body: { role: 'editor' } });
  t.match(await post(server, '/admin/users', { email: 'gil@example.com' }, { token }), { status: 200 });
  t.equal((await server.call('DELETE', users, { token })).status, 200);
  t.equal((await server.call('GET', '/admin/audit', { token })).status, 200);
}

/** GoTrue reads these as values that are there. */
const neverNull = {
  users: [
    ...['instance_id', 'aud', 'role', 'confirmation_token', 'recovery_token', 'email_change_token_new'],
    ...['email_change_token_current', 'email_change', 'phone_change', 'phone_change_token'],
    ...['reauthentication_token', 'email_change_confirm_status', 'is_sso_user', 'is_anonymous'],
    ...['created_at', 'updated_at'],
  ],
  refresh_tokens: ['id', 'instance_id', 'token', 'user_id', 'parent', 'revoked', 'created_at', 'updated_at'],
  sessions: ['user_id', 'created_at', 'updated_at', 'aal'],
  mfa_factors: ['friendly_name', 'secret'],
  mfa_challenges: ['otp_code', 'ip_address'],
  audit_log_entries: ['id', 'instance_id', 'created_at'],
  identities: ['id', 'created_at', 'updated_at'],
} as const;

async function checkRows(t: Test, sql: Sql): Promise<void> {
  for (const [table, columns] of Object.entries(neverNull)) {
    const [row] = await sql.unsafe(
      `select count(*)::int as all, count(*) filter (where num_nulls(${columns.join()}) > 0)::int as incomplete from auth.${table}`,
    );
    t.ok(row?.all > 0, `${table} has rows`);
    t.equal(row?.incomplete, 0, `no nulls in ${table}`);
  }
  t.same([...(await sql`select token from auth.refresh_tokens where token !~ '^[a-z0-9]{12}$'`)], []);
}

for (const date of gotrueSchemaDates)
  t.test(`a GoTrue database of ${date} is migrated`, async (t) => {
    const { url, sql } = await gotrueDatabase(t, date);
    const server = await startAuthServer(t, {
      DB_DATABASE_URL: url,
      JWT_AUD: 'authenticated',
      MAILER_OTP_EXP: '3600',
    });
    await useAll(t, server);
    await checkRows(t, sql);
    const added = server.logs().includes('GoTrue versions before October 2025 can no longer refresh');
    t.equal(added, date < '2025-10', 'a warning if columns were added to sessions');
  });

t.test('a GoTrue session with version 2 refresh tokens can be refreshed', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2025-10');
  const hmacKey = randomBytes(32).toString('base64url');
  await sql`update auth.sessions set refresh_token_hmac_key = ${hmacKey}, refresh_token_counter = 3 where id = ${ada.sessionId}`;
  const server = await startAuthServer(t, { DB_DATABASE_URL: url, JWT_AUD: 'authenticated' });
  const tokenOf = (counter: number) => makeCounterToken({ sessionId: ada.sessionId, counter }, hmacKey);
  t.equal(signedIn(await refresh(server, tokenOf(3))).refreshToken, tokenOf(4));
  t.match(await sql`select refresh_token_counter from auth.sessions where id = ${ada.sessionId}`, [
    { refresh_token_counter: '4' },
  ]);
});

t.test('no statement relies on column defaults', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2024-03');
  await dropDefaults(sql);
  const server = await startAuthServer(t, { DB_DATABASE_URL: url, JWT_AUD: 'authenticated' });
  await useAll(t, server);
  await checkRows(t, sql);
});

t.test('tokens of an earlier version remain valid', async (t) => {
  const { url } = await emptyDatabase(t);
  allowUnreadableRows(url);
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  await createEarlierSchema(sql);
  const refreshToken = 'abcdefghijklmnopqrstuvwxyz';
  const code = '123456';
  const hash = hashOneTimeToken(ada.email, code, { jwtSecret, dbSharedWithGotrue: false });
  await sql.unsafe(`
    set search_path to auth;
    insert into users (id, instance_id, aud, role, email, email_confirmed_at, recovery_sent_at, created_at, updated_at)
      values ('${ada.id}', '${randomUUID()}', '', 'authenticated', '${ada.email}', now(), now(), now(), now());
    insert into sessions (id, user_id, aal, created_at, updated_at) values ('${ada.sessionId}', '${ada.id}', 'aal1', now(), now());
    insert into refresh_tokens (token, user_id, session_id, revoked, parent, created_at, updated_at)
      values ('${refreshToken}', '${ada.id}', '${ada.sessionId}', false, '', now(), now());
    insert into one_time_tokens (id, user_id, token_type, token_hash, relates_to)
      values ('${randomUUID()}', '${ada.id}', 'recovery_token', '${toStoredHash(hash)}', '${ada.email}');
    reset search_path`);
  const server = await startAuthServer(t, { DB_DATABASE_URL: url });
  t.match(signedIn(await refresh(server, refreshToken)).refreshToken, /^[a-z2-7]{12}$/);
  const verification = { type: 'recovery', email: ada.email, token: code };
  t.equal((await post(server, '/verify', verification)).status, 200);
  t.equal((await server.call('GET', '/ready')).status, 200);
});

t.test('the owner of the schema needs no other privilege', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2025-10');
  // Roles belong to the server, not to the database.
  await sql`create role gotrue_owner login password 'owner'`;
  await sql.unsafe(`do $$ declare statement text; begin
    for statement in
      select format('alter table auth.%I owner to gotrue_owner', relname)
        from pg_class where relnamespace = 'auth'::regnamespace and relkind = 'r'
      union all
      select format('alter type auth.%I owner to gotrue_owner', typname) from pg_type where typnamespace = 'auth'::regnamespace and typtype = 'e'
    loop execute statement; end loop;
    alter schema auth owner to gotrue_owner;
  end $$`);
  const owner = new URL(url);
  owner.username = 'gotrue_owner';
  owner.password = 'owner';
  const server = await startAuthServer(t, { DB_DATABASE_URL: owner.href, JWT_AUD: 'authenticated' });
  await useAll(t, server);
});

t.test('columns that were removed for an old GoTrue are restored at the next start', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2024-10');
  const before = await startAuthServer(t, { DB_DATABASE_URL: url });
  await before.stop();
  await sql`alter table auth.sessions drop column refresh_token_hmac_key, drop column refresh_token_counter`;
  await sql`delete from auth.tollgate_migrations where name >= '0030'`;
  const server = await startAuthServer(t, { DB_DATABASE_URL: url, JWT_AUD: 'authenticated' });
  await useAll(t, server);
});

t.test('a schema that is too old is rejected before any change', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2024-03');
  await sql`alter table auth.users drop column is_anonymous`;
  await sql`alter table auth.flow_state drop column auth_code_issued_at`;
  await t.rejects(startAuthServer(t, { DB_DATABASE_URL: url }), {
    message:
      /schema auth of database \w+ at .* is too old: it lacks flow_state.auth_code_issued_at, users.is_anonymous\. The oldest supported schema is that of GoTrue from March 2024/,
  });
  t.same([...(await sql`select to_regclass('auth.one_time_tokens') as name`)], [{ name: null }]);
});

t.test('a server is not ready if its database lacks a column, or requires an unknown one', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2026-06');
  const server = await startAuthServer(t, { DB_DATABASE_URL: url });
  const isReady = async () => (await server.call('GET', '/ready')).status === 200;
  t.equal(await isReady(), true);
  await sql`alter table auth.sessions rename column aal to level`;
  t.equal(await isReady(), false);
  t.match(server.logs(), /the schema lacks sessions\.aal/);
  await sql`alter table auth.sessions rename column level to aal`;
  t.equal(await isReady(), true);
  await sql`alter table auth.refresh_tokens add column kind text not null default 'x'`;
  t.equal(await isReady(), true, 'one with a default');
  await sql`alter table auth.refresh_tokens alter column kind drop default`;
  t.equal(await isReady(), false);
  t.match(server.logs(), /the schema requires values for refresh_tokens\.kind/);
  await server.stop();
  await t.rejects(startAuthServer(t, { DB_DATABASE_URL: url }), { message: /refresh_tokens\.kind/ });
});

t.test('on a shared database GoTrue can verify codes and passwords', async (t) => {
  const { url, sql } = await gotrueDatabase(t, '2026-06');
  const server = await startAuthServer(t, {
    DB_DATABASE_URL: url,
    DB_SHARED_WITH_GOTRUE: 'true',
    JWT_AUD: 'authenticated',
  });
  await useAll(t, server);
  await checkRows(t, sql);
  const { body } = await post(
    server,
    '/admin/generate_link',
    { type: 'recovery', email: fay.email },
    { token },
  );
  const hash = gotrueHash(fay.email, String(body.email_otp));
  t.equal(body.hashed_token, hash);
  const kept = () => sql`
    select recovery_token, (select token_hash from auth.one_time_tokens where user_id = users.id), encrypted_password
    from auth.users where email = ${fay.email}`;
  t.match(await kept(), [{ recovery_token: hash, token_hash: hash, encrypted_password: /^\$2a\$10\$/ }]);
  t.match((await follow(server, 'recovery', hash)).hash, /access_token=/);
  t.match(await kept(), [{ recovery_token: '', token_hash: null }], 'spent in both places');
  const [row] = await sql`select encrypted_password as hash from auth.users where id = ${ada.id}`;
  t.match(row?.hash, /^\$2a\$10\$/, 'a hash of too low a cost is replaced by one that GoTrue can verify');
});

t.test('guesses of GoTrue links are limited', async (t) => {
  const server = await startAuthServer(t, { DB_SHARED_WITH_GOTRUE: 'true' });
  const own = await startAuthServer(t, { DB_DATABASE_URL: server.databaseUrl });
  signedIn(await post(server, '/signup', fay));
  const linkOf = async (at: AuthServer) => {
    const { body } = await post(
      at,
      '/admin/generate_link',
      { type: 'recovery', email: fay.email },
      { token },
    );
    return { type: 'recovery', token_hash: body.hashed_token, code: body.email_otp };
  };
  const verify = (at: AuthServer, hash: unknown) =>
    post(at, '/verify', { type: 'recovery', token_hash: hash });
  for (let guess = 0; guess < 100; guess++) await verify(server, gotrueHash(fay.email, String(guess)));
  const { token_hash: hash, code } = await linkOf(server);
  t.match(await verify(server, hash), {
    status: 429,
    body: { error_code: 'over_request_rate_limit' },
  });
  const byCode = { type: 'recovery', email: fay.email, token: code };
  t.equal((await post(server, '/verify', byCode)).status, 200, 'the code of the same mail');
  t.equal((await verify(own, (await linkOf(own)).token_hash)).status, 200, 'a link that cannot be guessed');
  server.clock.advance(10 * 60_000);
  t.equal((await verify(server, (await linkOf(server)).token_hash)).status, 200, 'later');
});
