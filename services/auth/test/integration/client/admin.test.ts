// Uses the published client library over HTTP.
import { AuthAdminApi, AuthClient } from '@supabase/auth-js';
import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { adminToken } from '../../helpers/admin.ts';
import { type AuthServer, startAuthServer } from '../../helpers/auth-server.ts';

function adminOf({ url }: AuthServer) {
  return new AuthAdminApi({ url, headers: { Authorization: `Bearer ${adminToken()}` } });
}

function clientOf({ url }: AuthServer) {
  return new AuthClient({ url, autoRefreshToken: false, persistSession: true, storageKey: url });
}

const ada = { email: 'ada@example.com', password: 'correct horse' };

t.test('administrator creates, finds, updates, bans and deletes a user', async (t) => {
  const server = await startAuthServer(t, { MAILER_AUTOCONFIRM: 'false' });
  const admin = adminOf(server);
  const created = await admin.createUser({
    ...ada,
    email_confirm: true,
    user_metadata: { name: 'Ada' },
    app_metadata: { plan: 'gold' },
  });
  t.equal(created.error, null);
  t.match(created.data.user, {
    email: ada.email,
    role: 'authenticated',
    user_metadata: { name: 'Ada', email_verified: true },
    app_metadata: { plan: 'gold', provider: 'email', providers: ['email'] },
    identities: [{ provider: 'email', identity_data: { email: ada.email, email_verified: true } }],
  });
  const id = created.data.user?.id ?? '';
  const client = clientOf(server);
  t.equal((await client.signInWithPassword(ada)).error, null);
  t.match((await admin.createUser(ada)).error, { code: 'email_exists', status: 422 });
  t.equal((await admin.getUserById(id)).data.user?.id, id);

  const changed = await admin.updateUserById(id, {
    email: 'countess@example.com',
    phone: '+44 20 7946 0000',
    user_metadata: { name: null, title: 'Countess' },
    role: 'editor',
  });
  t.equal(changed.error, null);
  t.match(changed.data.user, {
    email: 'countess@example.com',
    phone: '442079460000',
    role: 'editor',
    user_metadata: { title: 'Countess' },
    app_metadata: { plan: 'gold', providers: ['email', 'phone'] },
    identities: [{ provider: 'email', email: 'countess@example.com' }, { provider: 'phone' }],
  });
  t.notOk('name' in (changed.data.user?.user_metadata ?? {}));

  const banned = await admin.updateUserById(id, { ban_duration: '1h30m' });
  t.equal(banned.error, null);
  t.match((await client.getUser()).error, { code: 'user_banned' });
  await admin.updateUserById(id, { ban_duration: 'none' });
  t.equal((await client.getUser()).error, null);

  t.equal((await admin.deleteUser(id)).error, null);
  t.match((await admin.getUserById(id)).error, { code: 'user_not_found', status: 404 });
});

t.test('new password ends the sessions of the user', async (t) => {
  const server = await startAuthServer(t);
  const client = clientOf(server);
  const { data } = await client.signUp(ada);
  const admin = adminOf(server);
  const id = data.user?.id ?? '';
  t.match((await admin.updateUserById(id, { password: 'short' })).error, { code: 'weak_password' });
  t.equal((await admin.updateUserById(id, { password: 'battery staple' })).error, null);
  t.equal((await client.getUser()).error?.name, 'AuthSessionMissingError');
  t.equal((await client.signInWithPassword({ ...ada, password: 'battery staple' })).error, null);
});

t.test('users are listed in pages, newest first', async (t) => {
  const server = await startAuthServer(t);
  const admin = adminOf(server);
  for (const name of ['a', 'b', 'c']) {
    await admin.createUser({ email: `${name}@example.com` });
    server.clock.advance(1000);
  }
  const all = await admin.listUsers();
  t.same(
    all.data.users.map(({ email }) => email),
    ['c@example.com', 'b@example.com', 'a@example.com'],
  );
  t.match(all.data, { total: 3, nextPage: null, lastPage: 1, aud: '' });
  const first = await admin.listUsers({ page: 1, perPage: 1 });
  t.match(first.data, { users: [{ email: 'c@example.com' }], total: 3, nextPage: 2, lastPage: 3 });
  const last = await admin.listUsers({ page: 3, perPage: 1 });
  t.match(last.data, { users: [{ email: 'a@example.com' }], total: 3, nextPage: null, lastPage: 3 });
  const beyond = await admin.listUsers({ page: 9, perPage: 1 });
  t.match(beyond.data, { users: [], total: 3 });
  t.equal((await admin.listUsers({ page: -1 })).error?.status, 400);
});

t.test('generated links redirect to their target', async (t) => {
  const server = await startAuthServer(t, { MAILER_AUTOCONFIRM: 'false' });
  const admin = adminOf(server);
  const signUp = await admin.generateLink({ type: 'signup', ...ada, options: { data: { name: 'Ada' } } });
  t.equal(signUp.error, null);
  t.match(signUp.data.properties, {
    verification_type: 'signup',
    redirect_to: 'https://example.com',
    action_link: `http://localhost:9999/verify?token=${signUp.data.properties?.hashed_token}&type=signup&redirect_to=https://example.com`,
    email_otp: /^\d{6}$/,
  });
  t.match(signUp.data.user, { email: ada.email, user_metadata: { name: 'Ada' } });

  const client = clientOf(server);
  const token_hash = signUp.data.properties?.hashed_token ?? '';
  t.equal((await client.verifyOtp({ type: 'signup', token_hash })).error, null);
  t.equal((await client.signInWithPassword(ada)).error, null);
  t.match((await admin.generateLink({ type: 'signup', ...ada })).error, { code: 'email_exists' });
  t.match((await admin.generateLink({ type: 'invite', email: ada.email })).error, { code: 'email_exists' });

  for (const type of ['magiclink', 'recovery'] as const) {
    const made = await admin.generateLink({
      type,
      email: ada.email,
      options: { redirectTo: 'https://example.com/there' },
    });
    t.match(made.data.properties, { verification_type: type, redirect_to: 'https://example.com/there' });
    const token = made.data.properties?.email_otp ?? '';
    const signedIn = await client.verifyOtp({ type, email: ada.email, token });
    t.equal(signedIn.error, null, type);
  }
});

t.test('generated magic link signs a new user up, other links require a user', async (t) => {
  const server = await startAuthServer(t, { MAILER_AUTOCONFIRM: 'false', DISABLE_SIGNUP: 'true' });
  const admin = adminOf(server);
  const made = await admin.generateLink({ type: 'magiclink', email: 'new@example.com' });
  t.match(made.data.properties, { verification_type: 'signup' });
  const invited = await admin.generateLink({ type: 'invite', email: 'bob@example.com' });
  t.match(invited.data.properties, { verification_type: 'invite' });
  t.type(invited.data.user?.invited_at, 'string');
  for (const type of ['recovery', 'email_change_new'] as const) {
    const missing = await admin.generateLink({
      type,
      email: 'unknown@example.com',
      newEmail: 'x@example.com',
    });
    t.match(missing.error, { code: 'user_not_found', status: 404 });
  }
});

t.test('generated links for both addresses confirm a change of email', async (t) => {
  const server = await startAuthServer(t, { MAILER_AUTOCONFIRM: 'false' });
  const admin = adminOf(server);
  await admin.createUser({ ...ada, email_confirm: true });
  const change = { email: ada.email, newEmail: 'countess@example.com' };
  const current = await admin.generateLink({ type: 'email_change_current', ...change });
  const next = await admin.generateLink({ type: 'email_change_new', ...change });
  t.match(current.data.user, { new_email: 'countess@example.com' });
  const client = clientOf(server);
  for (const { data } of [current, next]) {
    const token_hash = data.properties?.hashed_token ?? '';
    t.equal((await client.verifyOtp({ type: 'email_change', token_hash })).error, null);
  }
  t.equal((await client.getUser()).data.user?.email, 'countess@example.com');
});

t.test('administrator lists and deletes the factors of a user', async (t) => {
  const server = await startAuthServer(t);
  const client = clientOf(server);
  const userId = (await client.signUp(ada)).data.user?.id ?? '';
  const enrolled = await client.mfa.enroll({ factorType: 'totp', friendlyName: 'phone' });
  const id = enrolled.data?.id ?? '';
  const secret = Secret.fromBase32(enrolled.data?.totp.secret ?? '');
  const code = TOTP.generate({ secret, timestamp: server.clock.nowMs() });
  t.equal((await client.mfa.challengeAndVerify({ factorId: id, code })).error, null);

  const admin = adminOf(server);
  const listed = await admin.mfa.listFactors({ userId });
  t.match(listed.data?.factors, [{ id, friendly_name: 'phone', factor_type: 'totp', status: 'verified' }]);
  // The library wraps the response once more than its types declare.
  t.match((await admin.mfa.deleteFactor({ userId, id })).data, { data: { id } });
  t.same((await admin.mfa.listFactors({ userId })).data?.factors, []);
  await client.refreshSession();
  t.match((await client.mfa.getAuthenticatorAssuranceLevel()).data, { currentLevel: 'aal1' });
});
