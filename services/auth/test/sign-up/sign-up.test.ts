import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type Answer, type AuthServer, signedIn, startAuthServer } from '../helpers/auth-server.ts';
import { codeIn, startMailingServer } from '../helpers/mail-server.ts';
import { textMessages } from '../helpers/text-messages.ts';

const email = 'ada@example.com';
const ada = { email, password: 'correct horse' };
const phone = '15005550001';
const minuteMs = 60_000;

function signUp(server: AuthServer, body: object): Promise<Answer> {
  return server.call('POST', '/signup', { body });
}

/** Queries the database of a server. */
async function ask(server: AuthServer, text: string): Promise<readonly Record<string, unknown>[]> {
  const sql = postgres(server.databaseUrl, { onnotice: () => undefined, max: 1 });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

t.test('invalid sign-ups are rejected in this order', async (t) => {
  const server = await startAuthServer(t);
  const challenge = 'c'.repeat(43);
  const cases: readonly (readonly [object, number, string])[] = [
    [{ email: 'unknown', phone: 'x' }, 400, 'Signup requires a valid password'],
    [{ email: 'unknown', phone: 'x', password: 'short' }, 422, 'Password should be at least 6 characters.'],
    [
      { email: 'unknown', phone: 'x', password: 'ä'.repeat(37) },
      400,
      'Password cannot be longer than 72 characters',
    ],
    [{ ...ada, phone }, 400, 'Only an email address or phone number should be provided on signup.'],
    [
      {
        phone,
        password: ada.password,
        channel: 'pigeon',
        code_challenge: challenge,
        code_challenge_method: 'plain',
      },
      400,
      "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or Twilio Verify is used as the provider.",
    ],
    [
      { phone, password: ada.password, code_challenge: challenge, code_challenge_method: 'plain' },
      400,
      'PKCE not supported for phone signups',
    ],
    [{ ...ada, email: 'unknown' }, 400, 'Unable to validate email address: invalid format'],
    [{ phone: '+0123', password: ada.password }, 400, 'Invalid phone number format (E.164 required)'],
    [
      { ...ada, code_challenge: challenge },
      400,
      'PKCE takes both code_challenge and code_challenge_method, or neither of them',
    ],
  ];
  for (const [body, status, msg] of cases)
    t.match(await signUp(server, body), { status, body: { msg } }, JSON.stringify(body));
});

t.test('settings restrict sign-up', async (t) => {
  const closed = await startAuthServer(t, { DISABLE_SIGNUP: 'true' });
  t.match(await signUp(closed, { ...ada, password: '' }), {
    status: 422,
    body: { error_code: 'signup_disabled', msg: 'Signups not allowed for this instance' },
  });
  t.match(await closed.call('POST', '/otp', { body: { email } }), {
    status: 422,
    body: { error_code: 'signup_disabled' },
  });
  const neither = await startAuthServer(t, {
    EXTERNAL_EMAIL_ENABLED: 'false',
    EXTERNAL_PHONE_ENABLED: 'false',
  });
  t.match(await signUp(neither, ada), { status: 400, body: { error_code: 'email_provider_disabled' } });
  t.match(await signUp(neither, { phone, password: ada.password }), {
    status: 400,
    body: { error_code: 'phone_provider_disabled' },
  });
  const post = (path: string, body: object) => neither.call('POST', path, { body });
  t.match(await post('/otp', { email }), {
    status: 422,
    body: { error_code: 'email_provider_disabled', msg: 'Email logins are disabled' },
  });
  t.match(await post('/otp', { phone }), {
    status: 400,
    body: { error_code: 'phone_provider_disabled', msg: 'Unsupported phone provider' },
  });
});

t.test('other endpoints reject invalid requests', async (t) => {
  const server = await startAuthServer(t);
  const cases: readonly (readonly [string, object, number, string])[] = [
    ['/otp', {}, 400, 'One of email or phone must be set'],
    ['/otp', { email, phone }, 400, 'Only an email address or phone number should be provided'],
    ['/otp', { email, channel: 'sms' }, 400, 'Channel should only be specified with Phone OTP'],
    ['/otp', { email: 'unknown' }, 400, 'Unable to validate email address: invalid format'],
    ['/magiclink', {}, 422, 'Password recovery requires an email'],
    ['/recover', {}, 400, 'Password recovery requires an email'],
    ['/resend', {}, 400, 'Missing one of these types: signup, email_change, sms, phone_change'],
    [
      '/resend',
      { type: 'toString', email },
      400,
      'Missing one of these types: signup, email_change, sms, phone_change',
    ],
    ['/resend', { type: 'signup' }, 400, 'Type provided requires an email address'],
    ['/resend', { type: 'sms' }, 400, 'Type provided requires a phone number'],
    [
      '/resend',
      { type: 'signup', email, phone },
      400,
      'Only an email address or phone number should be provided.',
    ],
  ];
  for (const [path, body, status, msg] of cases)
    t.match(
      await server.call('POST', path, { body }),
      { status, body: { msg } },
      `${path} ${JSON.stringify(body)}`,
    );
});

t.test('sign-up with the address of a confirmed user returns a decoy user', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  await signUp(server, ada);
  const token = codeIn(await smtp.mailTo(email));
  const { body } = await server.call('POST', '/verify', { body: { type: 'signup', email, token } });
  const real = body.user as { readonly id: string }; // parsed boundary: a session

  const fake = await signUp(server, { ...ada, password: 'battery staple', data: { name: 'Eve' } });
  t.equal(fake.status, 200);
  t.match(fake.body, {
    id: /^[0-9a-f-]{36}$/,
    aud: '',
    role: '',
    email,
    phone: '',
    confirmation_sent_at: /^20/,
    app_metadata: { provider: 'email', providers: ['email'] },
    user_metadata: { name: 'Eve' },
    identities: [],
    is_anonymous: false,
  });
  t.not(fake.body.id, real.id);
  t.equal(fake.body.created_at, fake.body.confirmation_sent_at);
  t.same(
    Object.keys(fake.body).filter((key) => /confirmed|last_sign_in|change/.test(key)),
    [],
  );
  t.equal(smtp.mails().length, 1);
  t.equal((await server.call('POST', '/token?grant_type=password', { body: ada })).status, 200);
});

t.test('latest sign-up of an unconfirmed user applies once its mail was sent', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const first = await signUp(server, { ...ada, data: { name: 'Ada', kept: true } });
  const latest = { email, password: 'battery staple', data: { name: 'Countess' } };
  t.match(await signUp(server, latest), {
    status: 429,
    body: { error_code: 'over_email_send_rate_limit' },
  });
  server.clock.advance(15 * minuteMs);
  const second = await signUp(server, latest);
  t.match(second, {
    status: 200,
    body: {
      id: first.body.id,
      user_metadata: { name: 'Countess', kept: true },
      identities: [{ provider: 'email' }],
    },
  });
  const token = codeIn(await smtp.mailTo(email, 2));
  await server.call('POST', '/verify', { body: { type: 'signup', email, token } });
  const signIn = (password: string) =>
    server.call('POST', '/token?grant_type=password', { body: { email, password } });
  t.equal((await signIn(latest.password)).status, 200);
  t.equal((await signIn(ada.password)).status, 400);
});

t.test('user is removed if the confirmation cannot be sent, and may retry immediately', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  smtp.refuse('550 no');
  for (const path of ['/signup', '/otp']) {
    t.match(await server.call('POST', path, { body: ada }), {
      status: 500,
      body: { msg: 'Error sending confirmation email' },
    });
    t.same(await ask(server, 'select email from auth.users'), []);
  }
  smtp.refuse(undefined);
  t.equal((await signUp(server, ada)).status, 200);
});

t.test('quota limits the mails of all users', async (t) => {
  const { server } = await startMailingServer(t, { RATE_LIMIT_EMAIL_SENT: '1' });
  t.equal((await signUp(server, ada)).status, 200);
  t.match(await signUp(server, { ...ada, email: 'bob@example.com' }), {
    status: 429,
    body: { error_code: 'over_email_send_rate_limit', msg: 'email rate limit exceeded' },
  });
  t.same(await ask(server, 'select email from auth.users'), [{ email }]);
});

t.test('parallel sign-ups with one address create one user and send one mail', async (t) => {
  for (const path of ['/signup', '/otp']) {
    const { server, smtp } = await startMailingServer(t);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => server.call('POST', path, { body: ada })),
    );
    const statuses = answers.map(({ status }) => status);
    t.same(new Set(statuses), new Set([200, 429]));
    t.equal(statuses.filter((status) => status === 200).length, 1);
    t.same(await ask(server, 'select email from auth.users'), [{ email }]);
    const token = codeIn(await smtp.mailTo(email));
    t.equal((await server.call('POST', '/verify', { body: { type: 'email', email, token } })).status, 200);
  }
});

t.test('parallel sign-ups with automatic confirmation create one user', async (t) => {
  const server = await startAuthServer(t);
  const answers = await Promise.all(Array.from({ length: 8 }, () => signUp(server, ada)));
  const statuses = answers.map(({ status }) => status).toSorted();
  t.same(statuses, [200, ...Array.from({ length: 7 }, () => 400)]);
});

t.test('MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS allows sign-in before confirmation', async (t) => {
  const { server } = await startMailingServer(t, { MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: 'true' });
  await signUp(server, ada);
  t.match(await server.call('POST', '/token?grant_type=password', { body: ada }), {
    status: 200,
    body: { user: { email } },
  });
});

t.test('sign-up by phone is confirmed by a code', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, texts.variables);
  const user = { phone: `+${phone}`, password: ada.password };
  t.match(await signUp(server, user), { status: 200, body: { phone, email: '', role: 'authenticated' } });
  const signIn = () => server.call('POST', '/token?grant_type=password', { body: user });
  t.match(await signIn(), { status: 400, body: { error_code: 'phone_not_confirmed' } });
  const body = { type: 'sms', phone: user.phone, token: texts.lastCode() };
  t.match(await server.call('POST', '/verify', { body }), {
    status: 200,
    body: {
      type: 'sms',
      user: { phone, phone_confirmed_at: /^20/, user_metadata: { phone_verified: true } },
    },
  });
  t.equal((await signIn()).status, 200);

  server.clock.advance(minuteMs);
  const otp = await server.call('POST', '/otp', { body: { phone } });
  t.match(otp, { status: 200, body: { message_id: /./ } });
  const again = { type: 'sms', phone, token: texts.lastCode() };
  server.clock.advance(minuteMs);
  t.match(await server.call('POST', '/verify', { body: again }), {
    status: 403,
    body: { error_code: 'otp_expired' },
  });
});

t.test('resend to an unknown phone returns 200 and sends nothing', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, texts.variables);
  await signUp(server, { phone, password: ada.password });
  server.clock.advance(minuteMs);
  const resend = (to: string) => server.call('POST', '/resend', { body: { type: 'sms', phone: to } });
  t.match(await resend(phone), { status: 200, body: { message_id: /./ } });
  t.same((await resend('15005559999')).body, {});
  t.equal(texts.texts.length, 2);
});

t.test('pending change is resent by either contact of its user', async (t) => {
  const texts = await textMessages(t);
  const { server, smtp } = await startMailingServer(t, { ...texts.variables, SMS_AUTOCONFIRM: 'false' });
  const user = { ...ada, phone, email_confirm: true, phone_confirm: true };
  await server.call('POST', '/admin/users', { token: adminToken(), body: user });
  const resend = (body: object) => server.call('POST', '/resend', { body });
  t.same((await resend({ type: 'email_change', phone })).body, {}, 'nothing is pending');
  const { accessToken: token } = signedIn(
    await server.call('POST', '/token?grant_type=password', { body: ada }),
  );
  const body = { email: 'new@example.com', phone: '15005550009' };
  t.equal((await server.call('PUT', '/user', { token, body })).status, 200);
  server.clock.advance(minuteMs);
  t.match(await resend({ type: 'email_change', phone }), { status: 200 });
  await smtp.mailTo('new@example.com', 2);
  t.match(await resend({ type: 'phone_change', email: ada.email }), {
    status: 200,
    body: { message_id: /./ },
  });
  t.equal(texts.texts.length, 2);
  t.match(await resend({ type: 'phone_change', email: 'unknown@example.com' }), { status: 200, body: {} });
});

t.test('sign-up cannot set role, id or app metadata', async (t) => {
  const server = await startAuthServer(t);
  const answer = await signUp(server, {
    ...ada,
    id: '00000000-0000-4000-8000-000000000000',
    role: 'service_role',
    app_metadata: { admin: true },
    email_confirmed_at: '2020-01-01',
    is_super_admin: true,
    data: { role: 'service_role' },
  });
  t.match(answer.body, {
    user: { role: 'authenticated', app_metadata: { provider: 'email', providers: ['email'] } },
  });
  t.notMatch(answer.text, /admin"|00000000-0000-4000-8000/);
});
