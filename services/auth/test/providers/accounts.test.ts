// Which account an identity belongs to.
import { startSmtp } from '@tollgate/testkit/smtp';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp } from '../helpers/auth-server.ts';
import { linkIn } from '../helpers/mail-server.ts';
import { githubUser, googleClaims, type Landed, startWithProviders } from '../helpers/provider-sign-in.ts';

const password = 'correct horse';

function open(t: Test, server: AuthServer) {
  const sql = postgres(server.databaseUrl, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  return sql;
}

async function startMail(t: Test) {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  return smtp;
}

const userOf = async (server: AuthServer, { fragment }: Landed) =>
  (await server.call('GET', '/user', { token: String(fragment.access_token) })).body;

t.test('identity with a verified email is linked to the confirmed user of the email', async (t) => {
  const { server, signIn } = await startWithProviders(t);
  const { userId } = await signUp(server);
  const user = await userOf(server, await signIn('github'));
  t.match(user, { id: userId, app_metadata: { provider: 'email', providers: ['email', 'github'] } });
  const byPassword = await server.call('POST', '/token?grant_type=password', {
    body: { email: 'ada@example.com', password },
  });
  t.equal(byPassword.status, 200, 'the password stays');
  const log = await server.call('GET', '/admin/audit?query=action:identity_linked', { token: adminToken() });
  t.match(JSON.parse(log.text), [
    { payload: { actor_id: userId, traits: { provider: 'github', provider_id: '42' } } },
  ]);
});

t.test('identity with an unverified email is not linked', async (t) => {
  const { server, vendors, signIn } = await startWithProviders(t, { MAILER_AUTOCONFIRM: 'false' });
  const sql = open(t, server);
  vendors.set('github', githubUser('ada@example.com', { verified: false }));
  const created = await server.call('POST', '/admin/users', {
    token: adminToken(),
    body: { email: 'ada@example.com', password, email_confirm: true },
  });
  t.equal(created.status, 200);
  t.match((await signIn('github')).query, {
    error: 'access_denied',
    error_code: 'provider_email_needs_verification',
  });
  t.match(await sql`select count(*)::int as count from auth.identities where provider = 'github'`, [
    { count: 0 },
  ]);
});

t.test('verified sign-in removes what was prepared on an unconfirmed account', async (t) => {
  const mail = await startMail(t);
  const { server, signIn } = await startWithProviders(t, {
    MAILER_AUTOCONFIRM: 'false',
    SMTP_HOST: mail.host,
    SMTP_PORT: String(mail.port),
  });
  const sql = open(t, server);
  const prepared = await server.call('POST', '/signup', {
    body: { email: 'ada@example.com', password, data: { note: 'of the attacker' } },
  });
  t.equal(prepared.status, 200);
  const user = await userOf(server, await signIn('github'));
  t.match(user, {
    email: 'ada@example.com',
    app_metadata: { provider: 'github', providers: ['github'] },
    identities: [{ provider: 'github' }],
  });
  t.notOk('note' in (user.user_metadata as object));
  t.match(await sql`select encrypted_password from auth.users`, [{ encrypted_password: '' }]);
  const byPassword = await server.call('POST', '/token?grant_type=password', {
    body: { email: 'ada@example.com', password },
  });
  t.equal(byPassword.status, 400);
});

t.test('unverified email of an identity does not attract the sign-ins of its owner', async (t) => {
  const { server, vendors, signIn } = await startWithProviders(t);
  const sql = open(t, server);
  const attacker = await signUp(server, { email: 'attacker@example.com' });
  await sql`insert into auth.identities (id, provider, provider_id, user_id, identity_data, created_at, updated_at)
    values (gen_random_uuid(), 'spotify', 's-1', ${attacker.userId},
      ${sql.json({ sub: 's-1', email: 'ada@example.com', email_verified: false })}, now(), now())`;
  vendors.set('google', { claims: googleClaims });
  const user = await userOf(server, await signIn('google'));
  t.not(user.id, attacker.userId);
});

t.test('unverified email is confirmed by mail before the first sign-in', async (t) => {
  const mail = await startMail(t);
  const { server, vendors, signIn } = await startWithProviders(t, {
    MAILER_AUTOCONFIRM: 'false',
    SMTP_HOST: mail.host,
    SMTP_PORT: String(mail.port),
  });
  vendors.set('github', githubUser('ada@example.com', { verified: false }));
  const refused = {
    error: 'access_denied',
    error_code: 'provider_email_needs_verification',
    error_description:
      'Unverified email with github. A confirmation email has been sent to your github email',
  };
  const landed = await signIn('github');
  t.match(landed.query, refused);
  t.match(landed.fragment, refused);
  t.match((await signIn('github')).query, refused, 'again, without another mail');
  const [sent, ...more] = mail.mails();
  t.same(more, []);
  const link = linkIn(sent ?? { html: '' });
  t.equal((await server.call('GET', `${link.pathname}${link.search}`)).status, 303);
  t.match(await userOf(server, await signIn('github')), { email: 'ada@example.com' });
});

t.test('user without an email signs in only if it is optional', async (t) => {
  const noEmail = {
    ...githubUser(),
    payloads: { '/api/v3/user': { id: 7, login: 'ada' }, '/api/v3/user/emails': [] },
  };
  const required = await startWithProviders(t);
  required.vendors.set('github', noEmail);
  t.match((await required.signIn('github')).query, {
    error: 'server_error',
    error_description: 'Error getting user email from external provider',
  });
  const optional = await startWithProviders(t, { EXTERNAL_GITHUB_EMAIL_OPTIONAL: 'true' });
  optional.vendors.set('github', noEmail);
  const first = await userOf(optional.server, await optional.signIn('github'));
  t.match(first, { email: '', identities: [{ provider: 'github', id: '7' }] });
  t.equal((await userOf(optional.server, await optional.signIn('github'))).id, first.id);
});

t.test('errors lead to the redirect target', async (t) => {
  const { server, vendors, signIn } = await startWithProviders(t, { DISABLE_SIGNUP: 'true' });
  const sql = open(t, server);
  t.match((await signIn('github')).fragment, {
    error: 'access_denied',
    error_code: 'signup_disabled',
    error_description: 'Signups not allowed for this instance',
    sb: '',
  });
  const user = { '/api/v3/user': { id: 7, login: 'eve' }, '/api/v3/user/emails': [] };
  vendors.set('github', { ...githubUser(), payloads: user });
  t.match((await signIn('github')).query, {
    error: 'server_error',
    error_code: 'unexpected_failure',
    error_description: 'Error getting user email from external provider',
  });
  vendors.set('github', githubUser());
  await server.call('POST', '/admin/users', {
    token: adminToken(),
    body: { email: 'ada@example.com', email_confirm: true, ban_duration: '1h' },
  });
  t.match((await signIn('github')).query, { error: 'access_denied', error_code: 'user_banned' });
  t.match(await sql`select count(*)::int as count from auth.identities where provider = 'github'`, [
    { count: 0 },
  ]);

  vendors.set('github', {
    ...githubUser(),
    callback: { error: 'access_denied', error_description: 'The user has denied access' },
  });
  t.match((await signIn('github')).query, {
    error: 'access_denied',
    error_code: 'bad_oauth_callback',
    error_description: 'The user has denied access',
  });
  vendors.set('github', { ...githubUser(), payloads: { '/api/v3/user': {}, '/api/v3/user/emails': [] } });
  t.match((await signIn('github')).query, {
    error: 'server_error',
    error_code: 'unexpected_failure',
    error_description: 'Error getting user profile from external provider',
  });
});

t.test('invitation is accepted with the invited email only, and once', async (t) => {
  const mail = await startMail(t);
  const { server, vendors, signIn } = await startWithProviders(t, {
    MAILER_AUTOCONFIRM: 'false',
    DISABLE_SIGNUP: 'true',
    SMTP_HOST: mail.host,
    SMTP_PORT: String(mail.port),
  });
  const invite = await server.call('POST', '/admin/generate_link', {
    token: adminToken(),
    body: { type: 'invite', email: 'ada@example.com' },
  });
  const inviteToken = String(invite.body.hashed_token);
  vendors.set('github', githubUser('other@example.com'));
  t.match((await signIn('github', { invite_token: inviteToken })).query, {
    error: 'invalid_request',
    error_code: 'validation_failed',
    error_description: 'Invited email does not match emails from external provider',
  });
  vendors.set('github', githubUser());
  const user = await userOf(server, await signIn('github', { invite_token: inviteToken }));
  t.match(user, { id: invite.body.id, identities: [{ provider: 'github' }] });
  t.ok(user.confirmed_at);
  const unknown = await server.call('GET', `/authorize?provider=github&invite_token=${inviteToken}`);
  t.match(unknown, { status: 404, body: { error_code: 'user_not_found' } });
});

t.test('concurrent first sign-ins create one user', async (t) => {
  const { server, signIn } = await startWithProviders(t);
  const sql = open(t, server);
  const landed = await Promise.all(Array.from({ length: 6 }, () => signIn('github')));
  for (const { fragment } of landed) t.ok(fragment.access_token);
  t.match(await sql`select count(*)::int as count from auth.users`, [{ count: 1 }]);
  t.match(await sql`select count(*)::int as count from auth.identities`, [{ count: 1 }]);
});
