import postgres from 'postgres';
import t from 'tap';
import { signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { awaitWaiting } from '../helpers/waiting-statements.ts';

t.test('fifty parallel refreshes of one token return the same successor', async (t) => {
  const server = await startAuthServer(t);
  const { refreshToken } = await signUp(server);
  const refresh = () =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: refreshToken } });

  const answers = await Promise.all(Array.from({ length: 50 }, refresh));
  t.same(new Set(answers.map(({ status }) => status)), new Set([200]));
  const successors = new Set(answers.map((answer) => signedIn(answer).refreshToken));
  t.equal(successors.size, 1);
  t.notOk(successors.has(refreshToken));
});

t.test(
  'previous token is accepted at any age until its successor is used, which ends the session',
  async (t) => {
    const server = await startAuthServer(t, { JWT_EXP: '1000h' });
    const { refreshToken, accessToken: token } = await signUp(server);
    const refresh = (token: string) =>
      server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
    const second = signedIn(await refresh(refreshToken)).refreshToken;
    server.clock.advance(29 * 86_400_000);
    const repeated = await refresh(refreshToken);
    t.equal(signedIn(repeated).refreshToken, second, 'the lost response is repeated');
    t.equal(repeated.headers.get('sb-auth-refresh-token-reuse-cause'), 'fail-to-save');

    const third = signedIn(await refresh(second)).refreshToken;
    t.match(await refresh(refreshToken), {
      status: 400,
      body: { error_code: 'refresh_token_already_used', msg: 'Invalid Refresh Token: Already Used' },
    });
    for (const revoked of [third, second, refreshToken])
      t.match(await refresh(revoked), {
        status: 400,
        body: { error_code: 'refresh_token_already_used' },
      });
    t.match(await server.call('GET', '/user', { token }), {
      status: 403,
      body: { error_code: 'session_not_found' },
    });
  },
);

t.test('a request that took too long does not end the session', async (t) => {
  const server = await startAuthServer(t);
  const { refreshToken: first } = await signUp(server);
  const refresh = (token: string) =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
  const second = signedIn(await refresh(first)).refreshToken;
  const third = signedIn(await refresh(second)).refreshToken;

  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const late = await sql.begin(async (busy) => {
    await busy`lock table auth.refresh_tokens in access exclusive mode`;
    // Its client has given up by then, and has used newer tokens.
    const request = refresh(first);
    await awaitWaiting(busy, 1);
    server.clock.advance(10_000);
    return { request };
  });
  t.match(await late.request, { status: 504 });
  t.match(await refresh(third), { status: 200 }, 'the session goes on');
});

t.test('with an interval of 0, any reuse ends the session', async (t) => {
  const server = await startAuthServer(t, { SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0' });
  const { refreshToken } = await signUp(server);
  const refresh = (token: string) =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
  const next = signedIn(await refresh(refreshToken));
  t.equal((await refresh(refreshToken)).status, 400);
  t.equal((await refresh(next.refreshToken)).status, 400);
});

t.test(
  'with an interval of 0 and SECURITY_REFRESH_TOKEN_ALLOW_REUSE, the previous token is accepted',
  async (t) => {
    const server = await startAuthServer(t, {
      SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0',
      SECURITY_REFRESH_TOKEN_ALLOW_REUSE: 'true',
    });
    const { refreshToken } = await signUp(server);
    const refresh = (token: string) =>
      server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
    const next = signedIn(await refresh(refreshToken)).refreshToken;
    t.equal(signedIn(await refresh(refreshToken)).refreshToken, next);
  },
);

t.test('only the immediately previous token may be reused', async (t) => {
  const server = await startAuthServer(t);
  const { refreshToken } = await signUp(server);
  const refresh = (token: string) =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
  const second = signedIn(await refresh(refreshToken));
  await refresh(second.refreshToken);
  t.match(await refresh(refreshToken), { status: 400, body: { error_code: 'refresh_token_already_used' } });
});

t.test(
  'with SECURITY_REFRESH_TOKEN_ALLOW_REUSE, older tokens return the active one within the interval',
  async (t) => {
    const server = await startAuthServer(t, { SECURITY_REFRESH_TOKEN_ALLOW_REUSE: 'true' });
    const { refreshToken: first } = await signUp(server);
    const refresh = (token: string) =>
      server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
    const second = signedIn(await refresh(first)).refreshToken;
    const third = signedIn(await refresh(second)).refreshToken;
    const repeated = await refresh(first);
    t.equal(signedIn(repeated).refreshToken, third, 'no second active token');
    t.equal(repeated.headers.get('sb-auth-refresh-token-reuse-cause'), 'concurrent-refresh');

    server.clock.advance(10_000);
    t.match(await refresh(first), { status: 400, body: { error_code: 'refresh_token_already_used' } });
    t.match(await refresh(third), { status: 400 }, 'the session has ended');
  },
);

t.test('without rotation, refreshes prevent the inactivity timeout', async (t) => {
  const server = await startAuthServer(t, {
    SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false',
    SESSIONS_INACTIVITY_TIMEOUT: '1h',
  });
  const { refreshToken } = await signUp(server);
  const refresh = () =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: refreshToken } });
  for (let hour = 0; hour < 3; hour++) {
    server.clock.advance(59 * 60_000);
    t.equal((await refresh()).status, 200);
  }
  server.clock.advance(60 * 60_000);
  t.match(await refresh(), {
    status: 400,
    body: { msg: 'Invalid Refresh Token: Session Expired (Inactivity)' },
  });
});

t.test('without rotation, the same token can be used repeatedly', async (t) => {
  const server = await startAuthServer(t, { SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false' });
  const { refreshToken } = await signUp(server);
  const refresh = () =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: refreshToken } });
  t.equal(signedIn(await refresh()).refreshToken, refreshToken);
  t.equal(signedIn(await refresh()).refreshToken, refreshToken);
});

t.test('malformed refresh token is not found', async (t) => {
  const server = await startAuthServer(t);
  for (const token of ['x', 'abcdefghijklmnopqrstu', 'a'.repeat(1000), "' or 1=1"]) {
    t.match(
      await server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } }),
      {
        status: 400,
        body: {
          error_code: 'refresh_token_not_found',
          msg: 'Invalid Refresh Token: Refresh Token Not Found',
        },
      },
    );
  }
});

t.test('session ends by timebox and by inactivity', async (t) => {
  const server = await startAuthServer(t, { SESSIONS_TIMEBOX: '2h', SESSIONS_INACTIVITY_TIMEOUT: '1h' });
  const refresh = (token: string) =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
  const idle = await signUp(server, { email: 'idle@example.com' });
  const busy = await signUp(server, { email: 'busy@example.com' });
  server.clock.advance(59 * 60_000);
  const next = signedIn(await refresh(busy.refreshToken));
  server.clock.advance(60_000);
  t.match(await refresh(idle.refreshToken), {
    status: 400,
    body: { msg: 'Invalid Refresh Token: Session Expired (Inactivity)' },
  });
  const last = signedIn(await refresh(next.refreshToken));
  server.clock.advance(3_600_000);
  t.match(await refresh(last.refreshToken), {
    status: 400,
    body: { msg: 'Invalid Refresh Token: Session Expired' },
  });
});

t.test(
  'without rotation, a token that was replaced earlier is refused and does not end the session',
  async (t) => {
    const rotating = await startAuthServer(t);
    const { refreshToken: first } = await signUp(rotating);
    const server = await startAuthServer(t, {
      DB_DATABASE_URL: rotating.databaseUrl,
      SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false',
    });
    const refresh = (at: typeof server, token: string) =>
      at.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
    const second = signedIn(await refresh(rotating, first)).refreshToken;
    const third = signedIn(await refresh(rotating, second)).refreshToken;
    server.clock.advance(60_000);
    t.match(await refresh(server, first), {
      status: 400,
      body: { error_code: 'refresh_token_already_used' },
    });
    t.equal((await refresh(server, third)).status, 200);
  },
);
