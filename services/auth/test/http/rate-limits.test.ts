import t from 'tap';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';

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
