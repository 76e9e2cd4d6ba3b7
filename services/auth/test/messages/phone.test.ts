// Uses the published client library over HTTP, and a gateway on loopback.
import { AuthClient } from '@supabase/auth-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres from 'postgres';
import t from 'tap';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { textMessages } from '../helpers/text-messages.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };
const phone = '4915112345678';
const minuteMs = 60_000;

function clientOf(server: AuthServer) {
  const { url } = server;
  return new AuthClient({ url, autoRefreshToken: false, persistSession: true, storageKey: url });
}

t.test('new phone is confirmed by a code and can then be used to sign in', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, {
    ...texts.variables,
    SMS_OTP_LENGTH: '8',
    SMS_TEMPLATE: 'Tollgate: {{.Code}}',
  });
  const client = clientOf(server);
  await client.signUp(ada);

  const { data, error } = await client.updateUser({ phone: `+${phone}` });
  t.equal(error, null);
  t.match(data.user, { phone: '', new_phone: phone });
  t.match(texts.texts[0]?.form, { To: `+${phone}`, Body: /^Tollgate: \d{8}$/ });

  const wrong = await client.verifyOtp({ type: 'phone_change', phone, token: '00000000' });
  t.match(wrong.error, { status: 403, code: 'otp_expired' });
  const right = await client.verifyOtp({ type: 'phone_change', phone, token: texts.lastCode() });
  t.equal(right.error, null);
  t.match(right.data.user, { phone, app_metadata: { provider: 'email', providers: ['email', 'phone'] } });

  await client.signOut();
  t.equal((await client.signInWithPassword({ phone, password: ada.password })).error, null);
});

t.test('code expires, and is valid for the last requested phone only', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, { ...texts.variables, SMS_OTP_EXP: '120' });
  const client = clientOf(server);
  await client.signUp(ada);
  await client.updateUser({ phone });
  const first = texts.lastCode();
  server.clock.advance(minuteMs);
  await client.updateUser({ phone: '15005550001' });
  const stale = await client.verifyOtp({ type: 'phone_change', phone, token: first });
  t.match(stale.error, { code: 'otp_expired' });
  server.clock.advance(2 * minuteMs);
  const late = { type: 'phone_change', phone: '15005550001', token: texts.lastCode() } as const;
  t.match((await client.verifyOtp(late)).error, { code: 'otp_expired' });
});

t.test('codes are spaced per user, and one of concurrent requests is sent', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, { ...texts.variables, SMS_MAX_FREQUENCY: '60' });
  const client = clientOf(server);
  await client.signUp(ada);
  const together = await Promise.all(Array.from({ length: 5 }, () => client.updateUser({ phone })));
  t.equal(together.filter(({ error }) => error === null).length, 1);
  t.equal(texts.texts.length, 1);
  server.clock.advance(15_000);
  t.match((await client.updateUser({ phone })).error, {
    status: 429,
    code: 'over_sms_send_rate_limit',
    message: 'For security purposes, you can only request this after 45 seconds.',
  });
  server.clock.advance(45_000);
  t.equal((await client.updateUser({ phone })).error, null);
});

t.test('hourly quota limits the messages of all users', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, { ...texts.variables, RATE_LIMIT_SMS_SENT: '1/5m' });
  const client = clientOf(server);
  await client.signUp(ada);
  t.equal((await client.updateUser({ phone })).error, null);
  const bob = clientOf(server);
  await bob.signUp({ ...ada, email: 'bob@example.com' });
  t.match((await bob.updateUser({ phone: '15005550001' })).error, {
    status: 429,
    code: 'over_sms_send_rate_limit',
  });
  t.equal(texts.texts.length, 1);
  t.notOk('new_phone' in ((await bob.getUser()).data.user ?? {}), 'nothing has changed');
  server.clock.advance(5 * minuteMs);
  t.equal((await bob.updateUser({ phone: '15005550001' })).error, null);
});

t.test('message rejected by the gateway is logged and can be requested again immediately', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, texts.variables);
  const client = clientOf(server);
  await client.signUp(ada);
  texts.answer({ status: 400, body: { code: 21211, message: 'invalid number' } });
  t.match((await client.updateUser({ phone })).error, { status: 422, code: 'sms_send_failed' });
  t.match(server.logs(), /invalid number \(21211\)/);
  texts.answer({ status: 201, body: { sid: 'SM9', status: 'queued' } });
  t.equal((await client.updateUser({ phone })).error, null);
});

t.test('phones cannot be confirmed without a gateway', async (t) => {
  const server = await startAuthServer(t, { SMS_AUTOCONFIRM: 'false' });
  const client = clientOf(server);
  await client.signUp(ada);
  t.match((await client.updateUser({ phone })).error, { status: 500, message: 'Unable to get SMS provider' });
});

t.test('with automatic confirmation a new phone applies immediately', async (t) => {
  const server = await startAuthServer(t);
  const client = clientOf(server);
  await client.signUp(ada);
  server.clock.advance(1);
  const { data } = await client.updateUser({ phone });
  t.match(data.user, { phone, identities: [{ provider: 'email' }, { provider: 'phone' }] });
  t.ok(data.user?.phone_confirmed_at);
});

t.test('phone with a test code gets no message until the code expires', async (t) => {
  const texts = await textMessages(t);
  const until = new Date(Date.now() + 10 * minuteMs).toISOString();
  const server = await startAuthServer(t, {
    ...texts.variables,
    SMS_TEST_OTP: `${phone}:123456,+15005550001:654321`,
    SMS_TEST_OTP_VALID_UNTIL: until,
  });
  const client = clientOf(server);
  await client.signUp(ada);
  await client.updateUser({ phone });
  t.equal(texts.texts.length, 0);
  const { error } = await client.verifyOtp({ type: 'phone_change', phone, token: '123456' });
  t.equal(error, null);

  server.clock.advance(20 * minuteMs);
  const bob = clientOf(server);
  await bob.signUp({ ...ada, email: 'bob@example.com' });
  await bob.updateUser({ phone: '15005550001' });
  t.equal(texts.texts.length, 1, 'a test code that has expired');
});

t.test('nonce is sent to the phone of a user without email, and allows a new password', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, {
    ...texts.variables,
    SMS_AUTOCONFIRM: 'true',
    SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
  });
  const client = clientOf(server);
  await client.signUp({ phone, password: 'correct horse' });
  server.clock.advance(25 * 60 * minuteMs);
  await client.refreshSession();
  t.match((await client.updateUser({ password: 'better horse' })).error, { code: 'reauthentication_needed' });
  t.equal((await client.reauthenticate()).error, null);
  t.match((await client.reauthenticate()).error, { code: 'over_sms_send_rate_limit' });
  const nonce = texts.lastCode();
  t.equal((await client.updateUser({ password: 'better horse', nonce })).error, null);
  t.equal((await client.reauthenticate()).error, null, 'a used nonce does not delay the next one');
});

t.test('code is sent by WhatsApp if requested and supported by the gateway', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, texts.variables);
  const { accessToken: token } = await signUp(server);
  const changed = await server.call('PUT', '/user', { token, body: { phone, channel: 'whatsapp' } });
  t.equal(changed.status, 200);
  t.match(texts.texts[0]?.form, { Channel: 'whatsapp', To: `whatsapp:+${phone}` });
});

t.test('codes are stored as hashes and are not logged', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, texts.variables);
  const client = clientOf(server);
  await client.signUp(ada);
  await client.updateUser({ phone });
  const code = texts.lastCode();
  const sql = postgres(server.databaseUrl, { connection: { search_path: 'auth' } });
  t.teardown(() => sql.end());
  const [row] = await sql`select token_hash, relates_to from one_time_tokens`;
  t.match(row, { token_hash: /^sha256:[0-9a-f]{64}$/, relates_to: phone });
  t.notMatch(server.logs(), code);
});

t.test('with uniform answers the response does not depend on the gateway', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, { ...texts.variables, SECURITY_UNIFORM_ANSWERS: 'true' });
  const client = clientOf(server);
  await client.signUp(ada);
  texts.answer({ status: 500, body: {} });
  t.match((await client.updateUser({ phone })).data.user, { new_phone: phone });
  await awaitUntil(() => server.logs().includes('Twilio answered 500'), { what: 'the refusal' });
});
