import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres, { type Sql } from 'postgres';
import { Registry } from 'prom-client';
import t, { type Test } from 'tap';
import { CleanupStore, CleanupTimer, expiringKinds, removeBefore } from '../../src/app/cleanup.ts';
import { connect } from '../../src/db/connection.ts';
import { Metrics } from '../../src/metrics.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { allowUnreadableRows, testDatabase } from '../helpers/test-database.ts';

const dayMs = 86_400_000;
const now = Date.parse('2026-03-04T05:06:07.089Z');
const at = (ageDays: number) => new Date(now - ageDays * dayMs);
const user = '11111111-1111-1111-1111-111111111111';
const policy = {
  sessionTimeboxMs: 10 * dayMs,
  sessionInactivityTimeoutMs: 5 * dayMs,
  mailerOtpExpMs: dayMs,
  smsOtpExpMs: 60_000,
  oauthServerEnabled: true,
  oauthServerAuthorizationTtlMs: 600_000,
  rateLimitEmailSent: { kind: 'window', events: 1, periodMs: 7 * dayMs },
  rateLimitSmsSent: { kind: 'window', events: 1, periodMs: 1000 },
  'web3MaxValidityMs:ethereum': 600_000,
  'web3MaxValidityMs:solana': 600_000,
} as const;

async function openDatabase(t: Test): Promise<Sql> {
  const { url } = await testDatabase(t);
  allowUnreadableRows(url);
  const sql = connect({ databaseUrl: url, dbNamespace: 'auth', dbMaxPoolSize: 5 });
  t.teardown(() => sql.end());
  await sql`insert into users (id, created_at) values (${user}, ${at(100)})`;
  return sql;
}

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

t.test('old rows of every kind are removed, and new ones are kept', async (t) => {
  const sql = await openDatabase(t);
  const session = async (n: number, row: Record<string, unknown> = {}) =>
    void (await sql`insert into sessions ${sql({ id: uuid(n), user_id: user, created_at: at(1), ...row })}`);
  await session(1, { not_after: at(2) });
  await session(2, { not_after: at(0.5) });
  await session(3, { created_at: at(12), refreshed_at: at(1) });
  await session(4, { created_at: at(9), refreshed_at: at(7) });
  await session(5, { created_at: at(9), refreshed_at: at(5) });
  await session(6);
  for (const [token, days, id] of [
    ['revoked-long-ago', 32, 5],
    ['revoked-lately', 30, 5],
  ] as const)
    await sql`insert into refresh_tokens (token, revoked, updated_at, session_id, user_id)
      values (${token}, true, ${at(days)}, ${uuid(id)}, ${user})`;
  for (const [n, days] of [
    [1, 3],
    [2, 1.5],
  ] as const) {
    const type = n === 1 ? 'recovery_token' : 'confirmation_token';
    await sql`insert into one_time_tokens (id, user_id, token_type, token_hash, relates_to, created_at)
      values (${uuid(n)}, ${user}, ${type}, 'x', 'x', ${at(days).toISOString()}::timestamptz at time zone 'utc')`;
    const age = at(n === 1 ? 1.1 : 0.9);
    await sql`insert into flow_state (id, provider_type, authentication_method, created_at)
      values (${uuid(n)}, 'email', 'otp', ${at(days)})`;
    await sql`insert into oauth_client_states (id, provider_type, created_at) values (${uuid(n)}, 'x', ${at(days)})`;
    await sql`insert into mfa_factors (id, user_id, factor_type, status, created_at, updated_at, friendly_name)
      values (${uuid(n)}, ${user}, 'totp', 'unverified', ${age}, ${age}, ${String(n)})`;
    await sql`insert into mfa_factors (id, user_id, factor_type, status, created_at, updated_at, friendly_name)
      values (${uuid(n + 2)}, ${user}, 'totp', 'verified', ${at(50)}, ${at(50)}, ${String(n + 2)})`;
    await sql`insert into mfa_challenges (id, factor_id, created_at, ip_address)
      values (${uuid(n)}, ${uuid(3)}, ${age}, '192.0.2.1')`;
    await sql`insert into webauthn_challenges (id, challenge_type, session_data, expires_at)
      values (${uuid(n)}, 'authentication', '{}', ${age})`;
    await sql`insert into rate_limits (limiter, key, used, since) values ('x', ${n}, 1, ${at(n === 1 ? 8.1 : 7.9)}),
      ('known_network', ${n}, 1, ${at(n === 1 ? 91.1 : 90.9)})`;
  }

  await sql`insert into users (id, created_at, is_anonymous) values (${uuid(1)}, ${at(32)}, true), (${uuid(2)}, ${at(30)}, true)`;

  for (const days of [32, 30])
    await sql`insert into tollgate_events (user_id, type, data, retry_until) values (${user}, 'x', '{}', ${at(days)})`;

  await sql`insert into organizations (id, name, slug) values (${uuid(1)}, 'x', 'x')`;
  for (const [n, age] of [
    [1, 1.1],
    [2, 0.9],
  ] as const)
    await sql`insert into organization_invitations (id, organization_id, email, role, token_hash, expires_at)
      values (${uuid(n)}, ${uuid(1)}, ${String(n)}, 'member', ${n}, ${at(age)})`;

  for (const [n, age] of [
    [1, 1.1],
    [2, 0.9],
  ] as const)
    await sql`insert into api_keys (id, name, prefix, last4, digest, expires_at, created_at, updated_at)
      values (${uuid(n)}, 'x', 'tgk', 'x', ${n}, ${at(age)}, ${at(9)}, ${at(9)})`;

  await sql`insert into oauth_clients (id, registration_type, redirect_uris, grant_types, token_endpoint_auth_method)
    values (${uuid(1)}, 'manual', 'https://app.example', 'authorization_code', 'none')`;
  await sql`insert into oauth_clients (id, registration_type, redirect_uris, grant_types, token_endpoint_auth_method, created_at)
    values (${uuid(2)}, 'dynamic', 'https://app.example', 'authorization_code', 'none', ${at(9)})`;
  for (const [n, age] of [
    [1, 1.1],
    [2, 0.9],
  ] as const)
    await sql`insert into oauth_authorizations (id, authorization_id, client_id, redirect_uri, scope, created_at, expires_at)
      values (${uuid(n)}, ${n}, ${uuid(1)}, 'https://app.example', 'email', ${at(9)}, ${at(age)})`;
  for (const [n, age] of [
    [1, 1.1],
    [2, 0.9],
  ] as const) {
    await sql`insert into oidc_authorizations (request_id, stored_at) values (${uuid(n)}, ${at(age)})`;
    await sql`insert into oauth_pushed_requests (request_uri, client_id, parameters, expires_at)
      values (${n}, ${uuid(1)}, '', ${at(age)})`;
    await sql`insert into oauth_device_codes (request_id, device_code, user_code, expires_at, poll_interval)
      values (${uuid(n)}, ${n}, ${n}, ${at(age)}, 5)`;
    await sql`insert into browser_sessions (id, session_id, user_id, host, binding, code_expires_at, claims, created_at, used_at)
      values (${uuid(n)}, ${uuid(5)}, ${uuid(1)}, 'app.example', '', ${at(age)}, '{}', ${at(age)}, ${at(age)})`;
  }

  const cleanup = new CleanupStore(sql);
  const removed = new Map<string, number>();
  for (const kind of expiringKinds) {
    const before = removeBefore(kind, policy, now);
    removed.set(kind, before === undefined ? 0 : await cleanup.removeExpired(kind, before, 100));
  }
  t.same(Object.fromEntries(removed), Object.fromEntries(expiringKinds.map((kind) => [kind, 1])));
  const left = await sql`select id from sessions order by id`;
  t.same(
    left.map(({ id }) => id),
    [uuid(2), uuid(5), uuid(6)],
  );
  t.match(await sql`select token from refresh_tokens`, [{ token: 'revoked-lately' }]);
  t.match(await sql`select count(*)::int as n from mfa_factors`, [{ n: 3 }]);
});

t.test('clients that have registered themselves are kept while they are used', async (t) => {
  const sql = await openDatabase(t);
  const client = { redirect_uris: 'https://app.example', grant_types: 'authorization_code' };
  const names = ['unused', 'consented', 'revoked', 'asking', 'new', 'manual', 'blocked', 'deleted'] as const;
  const ids = new Map(names.map((name, index) => [name, uuid(index + 1)] as const));
  for (const [name, id] of ids)
    await sql`insert into oauth_clients ${sql({
      ...{ id, ...client, client_name: name, token_endpoint_auth_method: 'none' },
      registration_type: name === 'manual' ? 'manual' : 'dynamic',
      created_at: at(name === 'new' ? 7.9 : 8.1),
      deleted_at: name === 'deleted' ? at(8) : null,
    })}`;
  // Without their rows, clients with a metadata document would come back.
  const own = [...ids].map(([name, client_id]) => ({
    client_id,
    document_url: name === 'manual' ? null : `https://app.example/${name}`,
    disabled: name === 'blocked',
  }));
  await sql`insert into oauth_client_settings ${sql(own)}`;
  for (const name of ['consented', 'revoked'] as const)
    await sql`insert into oauth_consents ${sql({
      ...{ id: uuid(9), user_id: user, client_id: ids.get(name) ?? '', scopes: 'email', granted_at: at(8) },
      ...(name === 'revoked' && { id: uuid(10), revoked_at: at(7) }),
    })}`;
  await sql`insert into oauth_authorizations (id, authorization_id, client_id, redirect_uri, scope)
    values (${uuid(1)}, 'x', ${ids.get('asking') ?? ''}, 'https://app.example', 'email')`;

  const before = removeBefore('unused_clients', policy, now);
  t.equal(await new CleanupStore(sql).removeExpired('unused_clients', before ?? new Date(0), 100), 2);
  const kept = ['asking', 'blocked', 'consented', 'deleted', 'manual', 'new'];
  const clients = await sql`select client_name from oauth_clients order by client_name`;
  t.same(
    clients.map((row) => row.client_name),
    kept,
  );
  const settings = await sql`select client_id from oauth_client_settings`;
  t.equal(settings.length, kept.length);
  t.equal(removeBefore('unused_clients', { ...policy, oauthServerEnabled: false }, now), undefined);
});

t.test('active anonymous users are kept, and other users are not affected', async (t) => {
  const sql = await openDatabase(t);
  const old = { created_at: at(99), is_anonymous: true };
  await sql`insert into users ${sql([
    { id: uuid(1), ...old, last_sign_in_at: at(98) },
    { id: uuid(2), ...old, last_sign_in_at: at(1) },
    { id: uuid(3), ...old, last_sign_in_at: null },
    { id: uuid(4), ...old, last_sign_in_at: at(98), is_anonymous: false },
  ])}`;
  for (const [n, days] of [
    [1, 50],
    [3, 2],
  ] as const)
    await sql`insert into sessions (id, user_id, created_at, refreshed_at)
      values (${uuid(n)}, ${uuid(n)}, ${at(99)}, ${at(days).toISOString()}::timestamptz at time zone 'utc')`;
  t.equal(await new CleanupStore(sql).removeExpired('anonymous_users', at(31), 100), 1);
  const left = await sql`select id from users where id <> ${user} order by id`;
  t.same(
    left.map(({ id }) => id),
    [uuid(2), uuid(3), uuid(4)],
  );
  t.match(await sql`select id from sessions`, [{ id: uuid(3) }], 'sessions go with their user');
});

t.test('batches read the oldest rows by index, and do not lock while they read others', async (t) => {
  const { url } = await testDatabase(t);
  const sql = connect({ databaseUrl: url, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  // Tables of tests are small.
  for (const method of ['seqscan', 'bitmapscan', 'sort']) await sql.unsafe(`set enable_${method} = off`);
  await sql`set plan_cache_mode = force_generic_plan`;
  const cleanup = new CleanupStore(sql);
  for (const [kind, index] of [
    ['revoked_refresh_tokens', 'tollgate_refresh_tokens_revoked'],
    ['ended_sessions', 'sessions_not_after_idx'],
    ['old_sessions', 'tollgate_sessions_created'],
    ['idle_sessions', 'tollgate_sessions_created'],
    ['one_time_tokens', 'tollgate_one_time_tokens_created'],
    ['flow_states', 'flow_state_created_at_idx'],
    ['mfa_challenges', 'mfa_challenge_created_at_idx'],
    ['webauthn_challenges', 'webauthn_challenges_expires_at_idx'],
    ['unverified_factors', 'tollgate_mfa_factors_unverified'],
    ['oauth_authorizations', 'tollgate_oauth_authorizations_expiry'],
    ['anonymous_users', 'tollgate_users_anonymous'],
    ['events', 'tollgate_events_expiry'],
    ['api_keys', 'tollgate_api_keys_expiry'],
  ] as const) {
    await cleanup.removeExpired(kind, at(1), 10);
    const [statement] = await sql`select name from pg_prepared_statements
      where statement like '%limit $2%' and statement not like '%pg_prepared%' order by prepare_time desc limit 1`;
    const plan = await sql.unsafe(`explain execute "${statement?.name}"(null, null)`);
    t.match(plan.map((line) => String(line['QUERY PLAN'])).join('\n'), new RegExp(`using ${index} `), kind);
  }
});

t.test('sessions without a time limit never expire', (t) => {
  const endless = { ...policy, sessionTimeboxMs: 0, sessionInactivityTimeoutMs: 0 };
  t.equal(removeBefore('old_sessions', endless, now), undefined);
  t.equal(removeBefore('idle_sessions', endless, now), undefined);
  t.end();
});

t.test('guess limits are kept as long as they apply', (t) => {
  const endless = { ...policy, mailerOtpExpMs: 20 * dayMs };
  t.same(removeBefore('rate_limits', endless, now), at(21));
  t.end();
});

t.test('used messages of wallets are kept as long as they are valid', (t) => {
  const endless = { ...policy, 'web3MaxValidityMs:solana': 20 * dayMs };
  t.same(removeBefore('rate_limits', endless, now), at(41));
  t.end();
});

t.test('a bucket is kept until it is full', (t) => {
  const bucket = { kind: 'bucket', size: 10, refillEveryMs: dayMs } as const;
  t.same(removeBefore('rate_limits', { ...policy, rateLimitSmsSent: bucket }, now), at(11));
  t.end();
});

t.test('a session is removed with the last token of its revoked family', async (t) => {
  const sql = await openDatabase(t);
  await sql`insert into sessions (id, user_id, created_at) values (${uuid(1)}, ${user}, ${at(99)})`;
  for (const n of [1, 2, 3])
    await sql`insert into refresh_tokens (token, revoked, updated_at, session_id, user_id)
      values (${`t${n}`}, true, ${at(50)}, ${uuid(1)}, ${user})`;
  const cleanup = new CleanupStore(sql);
  t.equal(await cleanup.removeExpired('revoked_refresh_tokens', at(31), 2), 2);
  t.match(await sql`select count(*)::int as n from sessions`, [{ n: 1 }]);
  t.equal(await cleanup.removeExpired('revoked_refresh_tokens', at(31), 2), 1);
  t.match(await sql`select count(*)::int as n from sessions`, [{ n: 0 }]);
});

t.test('locked rows are skipped without waiting', async (t) => {
  const sql = await openDatabase(t);
  for (const n of [1, 2])
    await sql`insert into flow_state (id, provider_type, authentication_method, created_at)
      values (${uuid(n)}, 'email', 'otp', ${at(9)})`;
  await sql.begin(async (busy) => {
    await busy`select 1 from flow_state where id = ${uuid(1)} for update`;
    t.equal(await new CleanupStore(sql).removeExpired('flow_states', at(1), 100), 1);
  });
  t.equal(await new CleanupStore(sql).removeExpired('flow_states', at(1), 100), 1);
});

t.test('a server removes expired rows, unless SVC_DB_CLEANUP_ENABLED is false', async (t) => {
  // Makes the tables; one that cleans up would take the row away.
  const { databaseUrl } = await startAuthServer(t, { DB_CLEANUP_ENABLED: 'false' });
  allowUnreadableRows(databaseUrl);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  const rows = async () => (await sql`select 1 from flow_state`).length;
  await sql`insert into flow_state (id, provider_type, authentication_method, created_at)
    values (${uuid(1)}, 'email', 'otp', ${at(9)})`;

  const idle = await startAuthServer(t, { DB_DATABASE_URL: databaseUrl, DB_CLEANUP_ENABLED: 'false' });
  t.notMatch(idle.logs(), /"component":"cleanup"/);
  t.equal(await rows(), 1);
  const busy = await startAuthServer(t, { DB_DATABASE_URL: databaseUrl });
  await awaitUntil(async () => (await rows()) === 0, { what: 'the row to go' });
  await awaitUntil(() => /"removed":\{"flow_states":1\}/.test(busy.logs()), { what: 'a line in the log' });
});

t.test('cleanup runs repeatedly and continues after a failure', async (t) => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  let runs = 0;
  const cleanup: Pick<CleanupStore, 'removeExpired'> = {
    async removeExpired(kind) {
      if (kind === expiringKinds[0]) runs++;
      if (runs === 1) throw new Error('away');
      return Promise.resolve(kind === 'flow_states' ? runs : 0);
    },
  };
  const registry = new Registry();
  const timer = new CleanupTimer(
    {
      store: { cleanup },
      settings: policy,
      metrics: new Metrics(registry),
      logger: createLogger({ level: 'info', format: 'json', destination }),
      nowMs: () => now,
    },
    { intervalMs: 1 },
  );
  timer.start();
  await awaitUntil(() => lines.length > 2, { what: 'a third run' });
  await timer.stop();
  t.match(lines[0], /away.*failed to remove expired rows/s);
  t.match(lines[1], /"removed":\{"flow_states":2\}/);
  t.match(
    await registry.metrics(),
    /^gotrue_cleanup_affected_rows_total\{kind="flow_states"\} (?:[5-9]|\d{2,})$/m,
    'removed rows are counted by kind',
  );
});

t.test('row level security policies can read the claims of the caller', async (t) => {
  const { url } = await testDatabase(t);
  allowUnreadableRows(url);
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  t.match(
    await sql`select auth.uid() as uid, auth.role() as role, auth.email() as email, auth.jwt() as jwt`,
    [{ uid: null, role: null, email: null, jwt: null }],
  );
  await sql.begin(async (tx) => {
    const claims = JSON.stringify({ sub: user, role: 'authenticated', email: 'ada@example.com' });
    await tx`select set_config('request.jwt.claims', ${claims}, true)`;
    t.match(
      await tx`select auth.uid() as uid, auth.role() as role, auth.email() as email, auth.jwt() as jwt`,
      [{ uid: user, role: 'authenticated', email: 'ada@example.com', jwt: JSON.parse(claims) as object }],
    );
    await tx`select set_config('request.jwt.claim.role', 'admin', true)`;
    t.match(await tx`select auth.role() as role`, [{ role: 'admin' }]);
  });
});

t.test('a session with counter-based tokens outlives its stored tokens', async (t) => {
  const sql = await openDatabase(t);
  for (const [n, hmacKey] of [
    [1, null],
    [2, 'key'],
  ] as const) {
    await sql`insert into sessions (id, user_id, created_at, refresh_token_hmac_key)
      values (${uuid(n)}, ${user}, ${at(60)}, ${hmacKey})`;
    await sql`insert into refresh_tokens (token, revoked, updated_at, session_id, user_id)
      values (${`token-${n}`}, true, ${at(50)}, ${uuid(n)}, ${user})`;
  }
  t.equal(await new CleanupStore(sql).removeExpired('revoked_refresh_tokens', at(31), 10), 2);
  t.same([...(await sql`select id from sessions`)], [{ id: uuid(2) }]);
});
