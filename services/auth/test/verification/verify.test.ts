import postgres from 'postgres';
import t from 'tap';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../helpers/mail-server.ts';
import { textMessages } from '../helpers/text-messages.ts';

const email = 'ada@example.com';
const ada = { email, password: 'correct horse' };
const hourMs = 3_600_000;

async function post(server: AuthServer, path: string, body: unknown) {
  return server.call('POST', path, { body });
}

t.test('missing and extra parameters are rejected', async (t) => {
  const server = await startAuthServer(t);
  const hash = 'a'.repeat(56);
  const cases: readonly (readonly [object, number, string])[] = [
    [{}, 400, 'Verify requires a verification type'],
    [{ type: 'signup' }, 400, 'Verify requires either a token or a token hash'],
    [{ type: 'signup', token: '1', token_hash: hash }, 400, 'Verify requires either a token or a token hash'],
    [
      { type: 'signup', token: '1' },
      400,
      'Only an email address or phone number should be provided on verify',
    ],
    [
      { type: 'signup', token: '1', email, phone: '15005550001' },
      400,
      'Only an email address or phone number should be provided on verify',
    ],
    [{ type: 'signup', token_hash: hash, email }, 400, 'Only the token_hash and type should be provided'],
    [
      { type: 'signup', token_hash: hash, redirect_to: 'x' },
      400,
      'Only the token_hash and type should be provided',
    ],
    [{ type: 'sms', token_hash: hash }, 400, 'Invalid email verification type'],
    [{ type: 'toString', token_hash: hash }, 400, 'Invalid email verification type'],
    [{ type: 'telepathy', token: '1', email }, 400, 'Unsupported verification type'],
    [
      { type: 'signup', token: '1', email: 'unknown' },
      400,
      'Unable to validate email address: invalid format',
    ],
    [{ type: 'sms', token: '1', phone: 'x' }, 400, 'Invalid phone number format (E.164 required)'],
    [{ type: 'sms', token: '123456', email }, 403, 'Token has expired or is invalid'],
    [{ type: 'signup', token: '123456', email }, 403, 'Token has expired or is invalid'],
    [{ type: 'signup', token_hash: hash }, 403, 'Email link is invalid or has expired'],
  ];
  for (const [body, status, msg] of cases)
    t.match(await post(server, '/verify', body), { status, body: { msg } }, JSON.stringify(body));
});

t.test('response has the verified type', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  await post(server, '/signup', ada);
  const token = codeIn(await smtp.mailTo(email));
  const answer = await post(server, '/verify', { type: 'email', email: ' ADA@example.com', token });
  t.match(answer, { status: 200, body: { type: 'signup', token_type: 'bearer', user: { email } } });
  t.equal(answer.headers.get('cache-control'), 'no-store');
});

t.test('codes and links expire after MAILER_OTP_EXP and SMS_OTP_EXP', async (t) => {
  const texts = await textMessages(t);
  const { server, smtp } = await startMailingServer(t, {
    ...texts.variables,
    EXTERNAL_PHONE_ENABLED: 'true',
    MAILER_OTP_EXP: '3600',
    SMS_OTP_EXP: '60',
  });
  const phone = '15005550001';
  t.equal((await post(server, '/otp', { phone })).status, 200);
  server.clock.advance(60_000);
  t.match(await post(server, '/verify', { type: 'sms', phone, token: texts.lastCode() }), {
    status: 403,
    body: { error_code: 'otp_expired' },
  });
  await post(server, '/signup', ada);
  const mail = await smtp.mailTo(email);
  server.clock.advance(hourMs);
  t.match(await post(server, '/verify', { type: 'signup', email, token: codeIn(mail) }), {
    status: 403,
    body: { error_code: 'otp_expired' },
  });
  const { pathname, search } = linkIn(mail);
  const { headers } = await server.call('GET', pathname + search);
  t.equal(
    headers.get('location'),
    'https://example.com/#error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid+or+has+expired&sb=',
  );
});

t.test('one of many concurrent requests spends a code', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  await post(server, '/signup', ada);
  const token = codeIn(await smtp.mailTo(email));
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => post(server, '/verify', { type: 'signup', email, token })),
  );
  t.same(answers.map(({ status }) => status).toSorted(), [200, ...Array.from({ length: 9 }, () => 403)]);
});

t.test('HEAD does not spend a link', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  await post(server, '/signup', ada);
  const { pathname, search } = linkIn(await smtp.mailTo(email));
  t.not((await server.call('HEAD', pathname + search)).status, 303);
  t.match((await server.call('GET', pathname + search)).headers.get('location'), /access_token=/);
});

t.test('link without token or type gets a response without redirect', async (t) => {
  const server = await startAuthServer(t);
  t.match(await server.call('GET', '/verify?token=x'), {
    status: 400,
    body: { msg: 'Verify requires a verification type' },
  });
  t.match(await server.call('GET', '/verify?type=signup'), {
    status: 400,
    body: { msg: 'Verify requires a token or a token hash' },
  });
});

t.test('link redirects to the requested target if it is allowed', async (t) => {
  const { server } = await startMailingServer(t, { URI_ALLOW_LIST: 'https://*.example.org/in' });
  const target = async (redirectTo: string, token = 'x') =>
    (
      await server.call(
        'GET',
        `/verify?type=signup&token=${token}&redirect_to=${encodeURIComponent(redirectTo)}`,
      )
    ).headers.get('location');
  t.match(await target('https://app.example.org/in'), /^https:\/\/app\.example\.org\/in#error=access_denied/);
  t.match(await target('https://evil.example/in'), /^https:\/\/example\.com\/#error=/);
  const pkce = await target('https://app.example.org/in', 'pkce_x');
  const parameters =
    'error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid+or+has+expired';
  t.equal(pkce, `https://app.example.org/in?${parameters}#${parameters}&sb=`);
});

t.test('banned user is rejected', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  await post(server, '/signup', ada);
  const token = codeIn(await smtp.mailTo(email));
  const sql = postgres(server.databaseUrl, { onnotice: () => undefined });
  t.teardown(() => sql.end());
  await sql`update auth.users set banned_until = '2999-01-01' where email = ${email}`;
  t.match(await post(server, '/verify', { type: 'signup', email, token }), {
    status: 403,
    body: { error_code: 'user_banned' },
  });
});

t.test('user without a password may set one with the confirmation', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  await post(server, '/otp', { email });
  const token = codeIn(await smtp.mailTo(email));
  const verify = (password: string) => post(server, '/verify', { type: 'signup', email, token, password });
  t.match(await verify('short'), { status: 422, body: { error_code: 'weak_password' } });
  t.equal((await verify(ada.password)).status, 200, 'the code was not spent');
  t.equal((await post(server, '/token?grant_type=password', ada)).status, 200);
});

t.test(
  'unconfirmed password is removed when the owner of the address signs in by another link',
  async (t) => {
    for (const path of ['/otp', '/magiclink', '/recover'] as const) {
      const { server, smtp } = await startMailingServer(t);
      // An attacker signs up and waits for the owner to confirm.
      await post(server, '/signup', ada);
      server.clock.advance(hourMs);
      t.equal((await post(server, path, { email })).status, 200);
      const { pathname, search } = linkIn(await smtp.mailTo(email, 2));
      t.match((await server.call('GET', pathname + search)).headers.get('location'), /access_token=/);
      const { body } = await post(server, '/token?grant_type=password', ada);
      t.equal(body.error_code, 'invalid_credentials', path);
    }
  },
);

t.test('code is exchanged once before it expires', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const verifier = 'v'.repeat(43);
  const challenge = { code_challenge: verifier, code_challenge_method: 'plain' };
  const codeOf = async (count: number) => {
    const { pathname, search } = linkIn(await smtp.mailTo(email, count));
    const location = (await server.call('GET', pathname + search)).headers.get('location') ?? '';
    return new URL(location).searchParams.get('code');
  };
  const exchange = (auth_code: string | null, code_verifier = verifier) =>
    post(server, '/token?grant_type=pkce', { auth_code, code_verifier });

  await post(server, '/signup', { ...ada, ...challenge });
  const first = await codeOf(1);
  const answers = await Promise.all(Array.from({ length: 5 }, () => exchange(first)));
  t.same(answers.map(({ status }) => status).toSorted(), [200, 404, 404, 404, 404]);

  await post(server, '/recover', { email, ...challenge });
  const second = await codeOf(2);
  server.clock.advance(300_000);
  t.match(await exchange(second), {
    status: 422,
    body: { error_code: 'flow_state_expired', msg: 'invalid flow state, flow state has expired' },
  });
  t.match(await exchange('unknown'), {
    status: 404,
    body: { error_code: 'flow_state_not_found', msg: 'invalid flow state, no valid flow state found' },
  });
  t.match(await exchange(second, ''), {
    status: 400,
    body: { msg: 'invalid request: both auth code and code verifier should be non-empty' },
  });
});

t.test('rejected request does not affect a pending flow of the user', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const ask = (verifier: string) =>
    post(server, '/otp', { email, code_challenge: verifier, code_challenge_method: 'plain' });
  t.equal((await ask('a'.repeat(43))).status, 200);
  server.clock.advance(1000);
  t.equal((await ask('e'.repeat(43))).status, 429);
  const { pathname, search } = linkIn(await smtp.mailTo(email));
  const location = (await server.call('GET', pathname + search)).headers.get('location') ?? '';
  const auth_code = new URL(location).searchParams.get('code');
  const answer = await post(server, '/token?grant_type=pkce', { auth_code, code_verifier: 'a'.repeat(43) });
  t.equal(answer.status, 200);
});

t.test('OAuth 2.0 client exchanges the code as authorization_code', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const verifier = 'v'.repeat(43);
  await post(server, '/signup', { ...ada, code_challenge: verifier, code_challenge_method: 'plain' });
  const { pathname, search } = linkIn(await smtp.mailTo(email));
  const location = (await server.call('GET', pathname + search)).headers.get('location') ?? '';
  const code = new URL(location).searchParams.get('code') ?? '';
  const form = (codeVerifier: string) =>
    server.call('POST', '/token', {
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        code_verifier: codeVerifier,
      }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  t.match(await form('w'.repeat(43)), { status: 400, body: { error: 'invalid_grant' } });
  t.match(await form(verifier), { status: 200, body: { token_type: 'bearer' } });
});

t.test('link and code stay valid if the session cannot be stored', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const failing = async (work: () => Promise<void>) => {
    await sql`alter table auth.sessions add constraint full_disk check (false) not valid`;
    await work();
    await sql`alter table auth.sessions drop constraint full_disk`;
  };
  const failure = { status: 500, body: { error_code: 'unexpected_failure' } };
  await post(server, '/signup', ada);
  const link = { type: 'signup', token_hash: linkIn(await smtp.mailTo(email)).searchParams.get('token') };
  await failing(async () => void t.match(await post(server, '/verify', link), failure));
  t.match(await post(server, '/verify', link), { status: 200, body: { user: { email } } });

  const verifier = 'v'.repeat(43);
  const other = 'grace@example.com';
  await post(server, '/signup', {
    ...ada,
    email: other,
    code_challenge: verifier,
    code_challenge_method: 'plain',
  });
  const { pathname, search } = linkIn(await smtp.mailTo(other));
  const { headers } = await server.call('GET', pathname + search);
  const code = new URL(headers.get('location') ?? '').searchParams.get('code');
  const exchange = { auth_code: code, code_verifier: verifier };
  await failing(async () => void t.match(await post(server, '/token?grant_type=pkce', exchange), failure));
  t.match(await post(server, '/token?grant_type=pkce', exchange), { status: 200 });
});
