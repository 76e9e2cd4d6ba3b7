import { AuthClient } from '@supabase/auth-js';
import { Secret, TOTP } from 'otpauth';
import t, { type Test } from 'tap';
import { signedIn, signUp } from '../helpers/auth-server.ts';
import { relyingParty } from '../helpers/authenticator.ts';
import { codeIn, startMailingServer } from '../helpers/mail-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };
const needed = { status: 400, body: { error_code: 'reauthentication_needed' } };

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const running = await startMailingServer(t, {
    ...relyingParty,
    MAILER_AUTOCONFIRM: 'true',
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    EXTERNAL_GITHUB_ENABLED: 'true',
    EXTERNAL_GITHUB_CLIENT_ID: 'id',
    EXTERNAL_GITHUB_SECRET: 'secret',
    RATE_LIMIT_OTP: '1000',
    SMTP_MAX_FREQUENCY: '0.001s',
    SECURITY_RECENT_SIGN_IN: '10m',
    ...variables,
  });
  const { server } = running;
  const send = (token: string, method: string, path: string, body?: unknown) =>
    server.call(method, path, { token, ...(body !== undefined && { body }) });
  const signIn = async (password = ada.password) =>
    signedIn(await server.call('POST', '/token?grant_type=password', { body: { ...ada, password } }));
  /** Just too long for the sign-in to be recent. */
  const wait = () => server.clock.advance(10 * 60_000);
  return { ...running, send, signIn, wait };
}

/** Changes that a recent session may send, with a status that is not 400. */
const changes: readonly (readonly [method: string, path: string, body?: unknown])[] = [
  ['PUT', '/user', { email: 'eva@example.com' }],
  ['PUT', '/user', { phone: '491700000001' }],
  ['PUT', '/user', { password: 'battery staple' }],
  ['POST', '/factors', { factor_type: 'totp' }],
  ['POST', '/passkeys/registration/options'],
  ['DELETE', '/passkeys/00000000-0000-0000-0000-000000000000'],
  ['GET', '/user/identities/authorize?provider=github&skip_http_redirect=true'],
  ['DELETE', '/user/identities/00000000-0000-0000-0000-000000000000'],
  ['DELETE', '/user/sessions/00000000-0000-0000-0000-000000000000'],
  ['POST', '/logout?scope=others'],
];

t.test('changes need a recent sign-in, the current password or a nonce', async (t) => {
  const { server, send, signIn, wait, smtp } = await start(t);
  await signUp(server, ada);
  wait();
  const { accessToken: token } = await signIn();
  server.clock.advance(10 * 60_000 - 1);
  for (const [method, path, body] of changes.slice(3)) {
    const answer = await send(token, method, path, body);
    t.not(answer.status, 400, `recent: ${method} ${path} ${answer.text}`);
  }
  server.clock.advance(1);
  for (const [method, path, body] of changes)
    t.match(await send(token, method, path, body), needed, `${method} ${path} ${JSON.stringify(body)}`);
  t.match(await send(token, 'PUT', '/user', { data: { theme: 'dark' } }), { status: 200 }, 'no credential');
  t.match(await send(token, 'PUT', '/user', { email: ada.email }), { status: 200 }, 'no change');

  const confirm = (body: unknown) => send(token, 'POST', '/reauthenticate', body);
  t.match(await confirm({}), {
    status: 400,
    body: { error_code: 'reauthentication_needed', msg: /current_password or a nonce/ },
  });
  t.match(await confirm({ current_password: 'wrong' }), { body: { error_code: 'current_password_invalid' } });
  t.match(await confirm({ nonce: '000000' }), {
    status: 422,
    body: { error_code: 'reauthentication_not_valid' },
  });
  t.match(await send(token, 'POST', '/factors', { factor_type: 'totp' }), needed);
  t.match(await confirm({ current_password: ada.password }), { status: 200 });
  t.match(await send(token, 'POST', '/factors', { factor_type: 'totp' }), { status: 200 });

  wait();
  t.match(await send(token, 'POST', '/factors', { factor_type: 'totp', friendly_name: 'b' }), needed);
  await send(token, 'GET', '/reauthenticate');
  const nonce = codeIn(await smtp.mailTo(ada.email));
  t.match(await confirm({ nonce }), { status: 200 });
  t.match(await confirm({ nonce }), { status: 422 }, 'spent');
  const again = { factor_type: 'totp', friendly_name: 'c' };
  t.match(await send(token, 'POST', '/factors', again), { status: 200 });

  wait();
  const change = { phone: '491700000001' };
  t.match(await send(token, 'PUT', '/user', { ...change, current_password: ada.password }), { status: 200 });
  t.match(
    await send(token, 'PUT', '/user', { password: 'battery staple' }),
    { status: 200 },
    'is recent now',
  );
});

t.test('auth-js gets codes that it knows, and changes the email with a nonce', async (t) => {
  const { server, smtp, wait } = await start(t);
  const client = new AuthClient({ url: server.url, autoRefreshToken: false, persistSession: false });
  await client.signUp(ada);
  wait();
  const email = 'eva@example.com';
  t.match((await client.updateUser({ email })).error, { code: 'reauthentication_needed', status: 400 });
  t.match((await client.mfa.enroll({ factorType: 'totp' })).error, { code: 'reauthentication_needed' });
  t.match((await client.updateUser({ email, nonce: '000000' })).error, {
    code: 'reauthentication_not_valid',
  });
  t.equal((await client.reauthenticate()).error, null);
  const nonce = codeIn(await smtp.mailTo(ada.email));
  t.match(await client.updateUser({ email, nonce }), { error: null, data: { user: { new_email: email } } });

  wait();
  t.equal((await client.signInWithPassword(ada)).error, null);
  t.equal((await client.mfa.enroll({ factorType: 'totp' })).error, null);
});

t.test('a verified factor is removed, and codes are replaced, after a recent sign-in only', async (t) => {
  const { server, send, wait } = await start(t, {
    MFA_RECOVERY_CODES_ENROLL_ENABLED: 'true',
    MFA_RECOVERY_CODES_VERIFY_ENABLED: 'true',
  });
  const { accessToken } = await signUp(server, ada);
  const { body } = await send(accessToken, 'POST', '/factors', { factor_type: 'totp' });
  const { id, totp } = body as { id: string; totp: { secret: string } }; // asserted by the use below
  const challenge = await send(accessToken, 'POST', `/factors/${id}/challenge`, {});
  const verification = {
    challenge_id: challenge.body.id,
    code: TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() }),
  };
  const { accessToken: token } = signedIn(
    await send(accessToken, 'POST', `/factors/${id}/verify`, verification),
  );
  t.match(await send(token, 'POST', '/factors/recovery-codes', {}), { status: 200 });
  wait();
  t.match(await send(token, 'POST', '/factors/recovery-codes/regenerate'), needed);
  t.match(await send(token, 'DELETE', '/factors/recovery-codes'), needed);
  t.match(await send(token, 'DELETE', `/factors/${id}`), needed);
  await send(token, 'POST', '/reauthenticate', { current_password: ada.password });
  t.match(await send(token, 'DELETE', '/factors/recovery-codes'), { status: 200 });
  t.match(await send(token, 'POST', '/factors/recovery-codes', {}), { status: 200 });
  t.match(await send(token, 'DELETE', `/factors/${id}`), { status: 200 });
});

t.test('a recovery counts as recent for the password, and guests have nothing to confirm with', async (t) => {
  const { server, send, smtp, wait } = await start(t, {
    SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
  });
  await signUp(server, ada);
  await server.call('POST', '/recover', { body: { email: ada.email } });
  const body = { type: 'recovery', email: ada.email, token: codeIn(await smtp.mailTo(ada.email)) };
  const { accessToken: token } = signedIn(await server.call('POST', '/verify', { body }));
  wait();
  t.match(await send(token, 'PUT', '/user', { email: 'eva@example.com' }), needed, 'not for the email');
  t.match(await send(token, 'PUT', '/user', { password: 'battery staple' }), { status: 200 });

  const guest = signedIn(await server.call('POST', '/signup', { body: {} }));
  wait();
  const upgrade = { email: 'guest@example.com' };
  t.match(await send(guest.accessToken, 'PUT', '/user', upgrade), { status: 200 });
});

t.test('by default changes need no recent sign-in', async (t) => {
  const { server, send, wait } = await start(t, { SECURITY_RECENT_SIGN_IN: '0' });
  const { accessToken: token } = await signUp(server, ada);
  wait();
  for (const [method, path, body] of changes) {
    const { text } = await send(token, method, path, body);
    t.notMatch(text, 'reauthentication_needed', `${method} ${path}`);
  }
});
