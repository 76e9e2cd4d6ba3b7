import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type Answer, type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../helpers/mail-server.ts';

const email = 'ada@example.com';
const unknown = 'unknown@example.com';
const password = 'correct horse';
const minuteMs = 60_000;

/** Identifies clients by a header and disables the limits by address. */
const clients = {
  RATE_LIMIT_HEADER: 'x-client',
  RATE_LIMIT_TOKEN_REFRESH: '10000',
  RATE_LIMIT_VERIFY: '10000',
  RATE_LIMIT_OTP: '10000',
};
const owner = '192.0.2.1';
const attacker = '198.51.100.1';
const limited = { status: 429, body: { error_code: 'over_request_rate_limit' } };
const wrong = { status: 400, body: { error_code: 'invalid_credentials' } };

function signIn(server: AuthServer, client: string, body: object): Promise<Answer> {
  return server.call('POST', '/token?grant_type=password', {
    body: { email, password, ...body },
    headers: { 'x-client': client },
  });
}

function many<T>(count: number, action: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => action(index)));
}

function statusesOf(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

t.test('ten of 120 concurrent wrong passwords are verified, for known and unknown accounts', async (t) => {
  const server = await startAuthServer(t, clients);
  await signUp(server);
  for (const account of [email, unknown]) {
    const answers = await many(120, (index) =>
      signIn(server, attacker, { email: account, password: `wrong ${index}` }),
    );
    t.same(statusesOf(answers), { 400: 10, 429: 110 }, account);
    const refused = await signIn(server, attacker, { email: account });
    t.match(refused, limited, 'the right one as well');
    t.equal(refused.headers.get('retry-after'), '60');
    t.match(await signIn(server, '198.51.100.254', { email: account }), limited, 'the same /24');
  }
  t.match(await signIn(server, owner, {}), { status: 200 }, 'the owner in another network');
});

t.test('keys of guess counters are digests of accounts and networks', async (t) => {
  const server = await startAuthServer(t, clients);
  await signUp(server);
  await signIn(server, attacker, { password: 'wrong' });
  await signIn(server, owner, {});
  await server.call('POST', '/verify', {
    body: { type: 'signup', email, token: '123456' },
    headers: { 'x-client': attacker },
  });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const rows = await sql`select key from auth.rate_limits where limiter ~ '^(wrong|known)_'`;
  t.equal(rows.length, 6);
  for (const { key } of rows) t.match(key, /^[\w-]{43}$/);
});

t.test('the delay doubles with each wrong password, and the right one resets it', async (t) => {
  const server = await startAuthServer(t, clients);
  await signUp(server);
  for (let count = 0; count < 10; count++)
    t.match(await signIn(server, attacker, { password: 'wrong' }), wrong);
  for (const seconds of [60, 120, 240]) {
    t.equal((await signIn(server, attacker, {})).headers.get('retry-after'), String(seconds));
    server.clock.advance(seconds * 1000 - 1);
    t.match(await signIn(server, attacker, {}), limited);
    server.clock.advance(1);
    t.match(await signIn(server, attacker, { password: 'wrong' }), wrong);
  }
  server.clock.advance(480_000);
  t.match(await signIn(server, attacker, {}), { status: 200 });
  for (let count = 0; count < 10; count++)
    t.match(await signIn(server, attacker, { password: 'wrong' }), wrong);
  t.match(await signIn(server, attacker, { password: 'wrong' }), limited);
});

t.test('the count is reset after ten minutes below the limit, and after a day above it', async (t) => {
  const server = await startAuthServer(t, clients);
  await signUp(server);
  const tryWrong = () => signIn(server, attacker, { password: 'wrong' });
  for (let round = 0; round < 2; round++) {
    for (let count = 0; count < 9; count++) t.match(await tryWrong(), wrong);
    server.clock.advance(10 * minuteMs);
  }
  for (let count = 0; count < 10; count++) t.match(await tryWrong(), wrong);
  server.clock.advance(10 * minuteMs);
  t.match(await tryWrong(), wrong, 'the first delay has passed');
  t.equal((await tryWrong()).headers.get('retry-after'), '120', 'the count remains');
  server.clock.advance(24 * 60 * minuteMs);
  for (let count = 0; count < 10; count++) t.match(await tryWrong(), wrong);
});

t.test('concurrent right passwords all sign in', async (t) => {
  const server = await startAuthServer(t, clients);
  await signUp(server);
  t.same(statusesOf(await many(20, () => signIn(server, owner, {}))), { 200: 20 });
});

t.test('the limit of an account applies to all networks from which it was not signed in', async (t) => {
  const server = await startAuthServer(t, { ...clients, RATE_LIMIT_WRONG_PASSWORDS_PER_ACCOUNT: '25' });
  await signUp(server);
  t.match(await signIn(server, owner, {}), { status: 200 });
  server.clock.advance(30 * 24 * 60 * minuteMs);
  for (const account of [email, unknown]) {
    const guess = (network: number) =>
      signIn(server, `198.51.${network}.1`, { email: account, password: 'wrong' });
    const answers = [];
    for (let count = 0; count < 40; count++) answers.push(await guess(count % 20));
    t.same(statusesOf(answers), { 400: 25, 429: 15 }, account);
    t.match(
      await signIn(server, '203.0.113.1', { email: account }),
      limited,
      'a network unknown to the account',
    );
  }
  t.match(await signIn(server, owner, { password: 'wrong' }), wrong);
  t.match(await signIn(server, owner, {}), { status: 200 });
  server.clock.advance(5 * minuteMs);
  t.match(await signIn(server, '203.0.113.1', {}), { status: 200 }, 'guesses drain one by one');
});

t.test('a sign-in that awaits confirmation does not make a network known', async (t) => {
  const server = await startAuthServer(t, {
    ...clients,
    MAILER_AUTOCONFIRM: 'false',
    SMTP_HOST: '',
    MODE: 'development',
    RATE_LIMIT_WRONG_PASSWORDS_PER_ACCOUNT: '3',
  });
  const body = { email, password };
  await server.call('POST', '/signup', { body, headers: { 'x-client': attacker } });
  t.match(await signIn(server, attacker, {}), { body: { error_code: 'email_not_confirmed' } });
  for (let count = 0; count < 3; count++)
    t.match(await signIn(server, attacker, { password: 'wrong' }), wrong);
  t.match(await signIn(server, attacker, {}), limited);
});

t.test('replicas count wrong passwords together', async (t) => {
  const one = await startAuthServer(t, clients);
  const other = await startAuthServer(t, { ...clients, DB_DATABASE_URL: one.databaseUrl });
  await signUp(one);
  for (let count = 0; count < 5; count++)
    for (const server of [one, other]) t.match(await signIn(server, attacker, { password: 'wrong' }), wrong);
  for (const server of [one, other]) t.match(await signIn(server, attacker, {}), limited);
});

t.test('clients behind an untrusted proxy are identified by X-Forwarded-For', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  const via = (forwarded: string, used = password) =>
    server.call('POST', '/token?grant_type=password', {
      body: { email, password: used },
      headers: { 'x-forwarded-for': forwarded },
    });
  for (let count = 0; count < 10; count++) t.match(await via(`${attacker}, 10.0.0.9`, 'wrong'), wrong);
  t.match(await via(attacker), limited);
  t.match(await via(`made up, ${owner}, 10.0.0.9`), { status: 200 });
  // Without a public address only the limit of the account applies.
  for (let count = 0; count < 20; count++) t.match(await via('10.1.2.3', 'wrong'), wrong);
  t.equal(
    server.logs().split('client addresses unknown, all clients share larger rate limits').length,
    2,
    'one warning',
  );
  t.match(server.logs(), /SVC_SECURITY_TRUSTED_PROXIES/);
  t.match(server.logs(), /"kind":"password","retry_after_seconds":60,"@message":"guess rejected"/);
});

t.test('X-Forwarded-For identifies clients without the header of RATE_LIMIT_HEADER', async (t) => {
  const server = await startAuthServer(t, clients);
  await signUp(server);
  const via = (forwarded: string, used = password) =>
    server.call('POST', '/token?grant_type=password', {
      body: { email, password: used },
      headers: { 'x-forwarded-for': forwarded },
    });
  for (let count = 0; count < 10; count++) t.match(await via(attacker, 'wrong'), wrong);
  t.match(await via(attacker), limited);
  t.match(await via(owner), { status: 200 });
});

t.test('the current password of a password change has the same limit', async (t) => {
  const server = await startAuthServer(t, {
    ...clients,
    SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
  });
  const { accessToken: token } = await signUp(server);
  const change = (current_password: string) =>
    server.call('PUT', '/user', {
      token,
      body: { password: 'another horse', current_password },
      headers: { 'x-client': attacker },
    });
  for (let count = 0; count < 10; count++)
    t.match(await change('wrong'), { status: 400, body: { error_code: 'current_password_invalid' } });
  t.match(await change(password), limited);
});

t.test('wrong codes from one network do not lock the owner out of another one', async (t) => {
  const { server, smtp } = await startMailingServer(t, clients);
  await server.call('POST', '/signup', { body: { email, password }, headers: { 'x-client': owner } });
  const verify = (client: string, account: string, token: string) =>
    server.call('POST', '/verify', {
      body: { type: 'signup', email: account, token },
      headers: { 'x-client': client },
    });
  const mail = await smtp.mailTo(email);
  for (const account of [email, unknown]) {
    const answers = await many(40, (index) => verify(attacker, account, String(index).padStart(5, '0')));
    t.same(statusesOf(answers), { 403: 10, 429: 30 }, account);
    t.match(await verify(attacker, account, codeIn(mail)), limited, 'the right one as well');
  }
  t.match(await verify(owner, email, codeIn(mail)), { status: 200 });
});

for (const uniform of ['false', 'true'])
  t.test(`the first guess of a new code is never refused, uniform answers: ${uniform}`, async (t) => {
    const { server, smtp } = await startMailingServer(t, { ...clients, SECURITY_UNIFORM_ANSWERS: uniform });
    const post = (path: string, body: object) =>
      server.call('POST', path, { body, headers: { 'x-client': attacker } });
    const verify = (account: string, token: string) =>
      post('/verify', { type: 'recovery', email: account, token });
    await server.call('POST', '/admin/users', { token: adminToken(), body: { email, email_confirm: true } });
    for (let round = 1; round <= 2; round++) {
      for (const account of [email, unknown]) {
        for (let count = 0; count < 12; count++) await verify(account, '12345');
        t.match(await verify(account, '12345'), limited, account);
        server.clock.advance(1);
        await post('/recover', { email: account });
        // Without uniform answers this route discloses whether a user exists.
        const isFresh = account === email || uniform === 'true';
        t.equal((await verify(account, '12345')).status, isFresh ? 403 : 429, account);
        t.match(await verify(account, '12345'), limited, account);
      }
      server.clock.advance(minuteMs);
    }
    await post('/recover', { email });
    t.match(
      await verify(email, codeIn(await smtp.mailTo(email, 3))),
      { status: 200 },
      'also from the network of the attacker',
    );
  });

t.test('a code is used up after too many wrong guesses, and the next one starts at zero', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    ...clients,
    RATE_LIMIT_WRONG_CODES_PER_MESSAGE: '3',
  });
  const post = (path: string, body: object, client = owner) =>
    server.call('POST', path, { body: { email, ...body }, headers: { 'x-client': client } });
  await post('/signup', { password });
  const first = codeIn(await smtp.mailTo(email));
  for (const account of [email, unknown])
    for (let network = 0; network < 4; network++)
      t.match(
        await post('/verify', { type: 'signup', email: account, token: '12345' }, `198.51.${network}.1`),
        { status: 403, body: { error_code: 'otp_expired' } },
        account,
      );
  t.match(await post('/verify', { type: 'signup', token: first }), { status: 403 });
  server.clock.advance(15 * minuteMs);
  await post('/resend', { type: 'signup' });
  const second = await smtp.mailTo(email, 2);
  t.match(await post('/verify', { type: 'signup', token: codeIn(second) }), { status: 200 });

  // Makes the network of the owner known.
  server.clock.advance(15 * minuteMs);
  await post('/recover', {});
  const third = await smtp.mailTo(email, 3);
  for (let network = 0; network < 4; network++)
    await post('/verify', { type: 'recovery', token: '12345' }, `198.51.${network}.1`);
  t.match(await post('/verify', { type: 'recovery', token: codeIn(third) }, '203.0.113.1'), {
    status: 403,
  });
  t.match(await post('/verify', { type: 'recovery', token: codeIn(third) }), { status: 200 });
});

t.test('wrong codes do not affect the link in the same mail', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    ...clients,
    RATE_LIMIT_WRONG_CODES_PER_MESSAGE: '1',
  });
  const headers = { 'x-client': attacker };
  await server.call('POST', '/signup', { body: { email, password }, headers });
  const mail = await smtp.mailTo(email);
  await many(20, () =>
    server.call('POST', '/verify', { body: { type: 'signup', email, token: '12345' }, headers }),
  );
  const { pathname, search } = linkIn(mail);
  const { headers: answer } = await server.call('GET', pathname + search, { headers });
  t.match(answer.get('location'), /access_token=/);
});
