import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { linkIn, startMailingServer } from '../helpers/mail-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };
const hourMs = 3_600_000;

function update(server: AuthServer, { accessToken: token }: Pick<SignedIn, 'accessToken'>, body: unknown) {
  return server.call('PUT', '/user', { token, body });
}

async function signIn(server: AuthServer, password = ada.password): Promise<SignedIn> {
  return signedIn(await server.call('POST', '/token?grant_type=password', { body: { ...ada, password } }));
}

function database(test: Pick<typeof t, 'name' | 'teardown'>, server: AuthServer) {
  const sql = postgres(server.databaseUrl, { connection: { search_path: 'auth' } });
  test.teardown(() => sql.end());
  return sql;
}

t.test('metadata is merged, null removes a key, and an empty update succeeds', async (t) => {
  const server = await startAuthServer(t);
  const user = await signUp(server, { data: { name: 'Ada', town: 'London' } });
  t.match(await update(server, user, { data: { town: null, year: 1815, email: null } }), {
    status: 200,
    body: { id: user.userId, user_metadata: { name: 'Ada', year: 1815 } },
  });
  t.equal((await update(server, user, {})).status, 200);
  t.equal((await update(server, user, { email: null, password: null, data: null })).status, 200);
  t.equal((await update(server, user, { email: ada.email })).status, 200, 'unchanged email');
});

t.test('users cannot change protected attributes of themselves', async (t) => {
  const server = await startAuthServer(t);
  const user = await signUp(server);
  const wanted = {
    role: 'service_role',
    aud: 'x',
    is_anonymous: true,
    is_super_admin: true,
    email_confirmed_at: null,
    banned_until: '2000-01-01T00:00:00Z',
    user_metadata: { a: 1 },
    raw_app_meta_data: { a: 1 },
  };
  t.match(await update(server, user, wanted), {
    status: 200,
    body: { role: 'authenticated', aud: '', is_anonymous: false, app_metadata: { provider: 'email' } },
  });
  const polluted = `{"data":{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"ok":1}}`;
  t.match(await update(server, user, polluted), { status: 200, body: { user_metadata: { ok: 1 } } });
  t.notOk('admin' in {});
  t.match(await update(server, user, { app_metadata: { plan: 'gold' } }), {
    status: 403,
    body: { error_code: 'not_admin', msg: 'Updating app_metadata requires admin privileges' },
  });
});

t.test('user with an administrator role can change app_metadata', async (t) => {
  const server = await startAuthServer(t, { JWT_DEFAULT_GROUP_NAME: 'service_role' });
  const user = await signUp(server);
  t.match(await update(server, user, { app_metadata: { plan: 'gold' } }), {
    status: 200,
    body: { app_metadata: { provider: 'email', plan: 'gold' } },
  });
});

t.test('invalid values and contacts of other users are rejected without any change', async (t) => {
  const server = await startAuthServer(t);
  const user = await signUp(server);
  await signUp(server, { email: 'bob@example.com' });
  await signUp(server, { email: undefined, phone: '15005550001' });
  const expect = async (body: object, status: number, code: string, msg?: string) =>
    t.match(await update(server, user, { ...body, data: { changed: true } }), {
      status,
      body: { error_code: code, ...(msg !== undefined && { msg }) },
    });
  await expect({ email: 'BOB@example.com' }, 422, 'email_exists');
  await expect({ phone: '+1 500 555 0001' }, 422, 'phone_exists');
  await expect({ email: 'x' }, 400, 'validation_failed', 'Unable to validate email address: invalid format');
  await expect({ phone: '0' }, 400, 'validation_failed', 'Invalid phone number format (E.164 required)');
  await expect({ phone: '15005550002', channel: 'pigeon' }, 400, 'validation_failed');
  await expect({ phone: '15005550002', channel: 'whatsapp' }, 400, 'validation_failed');
  await expect({ password: 'short' }, 422, 'weak_password');
  await expect({ password: '' }, 422, 'weak_password');
  await expect({ password: 'x'.repeat(73) }, 400, 'validation_failed');
  await expect({ password: ada.password }, 422, 'same_password');
  await expect({ email: 5 }, 400, 'bad_json');
  await expect({ code_challenge: 'x' }, 400, 'validation_failed');
  const { body } = await server.call('GET', '/user', { token: user.accessToken });
  t.notOk('changed' in (body.user_metadata as object));
  t.equal((await server.call('PUT', '/user', { body: {} })).status, 401);
  const audience = { token: user.accessToken, body: {}, headers: { 'x-jwt-aud': 'other' } };
  t.match(await server.call('PUT', '/user', audience), {
    status: 400,
    body: { msg: "Token audience doesn't match request audience" },
  });
});

t.test('new password ends all other sessions and invalidates sent tokens', async (t) => {
  const server = await startAuthServer(t);
  const first = await signUp(server);
  const second = await signIn(server);
  const sql = database(t, server);
  await sql`insert into one_time_tokens (id, user_id, token_type, token_hash, relates_to)
    values (gen_random_uuid(), ${first.userId}, 'recovery_token', 'x', 'ada@example.com')`;

  t.equal((await update(server, second, { password: 'better horse' })).status, 200);
  t.match(await server.call('GET', '/user', { token: first.accessToken }), {
    status: 403,
    body: { error_code: 'session_not_found' },
  });
  t.equal((await server.call('GET', '/user', { token: second.accessToken })).status, 200);
  t.same(await sql`select 1 from one_time_tokens`, []);
  const actions = await sql`select payload ->> 'action' as action from audit_log_entries`;
  t.match(
    actions.map(({ action }) => action).filter((action) => /password|modified/.test(action)),
    ['user_updated_password', 'user_modified'],
  );
  await t.rejects(signIn(server), /Invalid login credentials/);
  await signIn(server, 'better horse');
});

t.test('current password is required if configured', async (t) => {
  const server = await startAuthServer(t, { SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' });
  const user = await signUp(server);
  const password = 'better horse';
  t.match(await update(server, user, { password }), {
    status: 400,
    body: { error_code: 'current_password_required' },
  });
  t.match(await update(server, user, { password, current_password: 'wrong horse' }), {
    status: 400,
    body: { error_code: 'current_password_invalid' },
  });
  t.equal((await update(server, user, { password, current_password: ada.password })).status, 200);

  const sql = database(t, server);
  await sql`update users set encrypted_password = ''`;
  t.equal((await update(server, user, { password })).status, 200, 'user without password');
});

t.test('current password is not required after a recovery, in any flow', async (t) => {
  const server = await startAuthServer(t, { SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' });
  await signUp(server);
  const recover = async () => {
    const body = { type: 'recovery', email: ada.email };
    const generated = await server.call('POST', '/admin/generate_link', { body, token: adminToken() });
    return { code: generated.body.email_otp, hash: String(generated.body.hashed_token) };
  };
  const verify = async (body: object) => signedIn(await server.call('POST', '/verify', { body }));
  const follow = async () => {
    const path = `/verify?type=recovery&token=${(await recover()).hash}`;
    const { headers } = await server.call('GET', path);
    return (
      new URLSearchParams(new URL(headers.get('location') ?? '').hash.slice(1)).get('access_token') ?? ''
    );
  };
  const sessions: readonly [string, () => Promise<{ readonly accessToken: string }>][] = [
    ['link', async () => ({ accessToken: await follow() })],
    ['code', async () => verify({ type: 'recovery', email: ada.email, token: (await recover()).code })],
    ['hash', async () => verify({ type: 'recovery', token_hash: (await recover()).hash })],
  ];
  for (const [name, start] of sessions) {
    const changed = await update(server, await start(), { password: `${name} horse` });
    t.equal(changed.status, 200, `${name}: ${changed.text}`);
  }
  const { accessToken } = await verify({ type: 'recovery', token_hash: (await recover()).hash });
  const sql = database(t, server);
  for (const [method, status] of [
    ['recovery', 200],
    ['magiclink', 200],
    ['oauth', 400],
  ] as const) {
    await sql`update mfa_amr_claims set authentication_method = ${method}`;
    t.equal((await update(server, { accessToken }, { password: `${method} horse` })).status, status, method);
  }
});

t.test('nonce is required only in sessions older than a day', async (t) => {
  const server = await startAuthServer(t, { SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' });
  const user = await signUp(server);
  server.clock.advance(24 * hourMs);
  const refreshed = async () =>
    signedIn(
      await server.call('POST', '/token?grant_type=refresh_token', {
        body: { refresh_token: user.refreshToken },
      }),
    );
  const now = await refreshed();
  t.equal((await update(server, now, { password: 'better horse' })).status, 200);
  server.clock.advance(1);
  t.match(await update(server, now, { password: 'best horse' }), {
    status: 400,
    body: { error_code: 'reauthentication_needed', msg: 'Password update requires reauthentication' },
  });
  t.equal((await update(server, now, { data: { a: 1 } })).status, 200, 'only for passwords');
});

t.test('attempts to guess a nonce are rate limited', async (t) => {
  const server = await startAuthServer(t, {
    SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
    JWT_EXP: '1000h',
  });
  const user = await signUp(server);
  server.clock.advance(25 * hourMs);
  const guess = () => update(server, user, { password: 'better horse', nonce: '123456' });
  for (let attempt = 1; attempt <= 10; attempt++) {
    t.match(await guess(), {
      status: 422,
      body: { error_code: 'reauthentication_not_valid', msg: 'Nonce has expired or is invalid' },
    });
  }
  const refused = await guess();
  t.match(refused, { status: 429, body: { error_code: 'over_request_rate_limit' } });
  t.ok(Number(refused.headers.get('retry-after')) > 0);
  server.clock.advance(10 * 60_000);
  t.equal((await guess()).status, 422);
});

t.test('user with a second factor changes credentials and protected metadata only at aal2', async (t) => {
  const server = await startAuthServer(t, { JWT_ADMIN_ROLES: 'authenticated' });
  const user = await signUp(server);
  const sql = database(t, server);
  await sql`insert into mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at, secret)
    values (gen_random_uuid(), ${user.userId}, '', 'totp', 'verified', now(), now(), 'JBSWY3DPEHPK3PXP')`;
  for (const change of [
    { password: 'better horse' },
    { email: 'new@example.com' },
    { phone: '15005550001' },
    { app_metadata: { plan: 'gold' } },
  ]) {
    t.match(await update(server, user, change), {
      status: 401,
      body: { error_code: 'insufficient_aal' },
    });
  }
  t.equal((await update(server, user, { data: { a: 1 }, email: ada.email })).status, 200);
  await sql`update sessions set aal = 'aal2'`;
  t.equal((await update(server, user, { password: 'better horse' })).status, 200);
});

t.test('single sign-on users cannot change credentials', async (t) => {
  const server = await startAuthServer(t);
  const user = await signUp(server);
  const sql = database(t, server);
  await sql`update users set is_sso_user = true`;
  for (const change of [{ password: 'better horse' }, { email: 'new@example.com' }, { nonce: '1' }]) {
    t.match(await update(server, user, change), { status: 422, body: { error_code: 'user_sso_managed' } });
  }
  t.equal((await update(server, user, { data: { a: 1 } })).status, 200);
  const recovery = await server.call('POST', `/admin/users/${user.userId}/recovery`, { token: adminToken() });
  t.match(recovery, { status: 422, body: { error_code: 'user_sso_managed' } });
});

t.test('one of two concurrent updates to the same phone succeeds', async (t) => {
  const server = await startAuthServer(t);
  const both = [await signUp(server), await signUp(server, { email: 'bob@example.com' })];
  const answers = await Promise.all(both.map((user) => update(server, user, { phone: '15005550001' })));
  t.same(answers.map(({ status }) => status).sort(), [200, 422]);
});

t.test('rejected email change keeps the PKCE flow of the previous one', async (t) => {
  const { server, smtp } = await startMailingServer(t, { MAILER_AUTOCONFIRM: 'true' });
  const user = await signUp(server, ada);
  const email = 'countess@example.com';
  const change = (verifier: string) =>
    update(server, user, { email, code_challenge: verifier, code_challenge_method: 'plain' });
  t.equal((await change('a'.repeat(43))).status, 200);
  server.clock.advance(1000);
  t.equal((await change('e'.repeat(43))).status, 429);
  const { pathname, search } = linkIn(await smtp.mailTo(email));
  const location = (await server.call('GET', pathname + search)).headers.get('location') ?? '';
  const body = { auth_code: new URL(location).searchParams.get('code'), code_verifier: 'a'.repeat(43) };
  t.equal((await server.call('POST', '/token?grant_type=pkce', { body })).status, 200);
});
