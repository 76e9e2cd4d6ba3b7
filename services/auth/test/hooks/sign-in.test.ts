import { createHash } from 'node:crypto';
import { decodeJwt } from 'jose';
import { Secret, TOTP } from 'otpauth';
import t, { type Test } from 'tap';
import type { HookName } from '../../src/config/hook-definitions.ts';
import { type AuthServer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { type HookServer, startHookServer } from '../helpers/hook-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

async function start(t: Test, names: readonly HookName[], variables: Readonly<Record<string, string>> = {}) {
  const hook = await startHookServer(t);
  const server = await startAuthServer(t, { ...hook.variables(...names), ...variables });
  return { hook, server };
}

function signIn(server: AuthServer, password = ada.password) {
  return server.call('POST', '/token?grant_type=password', { body: { ...ada, password } });
}

function refresh(server: AuthServer, { refreshToken }: Pick<SignedIn, 'refreshToken'>) {
  return server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: refreshToken } });
}

/** Answers with the claims that the hook received, changed. */
function answerClaims(hook: HookServer, changes: Readonly<Record<string, unknown>>): void {
  hook.answer((event) => {
    const claims = Object.entries({ ...(event.claims as object), ...changes });
    return { body: { claims: Object.fromEntries(claims.filter(([, value]) => value !== undefined)) } };
  });
}

t.test('access token has the claims of the hook', async (t) => {
  const { hook, server } = await start(t, ['CUSTOM_ACCESS_TOKEN']);
  answerClaims(hook, { plan: 'pro', user_metadata: undefined });
  const session = await signUp(server);
  const claims = decodeJwt(session.accessToken);
  t.match(claims, { sub: session.userId, plan: 'pro' });
  t.notOk('user_metadata' in claims);
  t.match(hook.last(), {
    metadata: { name: 'customize-access-token', ip_address: '127.0.0.1' },
    user_id: session.userId,
    claims: { sub: session.userId, session_id: claims.session_id, aal: 'aal1', role: 'authenticated' },
    authentication_method: 'password',
  });
  t.equal((await server.call('GET', '/user', { token: session.accessToken })).status, 200);

  const refreshed = signedIn(await refresh(server, session));
  t.equal(hook.last().authentication_method, 'token_refresh');
  t.equal(decodeJwt(refreshed.accessToken).plan, 'pro');

  const exp = Math.floor(server.clock.nowMs() / 1000) + 60;
  answerClaims(hook, { exp });
  t.match(await signIn(server), { status: 200, body: { expires_at: exp, expires_in: 60 } });
});

t.test('claims that do not conform to the schema are an error, and no session starts', async (t) => {
  const { hook, server } = await start(t, ['CUSTOM_ACCESS_TOKEN']);
  answerClaims(hook, {});
  const session = await signUp(server);
  for (const [changes, message] of [
    [{ sub: undefined }, /^output claims do not conform to the expected schema: \n- .*sub/],
    [{ exp: '1' }, /claims\.exp/],
    [{ is_anonymous: 'no' }, /claims\.is_anonymous/],
  ] as const) {
    answerClaims(hook, changes);
    const answer = await signIn(server);
    t.match(answer, { status: 500, body: { error_code: 'unexpected_failure', msg: message } });
  }
  hook.answer({ body: {} });
  t.match(await signIn(server), { status: 500, body: { msg: 'output claims field is missing' } });
  answerClaims(hook, { data: 'x'.repeat(11_000) });
  t.match(await signIn(server), { status: 422, body: { error_code: 'hook_payload_over_size_limit' } });
  const { accessToken: token } = session;
  const { sessions } = (await server.call('GET', '/user/sessions', { token })).body;
  t.match(sessions, { length: 1 });
});

t.test('refresh that the hook rejects does not spend the refresh token', async (t) => {
  const { hook, server } = await start(t, ['CUSTOM_ACCESS_TOKEN'], {
    SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0',
  });
  answerClaims(hook, {});
  const session = await signUp(server);
  hook.answer({ body: { error: { http_code: 403, message: 'Not today' } } });
  t.match(await refresh(server, session), { status: 403, body: { error_code: 'unknown', msg: 'Not today' } });
  answerClaims(hook, {});
  t.equal((await refresh(server, session)).status, 200);
});

t.test('code of a PKCE flow can be exchanged again after the hook failed', async (t) => {
  const { hook, server } = await start(t, ['CUSTOM_ACCESS_TOKEN', 'SEND_EMAIL'], {
    DB_MAX_POOL_SIZE: '1',
  });
  const verifier = 'v'.repeat(43);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  hook.answer((event) => ({ body: 'claims' in event ? { claims: event.claims } : {} }));
  await signUp(server);
  await server.call('POST', '/otp', {
    body: { email: ada.email, code_challenge: challenge, code_challenge_method: 's256' },
  });
  const { token_hash: hash } = hook.last().email_data as { readonly token_hash: string };
  const link = await server.call('GET', `/verify?type=magiclink&token=${hash}`);
  const code = new URL(link.headers.get('location') ?? '').searchParams.get('code');
  const exchange = () =>
    server.call('POST', '/token?grant_type=pkce', { body: { auth_code: code, code_verifier: verifier } });
  hook.answer({ body: { error: { http_code: 429, message: 'Later' } } });
  t.match(await exchange(), { status: 429, body: { msg: 'Later' } });
  answerClaims(hook, {});
  t.equal((await exchange()).status, 200);
});

t.test('password hook can reject right and wrong passwords', async (t) => {
  const { hook, server } = await start(t, ['PASSWORD_VERIFICATION_ATTEMPT']);
  const session = await signUp(server);
  hook.answer({ body: { decision: 'continue' } });
  t.equal((await signIn(server)).status, 200);
  t.match(hook.last(), {
    metadata: { name: 'password-verification' },
    user_id: session.userId,
    valid: true,
  });
  t.match(await signIn(server, 'wrong'), { status: 400, body: { msg: 'Invalid login credentials' } });
  t.equal(hook.last().valid, false);

  hook.answer({ body: { decision: 'reject' } });
  t.match(await signIn(server), {
    status: 400,
    body: {
      error_code: 'invalid_credentials',
      msg: 'Further password verification attempts will be rejected.',
    },
  });
  const { accessToken: token } = session;
  t.equal((await server.call('GET', '/user', { token })).status, 200, 'sessions stay');
  hook.answer({ body: { decision: 'reject', message: 'Too many', should_logout_user: true } });
  t.match(await signIn(server, 'wrong'), { status: 400, body: { msg: 'Too many' } });
  t.equal((await server.call('GET', '/user', { token })).status, 403, 'sessions have ended');

  const calls = hook.requests.length;
  const unknown = { ...ada, email: 'bob@example.com' };
  await server.call('POST', '/token?grant_type=password', { body: unknown });
  t.equal(hook.requests.length, calls, 'not called for unknown users');
});

t.test('wrong password counts as a wrong guess if the hook fails', async (t) => {
  const { hook, server } = await start(t, ['PASSWORD_VERIFICATION_ATTEMPT']);
  await signUp(server);
  hook.answer({ body: { error: { http_code: 429, message: 'Slow down' } } });
  const limited = { status: 429, body: { error_code: 'over_request_rate_limit' } };
  let answer = await signIn(server, 'wrong');
  t.match(answer, { status: 429, body: { error_code: 'unknown', msg: 'Slow down' } });
  for (let count = 0; count < 10; count++) answer = await signIn(server, 'wrong');
  t.match(answer, limited);
});

t.test('second factor hook can reject and end all sessions', async (t) => {
  const { hook, server } = await start(t, ['MFA_VERIFICATION_ATTEMPT']);
  const { accessToken: token, userId } = await signUp(server);
  const enrolled = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  const { id, totp } = enrolled.body as { readonly id: string; readonly totp: { readonly secret: string } };
  async function verify(code: string) {
    const { body } = await server.call('POST', `/factors/${id}/challenge`, { token });
    return server.call('POST', `/factors/${id}/verify`, { token, body: { challenge_id: body.id, code } });
  }
  const rightCode = () =>
    TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() });

  hook.answer({ body: { decision: 'continue' } });
  t.match(await verify('000000'), { status: 422, body: { error_code: 'mfa_verification_failed' } });
  t.match(hook.last(), {
    metadata: { name: 'mfa-verification' },
    user_id: userId,
    factor_id: id,
    factor_type: 'totp',
    valid: false,
  });
  t.equal((await verify(rightCode())).status, 200);
  t.equal(hook.last().valid, true);

  server.clock.advance(30_000);
  hook.answer({ body: { decision: 'reject', message: 'Locked' } });
  t.match(await verify(rightCode()), {
    status: 403,
    body: { error_code: 'mfa_verification_rejected', msg: 'Locked' },
  });
  t.equal((await server.call('GET', '/user', { token })).status, 403, 'all sessions have ended');
});

t.test('token of a second factor has its claims in the hook', async (t) => {
  const { hook, server } = await start(t, ['CUSTOM_ACCESS_TOKEN']);
  answerClaims(hook, {});
  const { accessToken: token } = await signUp(server);
  const enrolled = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  const { id, totp } = enrolled.body as { readonly id: string; readonly totp: { readonly secret: string } };
  const { body } = await server.call('POST', `/factors/${id}/challenge`, { token });
  const code = TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() });
  const verify = () =>
    server.call('POST', `/factors/${id}/verify`, { token, body: { challenge_id: body.id, code } });
  hook.answer({ body: { error: { http_code: 403, message: 'No' } } });
  t.match(await verify(), { status: 403, body: { msg: 'No' } });
  answerClaims(hook, {});
  const verified = signedIn(await verify());
  t.match(hook.last(), { authentication_method: 'totp', claims: { aal: 'aal2' } });
  t.match(decodeJwt(verified.accessToken), {
    aal: 'aal2',
    amr: [{ method: 'totp' }, { method: 'password' }],
  });
});
