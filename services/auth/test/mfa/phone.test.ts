// Uses the published client library over HTTP.
import { AuthClient } from '@supabase/auth-js';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import { type TextMessages, textMessages } from '../helpers/text-messages.ts';
import { twilioVerify } from '../helpers/twilio-verify.ts';

const minuteMs = 60_000;
const phone = '+1 500 555 0001';
const digits = '15005550001';
const enabled = { MFA_PHONE_ENROLL_ENABLED: 'true', MFA_PHONE_VERIFY_ENABLED: 'true' };

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, { ...texts.variables, ...enabled, ...variables });
  return { texts, server };
}

async function signedUp(server: AuthServer, name = 'ada') {
  const storageKey = `${server.url} ${name} ${Math.random()}`;
  const client = new AuthClient({ url: server.url, autoRefreshToken: false, storageKey });
  await client.signUp({ email: `${name}@example.com`, password: 'correct horse' });
  return client;
}

async function withPhone(server: AuthServer, number = phone) {
  const client = await signedUp(server);
  const { data, error } = await client.mfa.enroll({ factorType: 'phone', phone: number });
  if (error) throw error;
  return { client, factorId: data.id };
}

/** A challenge and its code. */
async function challenged(
  client: Awaited<ReturnType<typeof signedUp>>,
  factorId: string,
  texts: Pick<TextMessages, 'lastCode'>,
) {
  const { data, error } = await client.mfa.challenge({ factorId });
  if (error) throw error;
  return { factorId, challengeId: data.id, code: texts.lastCode() };
}

/** A code of the same length that is wrong. */
function other(code: string): string {
  return code.startsWith('1') ? `2${code.slice(1)}` : `1${code.slice(1)}`;
}

t.test('phone is enrolled, and the code sent to it raises the session to aal2', async (t) => {
  const { texts, server } = await start(t, {
    MFA_PHONE_TEMPLATE: 'Second factor: {{ .Code }}',
    MFA_PHONE_OTP_LENGTH: '8',
  });
  const client = await signedUp(server);
  const enrolled = await client.mfa.enroll({ factorType: 'phone', phone, friendlyName: 'mobile' });
  t.match(enrolled.data, { type: 'phone', friendly_name: 'mobile', phone });
  t.match((await client.mfa.listFactors()).data, {
    all: [{ status: 'unverified', phone: digits }],
    phone: [],
  });

  const factorId = enrolled.data?.id ?? '';
  const challenge = await client.mfa.challenge({ factorId, channel: 'sms' });
  t.match(challenge.data, {
    type: 'phone',
    expires_at: Math.floor((server.clock.nowMs() + 5 * minuteMs) / 1000),
  });
  t.match(texts.texts, [{ form: { To: `+${digits}`, Body: /^Second factor: \d{8}$/ } }]);
  const code = texts.lastCode();
  const sql = postgres(server.databaseUrl, { max: 1 });
  const [stored] = await sql`select otp_code from auth.mfa_challenges`;
  await sql.end();
  t.match(stored?.otp_code, /^[0-9a-f]{56}$/, 'a hash is stored');

  const answer = { factorId, challengeId: challenge.data?.id ?? '' };
  for (const wrong of [other(code), String(stored?.otp_code), ''])
    t.match((await client.mfa.verify({ ...answer, code: wrong })).error, {
      status: 422,
      code: 'mfa_verification_failed',
      message: 'Invalid MFA Phone code entered',
    });
  const verified = await client.mfa.verify({ ...answer, code });
  t.match(verified.data, { user: { factors: [{ id: factorId, status: 'verified', phone: digits }] } });
  t.match((await client.mfa.getAuthenticatorAssuranceLevel()).data, {
    currentLevel: 'aal2',
    currentAuthenticationMethods: [{ method: 'mfa/phone' }, { method: 'password' }],
  });
  t.match((await client.mfa.listFactors()).data?.phone, [{ id: factorId }]);
  t.match((await client.mfa.verify({ ...answer, code })).error, { code: 'mfa_ip_address_mismatch' }, 'spent');
  t.notMatch(server.logs(), code);

  await client.mfa.unenroll({ factorId });
  await client.refreshSession();
  t.match((await client.mfa.getAuthenticatorAssuranceLevel()).data, {
    currentLevel: 'aal1',
    currentAuthenticationMethods: [{ method: 'password' }],
  });
});

t.test('one of several concurrent answers with the code succeeds', async (t) => {
  const { texts, server } = await start(t);
  const { client, factorId } = await withPhone(server);
  const answer = await challenged(client, factorId, texts);
  const session = (await client.getSession()).data.session;
  const verify = () =>
    server.call('POST', `/factors/${factorId}/verify`, {
      token: session?.access_token ?? '',
      body: { challenge_id: answer.challengeId, code: answer.code },
    });
  const statuses = (await Promise.all(Array.from({ length: 6 }, verify))).map(({ status }) => status);
  t.same(statuses.sort(), [200, 422, 422, 422, 422, 422]);
});

t.test('enrolling again replaces an unverified factor of the phone, but not a verified one', async (t) => {
  const { texts, server } = await start(t, { MFA_MAX_ENROLLED_FACTORS: '1' });
  const client = await signedUp(server);
  const enroll = (number: string) =>
    client.mfa.enroll({ factorType: 'phone', phone: number, friendlyName: 'mobile' });
  t.match((await enroll('')).error, { status: 400, message: 'Phone number required to enroll Phone factor' });
  t.match((await enroll('+01')).error, {
    status: 400,
    message: 'Invalid phone number format (E.164 required)',
  });
  await enroll(phone);
  const together = await Promise.all([enroll(digits), enroll(phone)]);
  t.ok(together.some(({ error }) => error === null));
  const { data } = await client.mfa.listFactors();
  t.equal(data?.all.length, 1);
  const another = await client.mfa.enroll({ factorType: 'phone', phone: '+15005550002' });
  t.match(another.error, { code: 'too_many_enrolled_mfa_factors' });

  const answer = await challenged(client, data?.all[0]?.id ?? '', texts);
  t.equal((await client.mfa.verify(answer)).error, null);
  t.match((await enroll(phone)).error, { status: 422, code: 'mfa_verified_factor_exists' });
});

t.test('messages are limited per phone and in total, also with SMS_AUTOCONFIRM', async (t) => {
  const { texts, server } = await start(t, {
    RATE_LIMIT_SMS_SENT: '2/1h',
    SMS_AUTOCONFIRM: 'true',
    MFA_PHONE_MAX_FREQUENCY: '90s',
  });
  const { client, factorId } = await withPhone(server);
  texts.answer({ status: 400, body: { code: 21211, message: 'invalid number' } });
  t.match((await client.mfa.challenge({ factorId })).error, { status: 422, code: 'sms_send_failed' });
  texts.answer({ status: 201, body: { sid: 'SM9', status: 'queued' } });
  const together = await Promise.all([1, 2, 3].map(() => client.mfa.challenge({ factorId })));
  t.equal(together.filter(({ error }) => error === null).length, 1, 'immediately after the failure');
  server.clock.advance(30_000);
  t.match((await client.mfa.challenge({ factorId })).error, {
    status: 429,
    code: 'over_sms_send_rate_limit',
    message: 'For security purposes, you can only request this after 60 seconds.',
  });
  const unenrolled = await client.mfa.unenroll({ factorId });
  t.equal(unenrolled.error, null);
  const again = await client.mfa.enroll({ factorType: 'phone', phone });
  t.match(
    (await client.mfa.challenge({ factorId: again.data?.id ?? '' })).error,
    { status: 429 },
    'a new factor does not reset the spacing',
  );
  server.clock.advance(minuteMs);
  t.match((await client.mfa.challenge({ factorId: again.data?.id ?? '' })).error, {
    status: 429,
    message: 'sms rate limit exceeded',
  });
  t.equal(texts.texts.length, 2);
});

t.test('codes cannot be guessed, and the first guess of a new code does not wait', async (t) => {
  const { texts, server } = await start(t, { MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: '100' });
  const { client, factorId } = await withPhone(server);
  const first = await challenged(client, factorId, texts);
  for (let guess = 0; guess < 10; guess += 1)
    t.match((await client.mfa.verify({ ...first, code: other(first.code) })).error, { status: 422 });
  t.match((await client.mfa.verify(first)).error, { status: 429, code: 'over_request_rate_limit' });
  server.clock.advance(minuteMs - 1000);
  await client.mfa.unenroll({ factorId });
  server.clock.advance(1000);
  const { data } = await client.mfa.enroll({ factorType: 'phone', phone });
  const second = await challenged(client, data?.id ?? '', texts);
  t.equal((await client.mfa.verify(second)).error, null);
});

t.test('test phone gets no message, and channels are those of the gateway', async (t) => {
  const { texts, server } = await start(t, { SMS_TEST_OTP: `${digits}:123456` });
  const { client, factorId } = await withPhone(server);
  t.match((await client.mfa.challenge({ factorId, channel: 'fax' as 'sms' })).error, { status: 400 });
  const { data } = await client.mfa.challenge({ factorId, channel: 'whatsapp' });
  t.equal(texts.texts.length, 0);
  const { error } = await client.mfa.verify({ factorId, challengeId: data?.id ?? '', code: '123456' });
  t.equal(error, null);
});

t.test('database shared with GoTrue has codes that GoTrue can verify', async (t) => {
  const { texts, server } = await start(t, { DB_SHARED_WITH_GOTRUE: 'true' });
  const { client, factorId } = await withPhone(server);
  const answer = await challenged(client, factorId, texts);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.match(await sql`select otp_code from auth.mfa_challenges`, [{ otp_code: answer.code }]);
  await sql.end();
  t.equal((await client.mfa.verify(answer)).error, null);
});

t.test('hooks send the code and can reject its verification', async (t) => {
  const hook = await startHookServer(t);
  const server = await startAuthServer(t, {
    ...hook.variables('SEND_SMS', 'MFA_VERIFICATION_ATTEMPT'),
    ...enabled,
  });
  const { client, factorId } = await withPhone(server);
  hook.answer({ body: {} });
  const { data } = await client.mfa.challenge({ factorId });
  const { user, sms } = hook.last() as { user: { id: string }; sms: { otp: string } };
  t.match(sms, { phone: digits, sms_type: 'mfa', otp: /^\d{6}$/ });
  hook.answer({ body: { decision: 'reject', message: 'No more attempts.' } });
  const { error } = await client.mfa.verify({ factorId, challengeId: data?.id ?? '', code: sms.otp });
  t.match(error, { status: 403, code: 'mfa_verification_rejected', message: 'No more attempts.' });
  t.match(hook.last(), { user_id: user.id, factor_id: factorId, factor_type: 'phone', valid: true });
});

t.test('Twilio Verify sends and checks the codes', async (t) => {
  const vendor = await twilioVerify(t);
  const server = await startAuthServer(t, { ...vendor.variables, ...enabled });
  const { client, factorId } = await withPhone(server);
  const lastCode = () => vendor.codeOf(digits);
  const answer = await challenged(client, factorId, { lastCode });
  t.match((await client.mfa.verify({ ...answer, code: other(answer.code) })).error, {
    code: 'mfa_verification_failed',
  });
  t.equal((await client.mfa.verify(answer)).error, null);
  server.clock.advance(minuteMs);
  const next = await challenged(client, factorId, { lastCode });
  vendor.answer({ status: 500, body: {} });
  t.match((await client.mfa.verify(next)).error, {
    status: 500,
    message: 'Unable to check the code with the SMS provider',
  });
});
