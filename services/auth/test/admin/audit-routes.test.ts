import { awaitUntil } from '@tollgate/testkit/await-until';
import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { AuditLog, auditListing } from '../../src/audit/audit-log.ts';
import { connect } from '../../src/db/connection.ts';
import { nextPage } from '../../src/db/paging.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Authenticator, relyingParty } from '../helpers/authenticator.ts';
import { googleClaims, startWithProviders } from '../helpers/provider-sign-in.ts';
import { testDatabase } from '../helpers/test-database.ts';
import { ethereumAccount, signInMessage } from '../helpers/wallets.ts';

const token = adminToken({ email: 'root@example.com' });

interface Entry {
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly created_at: string;
  readonly ip_address: string;
}

async function list(server: AuthServer, query = ''): Promise<Entry[]> {
  const { text } = await server.call('GET', `/admin/audit?${query}`, { token });
  return JSON.parse(text) as Entry[]; // as the route answers it
}

async function actions(server: AuthServer, query: string): Promise<string[]> {
  return (await list(server, `query=${query}`)).map(({ payload }) => String(payload.action));
}

t.test('audit log is listed newest first and can be searched', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken, userId } = await signUp(server, { data: { full_name: 'Ada Lovelace' } });
  server.clock.advance(1000);
  await server.call('POST', '/logout', { token: accessToken });
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });

  const [newest, second] = await list(server);
  t.match(newest, {
    id: /^[0-9a-f-]{36}$/,
    payload: {
      actor_username: 'root@example.com',
      action: 'user_modified',
      log_type: 'user',
      traits: { user_id: userId, user_email: 'ada@example.com' },
    },
    created_at: new Date(server.clock.nowMs()).toISOString(),
    ip_address: '127.0.0.1',
  });
  t.match(second?.payload, {
    action: 'logout',
    actor_id: userId,
    actor_name: 'Ada Lovelace',
    log_type: 'account',
  });

  t.same(await actions(server, 'author:ROOT'), ['user_modified']);
  t.same(new Set(await actions(server, 'author:lovelace')), new Set(['login', 'logout', 'user_signedup']));
  t.same(await actions(server, 'action:logout'), ['logout']);
  t.same(new Set(await actions(server, 'type:account')), new Set(['login', 'logout']));
  t.same(await actions(server, 'action:%25'), []);
  t.same(await actions(server, 'action:log_ut'), [], 'an underscore is itself');
});

t.test('author is a phone number before an email, and the role of a token without email', async (t) => {
  const server = await startAuthServer(t);
  const service = adminToken({ role: 'supabase_admin' });
  const user = { email: 'ada@example.com', phone: '15550100', password: 'correct horse' };
  await server.call('POST', '/admin/users', { token: service, body: { ...user, phone_confirm: true } });
  await server.call('POST', '/token?grant_type=password', {
    body: { phone: user.phone, password: user.password },
  });
  t.same(await actions(server, 'author:_admin'), ['user_signedup']);
  t.match(await list(server, 'query=author:15550100'), [
    { payload: { action: 'login', log_type: 'account' } },
  ]);
});

t.test('entries have who did what: kind of actor, changed fields, failed sign-ins', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken, userId } = await signUp(server, { data: { full_name: 'Ada Lovelace' } });
  const signIn = (password: string) =>
    server.call('POST', '/token?grant_type=password', { body: { email: 'ada@example.com', password } });
  const newest = async (query: string) => (await list(server, `query=${query}`))[0]?.payload;

  await server.call('PUT', '/user', {
    token: accessToken,
    body: { data: { full_name: 'Ada', theme: 'dark' } },
  });
  t.match(await newest('action:user_modified'), {
    actor_id: userId,
    actor_kind: 'user',
    actor_name: 'Ada Lovelace',
    traits: {
      changed: ['user_metadata.full_name', 'user_metadata.theme'],
      changes: {
        'user_metadata.full_name': { old: 'Ada Lovelace', new: 'Ada' },
        'user_metadata.theme': { old: null, new: 'dark' },
      },
    },
  });

  server.clock.advance(1000);
  const body = {
    password: 'battery staple',
    role: 'authenticated',
    phone: '491511',
    app_metadata: { plan: 'gold' },
  };
  await server.call('PUT', `/admin/users/${userId}`, { token, body });
  const modified = await newest('action:user_modified');
  t.match(modified, { actor_kind: 'service_token', actor_username: 'root@example.com' });
  const changed =
    modified?.traits instanceof Object && 'changed' in modified.traits ? modified.traits.changed : [];
  t.match(changed, { length: 4 }, 'not the role');
  for (const name of ['phone', 'password', 'app_metadata.plan', 'app_metadata.providers'])
    t.match(JSON.stringify(changed), `"${name}"`);
  t.match(modified, { traits: { changes: { 'app_metadata.plan': { old: null, new: 'gold' } } } });
  t.notMatch(JSON.stringify(modified), /battery|\$2|scrypt/, 'neither the password nor its hash');

  t.equal((await signIn('wrong')).status, 400);
  await server.call('POST', '/token?grant_type=password', {
    body: { email: 'eve@example.com', password: 'x' },
  });
  const failed = await awaitUntil(() => newest('action:login_failed'), {
    what: 'the entry in the background',
  });
  t.match(failed, {
    actor_id: userId,
    actor_kind: 'unauthenticated',
    log_type: 'account',
    traits: { method: 'password', reason: 'wrong_password' },
  });
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });
  t.match(await newest('action:user_modified'), { traits: { changed: ['banned_until'] } });
  t.equal((await signIn('battery staple')).status, 400);
  await server.stop();
  t.match(server.logs(), /login_failed/);
});

t.test('failed sign-ins of every kind are recorded for the account, without other responses', async (t) => {
  const { server, vendors, signIn } = await startWithProviders(t, {
    ...relyingParty,
    EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
    MFA_RECOVERY_CODES_ENROLL_ENABLED: 'true',
    MFA_RECOVERY_CODES_VERIFY_ENABLED: 'true',
  });
  const post = (path: string, body: object, { accessToken = '' }: Partial<SignedIn> = {}) =>
    server.call('POST', path, { body, ...(accessToken !== '' && { token: accessToken }) });
  const newUser = (name: string) => signUp(server, { email: `${name}@example.com` });
  const ban = ({ userId }: SignedIn) =>
    server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });
  const traitsIn = async (action: string, { userId }: SignedIn) =>
    (await list(server, `query=action:${action}&per_page=1000`))
      .filter(({ payload }) => payload.actor_id === userId)
      .map(({ payload }) => payload.traits);
  const recorded = async (user: SignedIn, traits: object, action = 'login_failed') => {
    const found = () => traitsIn(action, user).then((all) => (all.length > 0 ? all : undefined));
    const what = `the entry ${JSON.stringify(traits)}`;
    t.match(await awaitUntil(found, { what }), [traits]);
  };
  const challengeOf = async (path: string, user?: SignedIn) =>
    // Parsed boundary: the tests of passkeys prove the form.
    (await post(path, {}, user)).body as { challenge_id: string; options: { challenge: string } };

  await t.test('code', async (t) => {
    const user = await newUser('code');
    const verify = (email: string) => post('/verify', { type: 'email', email, token: '000000' });
    const [known, unknown] = [await verify('code@example.com'), await verify('eve@example.com')];
    t.same([known.status, known.text], [unknown.status, unknown.text]);
    await recorded(user, { method: 'otp', reason: 'wrong_code' });
  });

  await t.test('link', async (t) => {
    const user = await newUser('link');
    const body = { type: 'magiclink', email: 'link@example.com' };
    const generated = await server.call('POST', '/admin/generate_link', { token, body });
    await ban(user);
    const link = { type: 'magiclink', token_hash: generated.body.hashed_token };
    t.match(await post('/verify', link), { status: 403, body: { error_code: 'user_banned' } });
    await recorded(user, { method: 'otp', reason: 'user_banned' });
  });

  await t.test('second factor and recovery code', async (t) => {
    const user = await newUser('factor');
    const { body } = await post('/factors', { factor_type: 'totp' }, user);
    const { secret = '' } = body.totp as { secret?: string }; // as the client library reads it
    const path = `/factors/${String(body.id)}`;
    const code = TOTP.generate({ secret: Secret.fromBase32(secret), timestamp: server.clock.nowMs() });
    const verify = async (code: string) => {
      const challenge_id = (await post(`${path}/challenge`, {}, user)).body.id;
      return post(`${path}/verify`, { challenge_id, code }, user);
    };
    const raised = signedIn(await verify(code));
    t.equal((await post('/factors/recovery-codes', {}, raised)).status, 200);
    t.equal((await verify('000000')).status, 422);
    await recorded(user, { method: 'totp', reason: 'wrong_code', factor_id: body.id });
    server.clock.advance(1000);
    t.equal((await post('/factors/recovery-codes/verify', { code: 'wrong' }, user)).status, 422);
    const both = async () => {
      const all = await traitsIn('login_failed', user);
      return all.length === 2 ? all[0] : undefined;
    };
    t.match(await awaitUntil(both, { what: 'the entry of the recovery code' }), {
      method: 'mfa/recovery_code',
    });
  });

  await t.test('passkey', async () => {
    const user = await newUser('passkey');
    const authenticator = new Authenticator();
    const registration = await challengeOf('/passkeys/registration/options', user);
    const { challenge_id } = registration;
    const credential = authenticator.create(registration.options);
    t.equal((await post('/passkeys/registration/verify', { challenge_id, credential }, user)).status, 200);
    const challenge = await challengeOf('/passkeys/authentication/options');
    const forged = authenticator.get(challenge.options, { origin: 'https://evil.example' });
    const answer = await post('/passkeys/authentication/verify', {
      challenge_id: challenge.challenge_id,
      credential: forged,
    });
    t.equal(answer.status, 400);
    await recorded(user, { method: 'passkey', reason: 'webauthn_verification_failed' });
  });

  await t.test('wallet', async () => {
    const { address, sign } = ethereumAccount();
    const message = signInMessage('Ethereum', address);
    const grant = () =>
      post('/token?grant_type=web3', { chain: 'ethereum', message, signature: sign(message) });
    const user = signedIn(await grant());
    t.equal((await grant()).status, 400, 'a replayed message');
    await recorded(user, { method: 'web3', reason: 'message_rejected' });
  });

  await t.test('provider, its ID token and PKCE', async (t) => {
    const idToken = async (claims: object) => {
      const id_token = await vendors.idToken('google', { ...googleClaims, ...claims, aud: 'GOOGLE-client' });
      return post('/token?grant_type=id_token', { provider: 'google', id_token });
    };
    const grace = { sub: '1', email: 'grace@example.com' };
    const byToken = signedIn(await idToken(grace));
    await ban(byToken);
    t.match(await idToken(grace), { status: 403, body: { error_code: 'user_banned' } });
    await recorded(byToken, { method: 'oauth', reason: 'user_banned', provider: 'google' });

    const user = signedIn(await idToken({}));
    const challenge = { code_challenge: 'a'.repeat(43), code_challenge_method: 'plain' };
    const { query } = await signIn('google', challenge);
    const exchange = { auth_code: query.code, code_verifier: 'b'.repeat(43) };
    t.match(await post('/token?grant_type=pkce', exchange), { body: { error_code: 'bad_code_verifier' } });
    await recorded(user, { method: 'pkce', reason: 'bad_code_verifier' });
    await ban(user);
    t.match((await signIn('google')).query, { error_code: 'user_banned' });
    // An entry of a browser's sign-in may be written after the response.
    const both = async () => (await traitsIn('login_failed', user)).length === 2 || undefined;
    t.ok(await awaitUntil(both, { what: 'an entry for each failure' }));
  });

  await t.test('refresh token', async (t) => {
    const user = await newUser('refresh');
    const refresh = (refresh_token: string) => post('/token?grant_type=refresh_token', { refresh_token });
    const second = signedIn(await refresh(user.refreshToken));
    server.clock.advance(60_000);
    t.equal((await refresh(user.refreshToken)).status, 200, 'the response was lost');
    const repeated = async () => {
      const all = await traitsIn('token_refreshed', user);
      return all.find((traits) => traits !== undefined);
    };
    t.match(await awaitUntil(repeated, { what: 'the entry of the repetition' }), { reuse: 'fail-to-save' });
    await refresh(second.refreshToken);
    t.equal((await refresh(user.refreshToken)).status, 400);
    await recorded(user, { method: 'token_refresh', reason: 'refresh_token_already_used' });
    await recorded(user, { reason: 'reuse' }, 'token_revoked');
  });

  t.equal((await list(server, 'query=author:eve')).length, 0, 'accounts that do not exist are not recorded');
});

t.test('failed sign-ins of an account have at most 20 entries in an hour', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_WRONG_PASSWORDS: '1000' });
  await signUp(server);
  const body = { email: 'ada@example.com', password: 'wrong' };
  for (let attempt = 0; attempt < 25; attempt++)
    t.match(await server.call('POST', '/token?grant_type=password', { body }), { status: 400 });
  await server.stop(); // waits for work in the background
  const sql = connect({ databaseUrl: server.databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  const { total } = await new AuditLog(sql).list({ action: 'login_failed' }, { limit: 1, offset: 0 });
  t.equal(total, 20);
});

t.test('audit log is paginated', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/11111111-2222-4333-8444-555555555555`, { token, body: {} });
  const { headers, text } = await server.call('GET', '/admin/audit?page=1&per_page=1', { token });
  t.equal(JSON.parse(text).length, 1);
  t.equal(headers.get('x-total-count'), '2');
  t.equal(
    headers.get('link'),
    '</admin/audit?page=2&per_page=1>; rel="next", </admin/audit?page=2&per_page=1>; rel="last"',
  );
});

t.test('unknown search scope is rejected', async (t) => {
  const server = await startAuthServer(t);
  for (const query of ['ip:127', 'logout', 'author:%00'])
    t.match(await server.call('GET', `/admin/audit?query=${query}`, { token }), {
      status: 400,
      body: { error_code: 'validation_failed' },
    });
});

t.test('entries are filtered by actor, action and kind, and listed by page and by cursor', async (t) => {
  const server = await startAuthServer(t);
  const { userId } = await signUp(server);
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });
  const found = async (query: string) =>
    new Set((await list(server, query)).map(({ payload }) => String(payload.action)));
  const all = new Set(['login', 'user_signedup', 'user_modified']);
  t.same(await found('actor_id=&action=&kind='), all);
  t.same(await found(`actor_id=${userId.toUpperCase()}`), new Set(['login', 'user_signedup']));
  t.same(await found('action=login'), new Set(['login']));
  t.same(await found('action=log'), new Set(), 'exact');
  t.same(await found('kind=user&query=type:account'), new Set(['login']));
  t.same(await found('kind=service_token'), new Set(['user_modified']));
  t.same(await found(`kind=service_token&actor_id=${userId}`), new Set());

  const visited: (string | undefined)[] = [];
  let query = 'limit=1';
  while (query !== '' && visited.length < 4) {
    const { headers, text } = await server.call('GET', `/admin/audit?${query}`, { token });
    const entries = JSON.parse(text) as Entry[]; // as the route answers it
    visited.push(...entries.map(({ id }) => id));
    [, query = ''] = /^<\/admin\/audit\?(.*)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
  }
  const ids = (await list(server)).map(({ id }) => id);
  t.same(visited, ids, 'newest first, each once');

  const uncounted = await server.call('GET', '/admin/audit?per_page=2&page=1&total=false', { token });
  t.equal(uncounted.headers.get('x-total-count'), null);
  t.equal(uncounted.headers.get('link'), '</admin/audit?page=2&per_page=2&total=false>; rel="next"');
  t.match(await list(server, 'per_page=2&page=2&total=false'), [{ id: ids[2] }]);
});

t.test('filters of the audit log use indexes in the order of the list', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  for (const method of ['seqscan', 'bitmapscan', 'sort']) await sql.unsafe(`set enable_${method} = off`);
  const after = { createdAt: '2026-01-01', id: '00000000-0000-4000-8000-000000000000' };
  for (const [filter, index] of [
    [{}, 'created'],
    [{ actorId: 'x' }, 'actor'],
    [{ action: 'login' }, 'action'],
    [{ kind: 'administrator' }, 'actor_kind'],
  ] as const) {
    const page = nextPage(auditListing, filter, { order: 'desc', limit: 1, after });
    const lines = await sql.unsafe(`explain ${page.text}`, page.bind({}) as string[], { prepare: false });
    const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n');
    t.match(plan, new RegExp(`Backward using tollgate_audit_${index} .*ROW\\(created_at, id\\) < ROW`, 's'));
  }
});

t.test('total of an action that nearly all entries have does not read the table', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  await sql`insert into audit_log_entries (id, instance_id, payload, created_at, ip_address)
    select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', json_build_object('action', 'login'), now(), ''
    from generate_series(1, 3000)`;
  await sql`vacuum analyze audit_log_entries`;
  const scans = async () => {
    await sql`select pg_stat_force_next_flush()`;
    const [row] =
      await sql`select seq_scan::int from pg_stat_user_tables where relname = 'audit_log_entries'`;
    return Number(row?.seq_scan);
  };
  const before = await scans();
  const { total } = await new AuditLog(sql).list({ action: 'login' }, { limit: 1, offset: 0 });
  t.equal(total, 3000);
  t.equal(await scans(), before);
});
