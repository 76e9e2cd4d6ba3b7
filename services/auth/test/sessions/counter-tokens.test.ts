import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import type { Test } from 'tap';
import t from 'tap';
import { makeCounterToken, parseCounterToken } from '../../src/sessions/refresh-token.ts';
import {
  type Answer,
  type AuthServer,
  type SignedIn,
  signedIn,
  signUp,
  startAuthServer,
} from '../helpers/auth-server.ts';

const version2 = { SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: '2' };
const alreadyUsed = { status: 400, body: { error_code: 'refresh_token_already_used' } };
const notFound = { status: 400, body: { error_code: 'refresh_token_not_found' } };

function startServer(t: Test, variables: Readonly<Record<string, string>> = {}): Promise<AuthServer> {
  return startAuthServer(t, { ...version2, ...variables });
}

function refresh(server: AuthServer, token: string): Promise<Answer> {
  return server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: token } });
}

async function refreshed(server: AuthServer, token: string): Promise<string> {
  return signedIn(await refresh(server, token)).refreshToken;
}

async function isSignedIn(server: AuthServer, { accessToken: token }: SignedIn): Promise<boolean> {
  return (await server.call('GET', '/user', { token })).status === 200;
}

/** The refresh token headers of a response. */
function traceOf({ headers }: Answer): Record<string, string | null> {
  const names = ['counter', 'rotated', 'reuse', 'reuse-cause'];
  return Object.fromEntries(names.map((name) => [name, headers.get(`sb-auth-refresh-token-${name}`)]));
}

async function rowsOf(server: AuthServer, table: 'refresh_tokens' | 'sessions') {
  const sql = postgres(server.databaseUrl, { max: 1 });
  const rows = await sql`select * from auth.${sql(table)}`;
  await sql.end();
  return rows;
}

t.test('refresh increments the counter of the session, and no token is stored', async (t) => {
  const server = await startServer(t);
  const first = await signUp(server);
  t.match(parseCounterToken(first.refreshToken), { counter: 0 });
  const second = await refresh(server, first.refreshToken);
  t.match(parseCounterToken(signedIn(second).refreshToken), { counter: 1 });
  t.same(traceOf(second), { counter: '1', rotated: 'true', reuse: 'false', 'reuse-cause': null });
  t.equal(await isSignedIn(server, signedIn(second)), true);
  t.same([...(await rowsOf(server, 'refresh_tokens'))], []);
});

t.test('fifty parallel refreshes of one token increment the counter once', async (t) => {
  const server = await startServer(t);
  const { refreshToken } = await signUp(server);
  const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(server, refreshToken)));
  const successors = new Set(answers.map((answer) => signedIn(answer).refreshToken));
  t.equal(successors.size, 1);
  t.match(parseCounterToken([...successors][0] ?? ''), { counter: 1 });
});

t.test('previous tokens return the current one within the reuse interval', async (t) => {
  const server = await startServer(t, { SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '10' });
  const { refreshToken: first } = await signUp(server);
  const second = await refreshed(server, first);
  const third = await refreshed(server, second);
  server.clock.advance(9_999);
  const again = await refresh(server, second);
  t.equal(signedIn(again).refreshToken, third);
  t.match(traceOf(again), {
    reuse: 'true',
    'reuse-cause': 'concurrent-refresh,fail-to-save',
    rotated: 'false',
  });
  const older = await refresh(server, first);
  t.equal(signedIn(older).refreshToken, third);
  t.match(traceOf(older), { counter: '2', reuse: 'true', 'reuse-cause': 'concurrent-refresh' });
});

t.test(
  'previous token is accepted at any age until its successor is used, which ends the session',
  async (t) => {
    const server = await startServer(t, { JWT_EXP: '1000h' });
    const first = await signUp(server);
    const second = await refreshed(server, first.refreshToken);
    server.clock.advance(29 * 86_400_000);
    const again = await refresh(server, first.refreshToken);
    t.equal(signedIn(again).refreshToken, second, 'the lost response is repeated');
    t.match(traceOf(again), { 'reuse-cause': 'fail-to-save' });
    const third = await refreshed(server, second);
    server.clock.advance(10_000);
    t.match(await refresh(server, first.refreshToken), alreadyUsed);
    t.match(await refresh(server, third), notFound);
    t.equal(await isSignedIn(server, first), false, 'access tokens of the session are rejected, too');
    t.same([...(await rowsOf(server, 'sessions'))], []);
  },
);

t.test('with an interval of 0, any reuse ends the session, unless ALLOW_REUSE is set', async (t) => {
  const strict = { SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0' };
  const server = await startServer(t, strict);
  const { refreshToken: first } = await signUp(server);
  const second = await refreshed(server, first);
  t.match(await refresh(server, first), alreadyUsed);
  t.match(await refresh(server, second), notFound);
  const lenient = await startServer(t, { ...strict, SECURITY_REFRESH_TOKEN_ALLOW_REUSE: 'true' });
  const { refreshToken } = await signUp(lenient);
  t.equal(await refreshed(lenient, refreshToken), await refreshed(lenient, refreshToken));
});

t.test('without rotation the token and the counter stay the same', async (t) => {
  const server = await startServer(t, { SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false' });
  const { refreshToken } = await signUp(server);
  t.equal(await refreshed(server, refreshToken), refreshToken);
  server.clock.advance(3_600_000);
  const answer = await refresh(server, refreshToken);
  t.equal(signedIn(answer).refreshToken, refreshToken);
  t.match(traceOf(answer), { counter: '0', rotated: 'false', reuse: 'false' });
});

t.test('token signed with another key is not found and does not end the session', async (t) => {
  const server = await startServer(t);
  const { refreshToken } = await signUp(server);
  const { sessionId = '' } = parseCounterToken(refreshToken) ?? {};
  const foreign = Buffer.alloc(32, 1).toString('base64url');
  for (const counter of [0, 1, 2])
    t.match(await refresh(server, makeCounterToken({ sessionId, counter }, foreign)), notFound);
  const [row] = await rowsOf(server, 'sessions');
  const ahead = makeCounterToken({ sessionId, counter: 1 }, String(row?.refresh_token_hmac_key));
  t.match(await refresh(server, ahead), notFound, 'token is newer than the restored database');
  t.equal((await refresh(server, refreshToken)).status, 200);
});

t.test('sessions of version 1 are upgraded at their next refresh', async (t) => {
  const before = await startAuthServer(t);
  const { refreshToken: first } = await signUp(before);
  const server = await startServer(t, { DB_DATABASE_URL: before.databaseUrl });
  const answer = await refresh(server, first);
  const second = signedIn(answer).refreshToken;
  t.same(traceOf(answer), { counter: '0', rotated: 'true', reuse: 'false', 'reuse-cause': null });
  t.equal(await refreshed(server, first), second, 'the lost response is repeated');
  const third = await refreshed(before, second);
  t.match(parseCounterToken(third), { counter: 1 }, 'also with version 1 configured');

  server.clock.advance(60_000);
  t.match(await refresh(server, first), alreadyUsed);
  t.match(await refresh(server, third), notFound);
});

t.test('fifty parallel refreshes upgrade a session once', async (t) => {
  const before = await startAuthServer(t);
  const { refreshToken } = await signUp(before);
  const server = await startServer(t, { DB_DATABASE_URL: before.databaseUrl });
  const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(server, refreshToken)));
  t.equal(new Set(answers.map((answer) => signedIn(answer).refreshToken)).size, 1);
});

t.test('sessions outside the upgrade percentage stay with version 1', async (t) => {
  const before = await startAuthServer(t);
  const { refreshToken } = await signUp(before);
  const server = await startServer(t, {
    DB_DATABASE_URL: before.databaseUrl,
    SECURITY_REFRESH_TOKEN_UPGRADE_PERCENTAGE: '0',
  });
  const answer = await refresh(server, refreshToken);
  t.match(signedIn(answer).refreshToken, /^[a-z2-7]{12}$/);
  t.equal(traceOf(answer).counter, null);
});

t.test('earlier tokens do not count as the previous one after a factor was verified', async (t) => {
  const server = await startServer(t);
  const { accessToken: token, refreshToken } = await signUp(server);
  const { body } = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  // Parsed boundary: the form of an enrolment, as the tests of the client library prove.
  const { id, totp } = body as { id: string; totp: { secret: string } };
  const challenge = await server.call('POST', `/factors/${id}/challenge`, { token });
  const code = TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() });
  const verified = await server.call('POST', `/factors/${id}/verify`, {
    token,
    body: { challenge_id: challenge.body.id, code },
  });
  t.match(parseCounterToken(signedIn(verified).refreshToken), { counter: 2 });
  t.equal(
    await refreshed(server, refreshToken),
    signedIn(verified).refreshToken,
    'token of a concurrent refresh',
  );
  const last = await refreshed(server, signedIn(verified).refreshToken);
  t.match(parseCounterToken(last), { counter: 3 });
  server.clock.advance(3_600_000);
  t.match(await refresh(server, refreshToken), alreadyUsed);
});
