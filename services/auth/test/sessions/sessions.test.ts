import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

async function signIn(server: AuthServer, headers: Readonly<Record<string, string>> = {}): Promise<SignedIn> {
  return signedIn(await server.call('POST', '/token?grant_type=password', { body: ada, headers }));
}

function refresh(server: AuthServer, { refreshToken }: SignedIn) {
  return server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: refreshToken } });
}

async function sessionsOf(server: AuthServer, { accessToken: token }: SignedIn) {
  const { body } = await server.call('GET', '/user/sessions', { token });
  // Parsed boundary: what the tests then look at.
  return body.sessions as readonly {
    readonly id: string;
    readonly current: boolean;
    readonly tag?: string;
  }[];
}

t.test('sessions are listed newest first, with the current one marked', async (t) => {
  const server = await startAuthServer(t, { SESSIONS_TAGS: 'web,mobile' });
  const first = await signUp(server);
  server.clock.advance(1_000);
  const second = await signIn(server, { 'user-agent': 'phone', 'x-svc-session-tag': 'mobile' });
  server.clock.advance(1_000);
  await refresh(server, first);

  const { status, body } = await server.call('GET', '/user/sessions', { token: first.accessToken });
  t.equal(status, 200);
  t.match(body, {
    sessions: [
      { current: false, aal: 'aal1', amr: [{ method: 'password' }], user_agent: 'phone', tag: 'mobile' },
      { current: true, ip: '127.0.0.1', refreshed_at: new Date(server.clock.nowMs()).toISOString() },
    ],
  });
  t.same(
    (await sessionsOf(server, second)).map(({ current }) => current),
    [true, false],
  );
  t.equal((await server.call('GET', '/user/sessions')).status, 401);
});

t.test(
  'revoked session ends immediately; sessions of other users and invalid ids are not found',
  async (t) => {
    const server = await startAuthServer(t);
    const first = await signUp(server);
    const second = await signIn(server);
    const bob = await signUp(server, { email: 'bob@example.com' });
    const id = (await sessionsOf(server, second)).find(({ current }) => current)?.id;
    const revoke = (by: SignedIn, path: string) =>
      server.call('DELETE', `/user/sessions/${path}`, { token: by.accessToken });

    t.match(await revoke(bob, `${id}`), { status: 404, body: { error_code: 'session_not_found' } });
    t.match(await revoke(first, 'x'), { status: 404, body: { error_code: 'validation_failed' } });
    t.match(await revoke(first, `${id}`), { status: 200, text: '{}' });
    t.match(await revoke(first, `${id}`), { status: 404 });
    t.match(await refresh(server, second), { status: 400, body: { error_code: 'refresh_token_not_found' } });
    t.match(await server.call('GET', '/user', { token: second.accessToken }), {
      status: 403,
      body: { error_code: 'session_not_found' },
    });
    t.equal((await refresh(server, first)).status, 200);
  },
);

t.test('all sessions end, or all except the current one', async (t) => {
  const server = await startAuthServer(t);
  const first = await signUp(server);
  const second = await signIn(server);
  const end = (query: string) =>
    server.call('DELETE', `/user/sessions${query}`, { token: second.accessToken });

  t.match(await end('?scope=x'), { status: 400, body: { msg: 'Unsupported logout scope "x"' } });
  t.equal((await end('?scope=others')).status, 200);
  t.equal((await refresh(server, first)).status, 400);
  t.equal((await sessionsOf(server, second)).length, 1);
  t.equal((await end('')).status, 200);
  t.equal((await refresh(server, second)).status, 400);
});

t.test('expired sessions are not listed', async (t) => {
  const server = await startAuthServer(t, { SESSIONS_TIMEBOX: '1h' });
  await signUp(server);
  server.clock.advance(30 * 60_000);
  const second = await signIn(server);
  t.equal((await sessionsOf(server, second)).length, 2);
  server.clock.advance(30 * 60_000);
  t.equal((await sessionsOf(server, second)).length, 1);
});

t.test('with a single session per user, older ones are not refreshed', async (t) => {
  const server = await startAuthServer(t, { SESSIONS_SINGLE_PER_USER: 'true' });
  const first = await signUp(server);
  const bob = await signUp(server, { email: 'bob@example.com' });
  server.clock.advance(1);
  const second = await signIn(server);
  t.match(await refresh(server, first), {
    status: 400,
    body: {
      error_code: 'session_expired',
      msg: 'Invalid Refresh Token: Session Expired (Revoked by Newer Login)',
    },
  });
  t.equal((await refresh(server, second)).status, 200);
  t.equal((await refresh(server, bob)).status, 200, 'the only session of its user');
});

t.test(
  'with tags there is a single session per user and tag, and untagged ones belong to the first tag',
  async (t) => {
    const server = await startAuthServer(t, {
      SESSIONS_SINGLE_PER_USER: 'true',
      SESSIONS_TAGS: 'web,mobile',
    });
    const tagged = async (tag: string) => {
      server.clock.advance(1);
      return signIn(server, { 'x-svc-session-tag': tag });
    };
    const first = await signUp(server);
    const mobile = await tagged('mobile');
    t.equal((await refresh(server, first)).status, 200);
    const unknown = await tagged('unknown');
    t.same((await sessionsOf(server, unknown)).filter(({ tag }) => tag !== undefined).length, 1);
    t.match((await refresh(server, first)).status, 400);
    const web = await tagged('web');
    t.equal((await refresh(server, unknown)).status, 400);
    t.equal((await refresh(server, web)).status, 200);
    t.equal((await refresh(server, mobile)).status, 200);
  },
);

t.test('session of a user with a second factor stays at aal1 for a limited time', async (t) => {
  const server = await startAuthServer(t, { SESSIONS_ALLOW_LOW_AAL: '10m' });
  const withFactor = await signUp(server);
  const without = await signUp(server, { email: 'bob@example.com' });
  const sql = postgres(server.databaseUrl, { connection: { search_path: 'auth' } });
  t.teardown(() => sql.end());
  await sql`insert into mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at, secret)
    values (gen_random_uuid(), ${withFactor.userId}, '', 'totp', 'verified', now(), now(), 'JBSWY3DPEHPK3PXP')`;

  server.clock.advance(599_999);
  const next = signedIn(await refresh(server, withFactor));
  server.clock.advance(1);
  t.match(await refresh(server, next), {
    status: 400,
    body: {
      error_code: 'session_expired',
      msg: 'Invalid Refresh Token: Session Expired (Low AAL: User Needs MFA Verification)',
    },
  });
  t.equal((await refresh(server, without)).status, 200);
  await sql`update sessions set aal = 'aal2' where user_id = ${withFactor.userId}`;
  t.equal((await refresh(server, next)).status, 200);
});

t.test('only administrators list and end sessions of other users', async (t) => {
  const server = await startAuthServer(t);
  const first = await signUp(server);
  server.clock.advance(1);
  const second = await signIn(server);
  const of = (userId: string, path = '') => `/admin/users/${userId}/sessions${path}`;
  const asAdmin = (method: string, path: string) => server.call(method, path, { token: adminToken() });

  t.match(await server.call('GET', of(first.userId), { token: first.accessToken }), { status: 403 });
  const { body } = await asAdmin('GET', of(first.userId));
  const [newest] = body.sessions as readonly { readonly id: string }[];
  t.match(body, { sessions: [{ current: false }, { current: false }] });
  t.match(await asAdmin('DELETE', of(first.userId, `/${newest?.id}`)), { status: 200, text: '{}' });
  t.match(await asAdmin('DELETE', of(first.userId, `/${newest?.id}`)), { status: 404 });
  t.equal((await refresh(server, second)).status, 400);
  const next = signedIn(await refresh(server, first));
  t.equal((await asAdmin('DELETE', of(first.userId))).status, 200);
  t.equal((await refresh(server, next)).status, 400);
  const unknownUser = '00000000-0000-4000-8000-000000000000';
  for (const method of ['GET', 'DELETE'])
    t.match(await asAdmin(method, of(unknownUser)), { status: 404, body: { error_code: 'user_not_found' } });
});
