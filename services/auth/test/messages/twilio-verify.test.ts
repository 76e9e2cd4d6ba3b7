import postgres from 'postgres';
import t from 'tap';
import { type SignedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { twilioVerify } from '../helpers/twilio-verify.ts';

const phone = '4915112345678';
const wrong = { status: 403, body: { error_code: 'otp_expired' } };

t.test('a sign-up is confirmed with the code that Twilio has made', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, verify.variables);
  const signedUp = await server.call('POST', '/signup', { body: { phone, password: 'correct horse' } });
  t.equal(signedUp.status, 200);
  t.same(verify.requests, [
    {
      resource: 'Verifications',
      path: '/v2/Context/VA1/Verifications',
      authorization: `Basic ${Buffer.from('AC2:verify-secret').toString('base64')}`,
      form: { To: `+${phone}`, Channel: 'sms' },
    },
  ]);
  const show = (token: string) => server.call('POST', '/verify', { body: { type: 'sms', phone, token } });
  const token = verify.codeOf(phone);
  t.match(await show('000000'), wrong);
  t.match(await show(token), { status: 200, body: { user: { phone } } });
  t.match(verify.requests.at(-1), {
    path: '/v2/Context/VA1/VerificationCheck',
    form: { To: `+${phone}`, Code: token },
  });
  t.match(await show(token), wrong, 'good once');
  t.notMatch(server.logs(), token);
});

t.test('WhatsApp is a channel of the same number', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, verify.variables);
  const answer = await server.call('POST', '/otp', { body: { phone, channel: 'whatsapp' } });
  t.match(answer, { status: 200, body: { message_id: 'VE1' } });
  t.match(verify.requests, [{ form: { To: `+${phone}`, Channel: 'whatsapp' } }]);
});

t.test('a code is good for SMS_OTP_EXP, whatever Twilio says', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, { ...verify.variables, SMS_OTP_EXP: '60' });
  await server.call('POST', '/otp', { body: { phone } });
  server.clock.advance(60_000);
  const body = { type: 'sms', phone, token: verify.codeOf(phone) };
  t.match(await server.call('POST', '/verify', { body }), wrong);
});

t.test('of many that show a code at once one is let in', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, verify.variables);
  await server.call('POST', '/otp', { body: { phone } });
  // As if all of them had been approved before one of them went on.
  verify.answer({ status: 200, body: { status: 'approved', valid: true } });
  const body = { type: 'sms', phone, token: '123456' };
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => server.call('POST', '/verify', { body })),
  );
  t.same(answers.map(({ status }) => status).sort(), [200, ...Array(5).fill(403)]);
});

t.test('a phone is changed, and a password with a nonce, with codes that Twilio has made', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, {
    ...verify.variables,
    SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
    SMS_MAX_FREQUENCY: '0',
    JWT_EXP: '200000',
  });
  await server.call('POST', '/signup', { body: { phone, password: 'correct horse' } });
  const token = verify.codeOf(phone);
  const session = await server.call('POST', '/verify', { body: { type: 'sms', phone, token } });
  const own = { token: String(session.body.access_token) };
  const newPhone = '4915187654321';
  t.equal((await server.call('PUT', '/user', { ...own, body: { phone: newPhone } })).status, 200);
  const change = { type: 'phone_change', phone: newPhone, token: verify.codeOf(newPhone) };
  t.match(await server.call('POST', '/verify', { body: change }), {
    status: 200,
    body: { user: { phone: newPhone } },
  });

  server.clock.advance(25 * 3_600_000);
  t.equal((await server.call('GET', '/reauthenticate', own)).status, 200);
  const update = (nonce: string) =>
    server.call('PUT', '/user', { ...own, body: { password: 'better horse', nonce } });
  t.match(await update('000000'), { status: 422, body: { error_code: 'reauthentication_not_valid' } });
  t.equal((await update(verify.codeOf(newPhone))).status, 200);
});

t.test('a code says nothing where two wait for one at the same phone', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, verify.variables);
  const [owner, thief] = [await signUp(server), await signUp(server, { email: 'eve@example.com' })];
  const ask = ({ accessToken: token }: SignedIn) => server.call('PUT', '/user', { token, body: { phone } });
  const show = () =>
    server.call('POST', '/verify', { body: { type: 'phone_change', phone, token: verify.codeOf(phone) } });
  t.equal((await ask(owner)).status, 200);
  t.equal((await ask(thief)).status, 200);
  t.match(await show(), wrong, 'the session would be that of the thief');
  server.clock.advance(60_000);
  t.equal((await ask(owner)).status, 200);
  t.match(await show(), { status: 200, body: { user: { id: owner.userId, phone } } });
});

t.test('a phone that nobody has costs the same question', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, verify.variables);
  const body = { type: 'sms', phone, token: '123456' };
  t.match(await server.call('POST', '/verify', { body }), wrong);
  t.equal(verify.requests.length, 1);
  t.match(await server.call('POST', '/verify', { body: { ...body, token: 'no code' } }), wrong);
  t.equal(verify.requests.length, 1, 'but nothing that is no code');
});

t.test('phones with codes that are known beforehand do without Twilio', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, { ...verify.variables, SMS_TEST_OTP: `${phone}:123456` });
  t.match(await server.call('POST', '/otp', { body: { phone } }), {
    status: 200,
    body: { message_id: 'test-otp' },
  });
  const body = { type: 'sms', phone, token: '123456' };
  t.equal((await server.call('POST', '/verify', { body })).status, 200);
  t.same(verify.requests, []);
});

t.test('what Twilio refuses is told from what it cannot tell', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, { ...verify.variables, SMS_MAX_FREQUENCY: '0' });
  verify.answer({ status: 400, body: { code: 60200, message: 'Invalid parameter' } });
  t.match(await server.call('POST', '/otp', { body: { phone } }), {
    status: 422,
    body: { error_code: 'sms_send_failed' },
  });
  t.match(server.logs(), /400: Invalid parameter \(60200\)/);
  verify.answer({ status: 201, body: { sid: 'VE1', status: 'canceled' } });
  t.match(await server.call('POST', '/otp', { body: { phone } }), {
    status: 422,
    body: { error_code: 'sms_send_failed' },
  });
  verify.answer(undefined);
  t.equal((await server.call('POST', '/otp', { body: { phone } })).status, 200);

  const token = verify.codeOf(phone);
  const show = () => server.call('POST', '/verify', { body: { type: 'sms', phone, token } });
  for (const [status, body] of [
    [429, { code: 60202, message: 'Max check attempts reached' }],
    [404, { code: 20404 }],
    [200, { status: 'approved', valid: false }],
    [200, { status: 'pending', valid: true }],
  ] as const) {
    verify.answer({ status, body });
    t.match(await show(), wrong, JSON.stringify(body));
  }
  verify.answer({ status: 503, body: { message: 'overloaded' } });
  t.match(await show(), {
    status: 500,
    body: { error_code: 'unexpected_failure', msg: 'Unable to check the code with the SMS provider' },
  });
  verify.answer(undefined);
  t.equal((await show()).status, 200, 'nothing was spent by that');
});

t.test('what is kept of a verification is no code', async (t) => {
  const verify = await twilioVerify(t);
  const server = await startAuthServer(t, verify.variables);
  await server.call('POST', '/otp', { body: { phone } });
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const rows = await sql`select t::text from auth.one_time_tokens t`;
  t.notMatch(JSON.stringify(rows), verify.codeOf(phone));
});
