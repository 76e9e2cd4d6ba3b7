import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import t, { type Test } from 'tap';
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

/** What the headers say of the refresh token. */
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

t.test('a refresh raises the counter of the session, and no token is kept', async (t) => {
  const server = await startServer(t);
  const first = await signUp(server);
  t.match(parseCounterToken(first.refreshToken), { counter: 0 });
  const second = await refresh(server, first.refreshToken);
  t.match(parseCounterToken(signedIn(second).refreshToken), { counter: 1 });
  t.same(traceOf(second), { counter: '1', rotated: 'true', reuse: 'false', 'reuse-cause': null });
  t.equal(await isSignedIn(server, signedIn(second)), true);
  t.same([...(await rowsOf(server, 'refresh_tokens'))], []);
});

t.test('fifty parallel refreshes of one token raise the counter once', async (t) => {
  const server = await startServer(t);
  const { refreshToken } = await signUp(server);
  const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(server, refreshToken)));
  const successors = new Set(answers.map((answer) => signedIn(answer).refreshToken));
  t.equal(successors.size, 1);
  t.match(parseCounterToken([...successors][0] ?? ''), { counter: 1 });
});

t.test('within the reuse interval tokens of before are answered the one that is good now', async (t) => {
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

t.test('after the reuse interval a token of before ends the session, for good', async (t) => {
  const server = await startServer(t, { SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '10' });
  const first = await signUp(server);
  const second = await refreshed(server, first.refreshToken);
  server.clock.advance(10_000);
  t.match(await refresh(server, first.refreshToken), alreadyUsed);
  t.match(await refresh(server, second), notFound);
  t.equal(await isSignedIn(server, first), false, 'access tokens of the session are refused, too');
  t.same([...(await rowsOf(server, 'sessions'))], []);
});

t.test('where it is allowed the previous token comes again at any age, those before it never', async (t) => {
  const server = await startServer(t, { SECURITY_REFRESH_TOKEN_ALLOW_REUSE: 'true' });
  const { refreshToken: first } = await signUp(server);
  const second = await refreshed(server, first);
  server.clock.advance(3_600_000);
  const again = await refresh(server, first);
  t.equal(signedIn(again).refreshToken, second);
  t.match(traceOf(again), { 'reuse-cause': 'fail-to-save,always-allow' });
  await refreshed(server, second);
  server.clock.advance(3_600_000);
  t.match(await refresh(server, first), alreadyUsed);
});

t.test('without rotation the token stays good, and the counter where it is', async (t) => {
  const server = await startServer(t, { SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false' });
  const { refreshToken } = await signUp(server);
  t.equal(await refreshed(server, refreshToken), refreshToken);
  server.clock.advance(3_600_000);
  const answer = await refresh(server, refreshToken);
  t.equal(signedIn(answer).refreshToken, refreshToken);
  t.match(traceOf(answer), { counter: '0', rotated: 'false', reuse: 'false' });
});

t.test('a token that another key has signed is not found, and ends nothing', async (t) => {
  const server = await startServer(t);
  const { refreshToken } = await signUp(server);
  const { sessionId = '' } = parseCounterToken(refreshToken) ?? {};
  const foreign = Buffer.alloc(32, 1).toString('base64url');
  for (const counter of [0, 1, 2])
    t.match(await refresh(server, makeCounterToken({ sessionId, counter }, foreign)), notFound);
  const [row] = await rowsOf(server, 'sessions');
  const ahead = makeCounterToken({ sessionId, counter: 1 }, String(row?.refresh_token_hmac_key));
  t.match(await refresh(server, ahead), notFound, 'a restored database does not know it');
  t.equal((await refresh(server, refreshToken)).status, 200);
});

t.test('sessions of version 1 change over at their next refresh', async (t) => {
  const before = await startAuthServer(t);
  const { refreshToken: first } = await signUp(before);
  const server = await startServer(t, { DB_DATABASE_URL: before.databaseUrl });
  const answer = await refresh(server, first);
  const second = signedIn(answer).refreshToken;
  t.same(traceOf(answer), { counter: '0', rotated: 'true', reuse: 'false', 'reuse-cause': null });
  t.equal(await refreshed(server, first), second, 'a lost answer is answered again');
  const third = await refreshed(before, second);
  t.match(parseCounterToken(third), { counter: 1 }, 'also where version 1 is asked for');

  server.clock.advance(60_000);
  t.match(await refresh(server, first), alreadyUsed);
  t.match(await refresh(server, third), notFound);
});

t.test('fifty parallel refreshes change a session over once', async (t) => {
  const before = await startAuthServer(t);
  const { refreshToken } = await signUp(before);
  const server = await startServer(t, { DB_DATABASE_URL: before.databaseUrl });
  const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(server, refreshToken)));
  t.equal(new Set(answers.map((answer) => signedIn(answer).refreshToken)).size, 1);
});

t.test('sessions that are not among the percentage stay with version 1', async (t) => {
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

t.test('a verified factor leaves no token of before that counts as the previous one', async (t) => {
  const server = await startServer(t, { SECURITY_REFRESH_TOKEN_ALLOW_REUSE: 'true' });
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
  t.equal(await refreshed(server, refreshToken), signedIn(verified).refreshToken, 'a refresh under way');
  const last = await refreshed(server, signedIn(verified).refreshToken);
  t.match(parseCounterToken(last), { counter: 3 });
  server.clock.advance(3_600_000);
  t.match(await refresh(server, refreshToken), alreadyUsed);
});
