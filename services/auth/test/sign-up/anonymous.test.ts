// Uses the published client library over HTTP.
import { AuthClient } from '@supabase/auth-js';
import t from 'tap';
import { type AuthServer, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { textMessages } from '../helpers/text-messages.ts';

const phone = '4915112345678';

function clientOf(server: AuthServer) {
  const { url } = server;
  return new AuthClient({ url, autoRefreshToken: false, persistSession: true, storageKey: url });
}

t.test('anonymous user signs in without email and phone', async (t) => {
  const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const client = clientOf(server);
  const { data, error } = await client.signInAnonymously({ options: { data: { name: 'Ada' } } });
  t.equal(error, null);
  t.match(data.user, {
    is_anonymous: true,
    email: '',
    phone: '',
    app_metadata: {},
    user_metadata: { name: 'Ada' },
    identities: [],
    role: 'authenticated',
  });
  t.match((await client.getClaims()).data?.claims, { is_anonymous: true, amr: [{ method: 'anonymous' }] });
  t.equal((await client.refreshSession()).error, null);
});

t.test(
  'adding an email makes the user permanent immediately without confirmation, with the same id',
  async (t) => {
    const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
    const client = clientOf(server);
    const { data: before } = await client.signInAnonymously();
    const { data, error } = await client.updateUser({ email: 'Ada@example.com', password: 'correct horse' });
    t.equal(error, null);
    t.match(data.user, {
      id: before.user?.id,
      email: 'ada@example.com',
      is_anonymous: false,
      app_metadata: { provider: 'email', providers: ['email'] },
      identities: [{ provider: 'email', identity_data: { email: 'ada@example.com', email_verified: true } }],
    });
    await client.refreshSession();
    t.match((await client.getClaims()).data?.claims, { is_anonymous: false, email: 'ada@example.com' });
    await client.signOut();
    const again = await client.signInWithPassword({ email: 'ada@example.com', password: 'correct horse' });
    t.equal(again.data.user?.id, before.user?.id);
  },
);

t.test('confirming a phone makes the user permanent', async (t) => {
  const texts = await textMessages(t);
  const server = await startAuthServer(t, { ...texts.variables, EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const client = clientOf(server);
  const { data: before } = await client.signInAnonymously();
  const pending = await client.updateUser({ phone: `+${phone}` });
  t.match(pending.data.user, { is_anonymous: true, phone: '', new_phone: phone });
  const verified = await client.verifyOtp({ type: 'phone_change', phone, token: texts.lastCode() });
  t.equal(verified.error, null);
  t.match(verified.data.user, {
    id: before.user?.id,
    phone,
    is_anonymous: false,
    app_metadata: { provider: 'phone', providers: ['phone'] },
    identities: [{ provider: 'phone', identity_data: { phone, phone_verified: true } }],
  });
  t.notOk('new_phone' in (verified.data.user ?? {}));
});

t.test('anonymous user can neither set a password nor get a nonce', async (t) => {
  const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const client = clientOf(server);
  await client.signInAnonymously();
  t.match((await client.updateUser({ password: 'correct horse' })).error, {
    status: 422,
    code: 'validation_failed',
    message: 'Updating password of an anonymous user without an email or phone is not allowed',
  });
  t.match((await client.reauthenticate()).error, {
    status: 400,
    message: 'Reauthentication requires the user to have an email or a phone number',
  });
});

t.test('anonymous sign-up is off by default, and while sign-up is disabled', async (t) => {
  const off = await startAuthServer(t);
  t.match((await clientOf(off).signInAnonymously()).error, {
    status: 422,
    code: 'anonymous_provider_disabled',
    message: 'Anonymous sign-ins are disabled',
  });
  const noSignUp = { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true', DISABLE_SIGNUP: 'true' };
  const error = (await clientOf(await startAuthServer(t, noSignUp)).signInAnonymously()).error;
  t.match(error, { status: 422, code: 'signup_disabled' });
});

t.test('anonymous sign-up has its own rate limit', async (t) => {
  const server = await startAuthServer(t, {
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    SECURITY_SVC_FORWARDED_FOR_ENABLED: 'true',
    RATE_LIMIT_ANONYMOUS_USERS: '2',
    RATE_LIMIT_OTP: '1',
  });
  const signUpAnonymously = () => server.call('POST', '/signup', { body: {} });
  signedIn(await signUpAnonymously());
  signedIn(await signUpAnonymously());
  t.match(await signUpAnonymously(), { status: 429, body: { error_code: 'over_request_rate_limit' } });
  await signUp(server);
  server.clock.advance(30 * 60_000);
  signedIn(await signUpAnonymously());
});
