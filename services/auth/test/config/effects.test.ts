import { createLogger } from '@tollgate/kit/logger';
import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t from 'tap';
import { migrate } from '../../src/db/migrate.ts';
import { adminToken } from '../helpers/admin.ts';
import { jwtSecret, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { testDatabase } from '../helpers/test-database.ts';

t.test('DB_NAMESPACE sets the schema of all tables', async (t) => {
  const server = await startAuthServer(t, { DB_NAMESPACE: 'people' });
  const { userId } = await signUp(server);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.match(await sql`select id from people.users`, [{ id: userId }]);
  t.same([...(await sql`select id from auth.users`)], []);
  await sql.end();
});

t.test('replicas that start concurrently migrate the schema once', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const replicas = [1, 2, 3, 4].map(() => migrate({ databaseUrl, dbNamespace: 'people' }, { logger }));
  const ran = await Promise.all(replicas);
  t.same(
    ran.filter((names) => names.length > 0).length,
    1,
    'one of them does all the work, the others find it done',
  );
});

t.test('DB_MAX_POOL_SIZE limits the connections', async (t) => {
  const server = await startAuthServer(t, { DB_MAX_POOL_SIZE: '2' });
  const { accessToken: token } = await signUp(server);
  const answers = Array.from({ length: 20 }, () => server.call('GET', '/user', { token }));
  t.same(new Set((await Promise.all(answers)).map(({ status }) => status)), new Set([200]));
  const sql = postgres(server.databaseUrl, { max: 1 });
  const [row] = await sql`select count(*)::int as open from pg_stat_activity
    where application_name = 'tollgate-auth' and datname = current_database()`;
  t.equal(row?.open, 2);
  await sql.end();
});

t.test('/settings lists enabled providers', async (t) => {
  const server = await startAuthServer(t, {
    EXTERNAL_GITHUB_ENABLED: 'true',
    EXTERNAL_GITHUB_CLIENT_ID: 'client',
  });
  const { external } = (await server.call('GET', '/settings')).body;
  t.match(external, { github: true, google: false, email: true, phone: true });
});

t.test('/admin/settings lists all settings in force, without secrets, and warnings', async (t) => {
  const server = await startAuthServer(t, { SMTP_HOST: '', SMTP_PASS: 'canary-of-the-test' });
  t.equal((await server.call('GET', '/admin/settings')).status, 401);
  const { status, text, body } = await server.call('GET', '/admin/settings', { token: adminToken() });
  t.equal(status, 200);
  for (const secret of ['canary-of-the-test', jwtSecret, server.databaseUrl]) t.notMatch(text, secret);
  t.match(body, { service: 'auth', warnings: [{ message: /no SMTP server configured/ }] });
  const settings = body.settings as readonly Readonly<Record<string, unknown>>[]; // as documented
  const find = (name: string) => settings.find((setting) => setting.name === name);
  t.match(find('SVC_SITE_URL'), { value: 'https://example.com', source: 'environment' });
  t.match(find('SVC_SMTP_PASS'), { secret: true, set: true, value: undefined });
});

t.test('JWT_AUD and JWT_ISSUER set claims', async (t) => {
  const server = await startAuthServer(t, { JWT_AUD: 'app', JWT_ISSUER: 'https://auth.example.com' });
  const { accessToken } = await signUp(server);
  t.match(decodeJwt(accessToken), { aud: 'app', iss: 'https://auth.example.com' });
  const silent = await startAuthServer(t);
  t.notOk('iss' in decodeJwt((await signUp(silent)).accessToken), 'there is none unless it is set');
});

t.test('without SECURITY_STATEFUL_BEARER a token is valid until it expires', async (t) => {
  const server = await startAuthServer(t, { SECURITY_STATEFUL_BEARER: 'false' });
  const { accessToken: token } = await signUp(server);
  t.equal((await server.call('POST', '/logout', { token })).status, 204);
  t.equal((await server.call('GET', '/user', { token })).status, 200);
  server.clock.advance(3_600_000);
  t.match(await server.call('GET', '/user', { token }), { status: 403, body: { error_code: 'bad_jwt' } });
});

t.test('PASSWORD_MIN_LENGTH is at least 6', async (t) => {
  const signUpWith = async (minimum: string, password: string) => {
    const server = await startAuthServer(t, { PASSWORD_MIN_LENGTH: minimum });
    return server.call('POST', '/signup', { body: { email: 'ada@example.com', password } });
  };
  const refusal = (length: number) => ({
    status: 422,
    body: { error_code: 'weak_password', msg: `Password should be at least ${length} characters.` },
  });
  t.match(await signUpWith('9', '12345678'), refusal(9));
  t.match(await signUpWith('9', '123456789'), { status: 200 });
  t.match(await signUpWith('1', '12345'), refusal(6));
});

t.test('RATE_LIMIT_VERIFY limits codes and links per address', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_HEADER: 'x-client', RATE_LIMIT_VERIFY: '2' });
  const verify = (client: string) =>
    server.call('POST', '/verify', {
      body: { type: 'signup', token_hash: 'unknown' },
      headers: { 'x-client': client },
    });
  const statuses = [await verify('one'), await verify('one'), await verify('one'), await verify('two')];
  t.same(
    statuses.map(({ status }) => status),
    [403, 403, 429, 403],
  );
});

t.test('a limit below one per period allows one request in a longer period', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_HEADER: 'x-client', RATE_LIMIT_VERIFY: '0.5' });
  const verify = async () => {
    const body = { type: 'signup', token_hash: 'unknown' };
    return (await server.call('POST', '/verify', { body, headers: { 'x-client': 'one' } })).status;
  };
  t.same([await verify(), await verify()], [403, 429]);
  server.clock.advance(599_999);
  t.equal(await verify(), 429);
  server.clock.advance(1);
  t.equal(await verify(), 403);
});

t.test('EXTERNAL_EMAIL_MAGIC_LINK_ENABLED=false disables links and codes by email only', async (t) => {
  const server = await startAuthServer(t, { EXTERNAL_EMAIL_MAGIC_LINK_ENABLED: 'false' });
  const body = { email: 'ada@example.com', password: 'correct horse' };
  for (const path of ['/otp', '/magiclink'])
    t.match(await server.call('POST', path, { body: { email: body.email } }), {
      status: 422,
      body: { error_code: 'email_provider_disabled', msg: 'Login with magic link is disabled' },
    });
  t.equal((await server.call('POST', '/signup', { body })).status, 200);
  t.equal((await server.call('POST', '/token?grant_type=password', { body })).status, 200);
});

t.test('without SMTP_HOST no email is sent, requests succeed, and the start warns once', async (t) => {
  const server = await startAuthServer(t, { SMTP_HOST: '', MAILER_AUTOCONFIRM: 'false' });
  const body = { email: 'ada@example.com', password: 'correct horse' };
  t.match(await server.call('POST', '/signup', { body }), { status: 200, body: { email: body.email } });
  t.match(await server.call('POST', '/recover', { body: { email: 'bob@example.com' } }), { status: 200 });
  t.equal(server.logs().match(/no SMTP server configured/g)?.length, 1);
  t.equal((await server.call('GET', '/dev/mail.json')).status, 404);
});

t.test('SITE_URL may be an app URL', async (t) => {
  const server = await startAuthServer(t, { SITE_URL: 'myapp://login' });
  const { status, headers } = await server.call('GET', '/verify?type=signup&token=unknown');
  t.equal(status, 303);
  t.match(headers.get('location'), /^myapp:\/\/login[?#]error=access_denied/);
  const { accessToken: token } = await signUp(server);
  const enrolled = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  t.match(enrolled, { status: 200, body: { totp: { uri: /issuer=login/ } } });
});
