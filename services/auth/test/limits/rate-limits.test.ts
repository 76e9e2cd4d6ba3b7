import t from 'tap';
import { type AuthServer, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startMailingServer } from '../helpers/mail-server.ts';

t.test('rate limits apply per client behind a trusted proxy', async (t) => {
  const server = await startAuthServer(t, {
    SECURITY_TRUSTED_PROXIES: 'loopback',
    RATE_LIMIT_TOKEN_REFRESH: '2',
  });
  await signUp(server);
  const signIn = (address: string) =>
    server.call('POST', '/token?grant_type=password', {
      body: { email: 'ada@example.com', password: 'correct horse' },
      headers: { 'x-forwarded-for': address },
    });
  t.equal((await signIn('192.0.2.1')).status, 200);
  t.equal((await signIn('192.0.2.1')).status, 200);
  const refused = await signIn('192.0.2.1');
  t.match(refused, {
    status: 429,
    body: { error_code: 'over_request_rate_limit', msg: 'Request rate limit reached' },
  });
  t.equal(refused.headers.get('retry-after'), '150');
  t.equal((await signIn('192.0.2.2')).status, 200);
  server.clock.advance(150_000);
  t.equal((await signIn('192.0.2.1')).status, 200);
});

t.test('the networks of one subscriber share a limit: an IPv4 address, or a /64 of IPv6', async (t) => {
  const server = await startAuthServer(t, { SECURITY_TRUSTED_PROXIES: 'loopback', RATE_LIMIT_OTP: '2' });
  const request = async (address: string) =>
    (
      await server.call('POST', '/otp', {
        body: { email: 'ada@example.com', create_user: false },
        headers: { 'x-forwarded-for': address },
      })
    ).status;
  for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:3:4:5:6']) t.not(await request(address), 429);
  t.equal(await request('2001:db8:1:2:ffff::9'), 429);
  t.not(await request('2001:db8:1:3::1'), 429);
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1']) t.not(await request(address), 429);
  t.equal(await request('192.0.2.1'), 429);
  t.not(await request('192.0.2.2'), 429);
});

t.test(
  'unknown clients share a larger limit of the instance, and refreshes count if they fail',
  async (t) => {
    const server = await startAuthServer(t, {
      RATE_LIMIT_OTP: '1',
      RATE_LIMIT_UNKNOWN_CLIENTS: '3',
      RATE_LIMIT_TOKEN_REFRESH: '2',
    });
    const { refreshToken } = await signUp(server);
    const signUps: number[] = [];
    for (const name of ['a', 'b', 'c']) {
      const body = { email: `${name}@example.com`, password: 'correct horse' };
      signUps.push((await server.call('POST', '/signup', { body })).status);
    }
    t.same(signUps, [200, 200, 429]);
    const refresh = (token: string) =>
      server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
    const guesses = [
      await refresh('aaaaaaaaaaaa'),
      await refresh('bbbbbbbbbbbb'),
      await refresh('cccccccccccc'),
    ];
    t.same(
      guesses.map(({ status }) => status),
      [400, 400, 429],
    );
    t.equal((await refresh(refreshToken)).status, 200, 'no user is signed out');
    t.match(server.logs(), /client addresses unknown/);
  },
);

t.test('unknown clients create few accounts, and known users still sign in', async (t) => {
  const { server } = await startMailingServer(t, {
    MAILER_AUTOCONFIRM: 'true',
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  });
  const post = (path: string, body: object) => server.call('POST', path, { body });
  const { refreshToken } = await signUp(server);
  // Without passwords, which are slow to hash.
  const signUps = await Promise.all(Array.from({ length: 120 }, () => post('/signup', {})));
  t.equal(signUps.filter(({ status }) => status === 200).length, 49);
  t.equal(signUps.filter(({ status }) => status === 429).length, 71);
  const password = 'correct horse';
  for (const email of ['ada@example.com', 'new@example.com'])
    t.equal((await post('/signup', { email, password })).status, 429, email);
  t.equal((await post('/otp', { email: 'new@example.com' })).status, 429);
  t.equal((await post('/otp', { email: 'ada@example.com' })).status, 200);
  t.equal((await post('/token?grant_type=password', { email: 'ada@example.com', password })).status, 200);
  t.equal((await post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).status, 200);
  server.clock.advance(6_000);
  t.equal((await post('/otp', { email: 'new@example.com' })).status, 200, 'one drains in six seconds');
});

t.test('sign-ups with a contact are limited from all clients, known or unknown', async (t) => {
  const server = await startAuthServer(t, {
    RATE_LIMIT_HEADER: 'x-client',
    RATE_LIMIT_SIGN_UPS_PER_CONTACT: '2',
  });
  let clients = 0;
  const request = async (email: string) => {
    const headers = { 'x-client': `client ${clients++}` };
    return server.call('POST', '/signup', { body: { email, password: 'correct horse' }, headers });
  };
  await signUp(server);
  t.equal((await request('ADA@example.com')).status, 400);
  t.match(await request('ada@example.com'), { status: 429, body: { error_code: 'over_request_rate_limit' } });
  t.equal((await request('bob@example.com')).status, 200);
  t.equal((await request('bob@example.com')).status, 400);
  const refused = await request('bob@example.com');
  t.equal(refused.status, 429);
  t.equal(refused.headers.get('retry-after'), '1800');
  server.clock.advance(1_800_000);
  t.equal((await request('bob@example.com')).status, 400);
});

t.test('refreshes of a session are limited, and those of other sessions are not', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_REFRESHES_PER_SESSION: '3' });
  const refresh = (token: string) =>
    server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
  let { refreshToken } = await signUp(server);
  const other = await signUp(server, { email: 'bob@example.com' });
  for (let count = 0; count < 3; count++) ({ refreshToken } = signedIn(await refresh(refreshToken)));
  const refused = await refresh(refreshToken);
  t.match(refused, { status: 429, body: { error_code: 'over_request_rate_limit' } });
  t.equal(refused.headers.get('retry-after'), '100');
  t.equal((await refresh(other.refreshToken)).status, 200);
  server.clock.advance(100_000);
  ({ refreshToken } = signedIn(await refresh(refreshToken)));
  // Refreshes at the average rate are not counted.
  for (let count = 0; count < 4; count++) {
    server.clock.advance(100_000);
    ({ refreshToken } = signedIn(await refresh(refreshToken)));
  }
});

t.test('replicas share rate limits', async (t) => {
  const variables = { RATE_LIMIT_HEADER: 'x-client', RATE_LIMIT_VERIFY: '2' };
  const one = await startAuthServer(t, variables);
  const other = await startAuthServer(t, { ...variables, DB_DATABASE_URL: one.databaseUrl });
  const verify = ({ call }: AuthServer) =>
    call('POST', '/verify', {
      body: { type: 'signup', token_hash: 'unknown' },
      headers: { 'x-client': 'one' },
    });
  t.same([(await verify(one)).status, (await verify(other)).status], [403, 403]);
  t.same([(await verify(one)).status, (await verify(other)).status], [429, 429]);
});

t.test('RATE_LIMIT_HEADER identifies clients', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_HEADER: 'X-Client', RATE_LIMIT_OTP: '1' });
  const headers = { 'x-client': 'one, two' };
  const body = { email: 'ada@example.com', password: 'correct horse' };
  t.equal((await server.call('POST', '/signup', { body, headers })).status, 200);
  t.equal((await server.call('POST', '/signup', { body, headers })).status, 429);
  t.equal((await server.call('POST', '/signup', { body, headers: { 'x-client': 'two' } })).status, 400);
});

t.test('forwarding headers of untrusted peers are ignored', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_OTP: '1' });
  const headers = { 'x-forwarded-for': '192.0.2.1' };
  for (const email of ['a@example.com', 'b@example.com'])
    t.equal(
      (await server.call('POST', '/signup', { body: { email, password: 'correct horse' }, headers })).status,
      200,
    );
});
