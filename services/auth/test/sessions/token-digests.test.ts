import { createHash } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { type AuthServer, jwtSecret, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { linkIn, startMailingServer } from '../helpers/mail-server.ts';

const long = /^[a-z2-7]{32}$/;
const alreadyUsed = { status: 400, body: { error_code: 'refresh_token_already_used' } };
const notFound = { status: 400, body: { error_code: 'refresh_token_not_found' } };

function refresh(server: AuthServer, token: string) {
  return server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
}

async function refreshed(server: AuthServer, token: string): Promise<string> {
  return signedIn(await refresh(server, token)).refreshToken;
}

function database(test: Test, server: AuthServer) {
  const sql = postgres(server.databaseUrl, { max: 1, connection: { search_path: 'auth' } });
  test.teardown(() => sql.end());
  return sql;
}

t.test('refresh tokens of 160 bits are stored as digests, which are no tokens', async (t) => {
  const server = await startAuthServer(t, { SECURITY_TOKEN_DIGESTS: 'true' });
  const sql = database(t, server);
  const { refreshToken: first } = await signUp(server);
  t.match(first, long);
  const second = await refreshed(server, first);
  t.match(second, long);
  const rows = await sql`select token, parent from refresh_tokens order by id`;
  const digest = (token: string) => `sha256:${createHash('sha256').update(token).digest('base64url')}`;
  t.same(
    rows.map(({ token, parent }) => [token, parent]),
    [
      [digest(first), ''],
      [digest(second), digest(first)],
    ],
  );
  for (const { token } of rows) t.match(await refresh(server, token), notFound);
  t.match(await refresh(server, digest(second).slice('sha256:'.length)), notFound);

  t.equal(await refreshed(server, first), second, 'the lost response is repeated');
  server.clock.advance(86_400_000);
  t.equal(await refreshed(server, first), second, 'at any age');
  const answers = await Promise.all(Array.from({ length: 20 }, () => refreshed(server, second)));
  t.equal(new Set(answers).size, 1, 'one successor of concurrent refreshes');
  const [third = ''] = answers;
  await refreshed(server, third);
  server.clock.advance(60_000);
  t.match(await refresh(server, first), alreadyUsed);
  t.match(await refresh(server, third), alreadyUsed, 'reuse ends the session');
});

t.test('clear tokens are valid until they are used, and digests after the setting is off', async (t) => {
  const server = await startAuthServer(t, { SECURITY_TOKEN_DIGESTS: 'true' });
  const sql = database(t, server);
  await signUp(server);
  await sql`update refresh_tokens set token = 'abcdefghijkl'`;
  const successor = await refreshed(server, 'abcdefghijkl');
  t.match(successor, long);
  t.equal(await refreshed(server, 'abcdefghijkl'), successor, 'also when the response is lost');
  t.match(await sql`select token, parent from refresh_tokens order by id desc limit 1`, [
    { token: /^sha256:/, parent: 'abcdefghijkl' },
  ]);

  const off = await startAuthServer(t, { DB_DATABASE_URL: server.databaseUrl });
  const clear = await refreshed(off, successor);
  t.match(clear, /^[a-z2-7]{12}$/);
  t.equal(await refreshed(off, successor), clear, 'a lost response');
});

t.test('after a second factor, the token before it gets the current one', async (t) => {
  const server = await startAuthServer(t, { SECURITY_TOKEN_DIGESTS: 'true' });
  const { accessToken: token, refreshToken } = await signUp(server);
  const { body } = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  // Parsed boundary: the form of an enrolment, as the tests of the client library prove.
  const { id, totp } = body as { id: string; totp: { secret: string } };
  const challenge = await server.call('POST', `/factors/${id}/challenge`, { token });
  const code = TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() });
  const answer = { challenge_id: challenge.body.id, code };
  const verified = signedIn(await server.call('POST', `/factors/${id}/verify`, { token, body: answer }));
  t.match(verified.refreshToken, long);
  t.equal(await refreshed(server, refreshToken), verified.refreshToken, 'of a concurrent refresh');
  t.match(await refreshed(server, verified.refreshToken), long);
});

t.test('codes of flows are stored as digests, and a code for a session gets tokens', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    SECURITY_TOKEN_DIGESTS: 'true',
    MAILER_AUTOCONFIRM: 'true',
    PAGES_ENABLED: 'true',
    API_EXTERNAL_URL: 'http://localhost:9999',
  });
  const sql = database(t, server);
  await signUp(server);
  const verifier = 'x'.repeat(43);
  const challenge = { code_challenge: verifier, code_challenge_method: 'plain' };
  await server.call('POST', '/otp', { body: { email: 'ada@example.com', ...challenge } });
  const link = linkIn(await smtp.mailTo('ada@example.com'));
  const { headers } = await server.call('GET', link.href.slice(link.origin.length));
  const code = new URL(headers.get('location') ?? '').searchParams.get('code') ?? '';
  t.match(code, long);
  const [stored] = await sql`select auth_code from flow_state`;
  t.match(stored, { auth_code: /^sha256:/ });
  const exchange = (authCode: string) =>
    server.call('POST', '/token?grant_type=pkce', {
      body: { auth_code: authCode, code_verifier: verifier },
    });
  t.match(await exchange(stored?.auth_code), { status: 404 }, 'the digest is no code');
  const { refreshToken } = signedIn(await exchange(code));
  t.match(await refreshed(server, refreshToken), long);

  const browser = new Browser({ 'http://localhost:9999': server.url });
  const query = new URLSearchParams({ ...challenge, redirect_to: 'https://example.com/welcome' });
  const credentials = { identifier: 'ada@example.com', password: 'correct horse' };
  const pages = `http://localhost:9999/pages/sign-in?${query}`;
  const handed = await browser.submit(pages, credentials, { target: 'sign-in' });
  const handover = new URL(handed.headers.get('location') ?? '').searchParams.get('code') ?? '';
  t.match(handover, long);
  const session = signedIn(await exchange(handover));
  t.match(await refreshed(server, session.refreshToken), long);
});

t.test('a database that GoTrue shares has no digests', (t) => {
  const environment = {
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    DATABASE_URL: 'postgres://127.0.0.1:1/none',
    SVC_JWT_SECRET: jwtSecret,
    SVC_DB_SHARED_WITH_GOTRUE: 'true',
    SVC_SECURITY_PROFILE: 'strict',
  };
  t.match(readSettings(environment), {
    ok: false,
    problems: [
      {
        variable: 'SVC_SECURITY_TOKEN_DIGESTS',
        expected: 'false, because SVC_DB_SHARED_WITH_GOTRUE is true and GoTrue reads tokens in the clear',
      },
      { variable: 'SVC_PASSWORD_MAX_BYTES', expected: /^72, because SVC_DB_SHARED_WITH_GOTRUE is true/ },
    ],
  });
  t.ok(
    readSettings({ ...environment, SVC_SECURITY_TOKEN_DIGESTS: 'false', SVC_PASSWORD_MAX_BYTES: '72' }).ok,
  );
  t.end();
});
