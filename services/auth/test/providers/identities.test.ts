// Linking and unlinking identities by the user.
import { AuthClient } from '@supabase/auth-js';
import { startSmtp } from '@tollgate/testkit/smtp';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signedIn, signUp } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { apiUrl, githubUser, land, siteUrl, startWithProviders } from '../helpers/provider-sign-in.ts';

type Running = Awaited<ReturnType<typeof start>>;

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const running = await startWithProviders(t, { SECURITY_MANUAL_LINKING_ENABLED: 'true', ...variables });
  const client = new AuthClient({ url: running.server.url, autoRefreshToken: false, persistSession: false });
  return { ...running, client, browser: new Browser({ [apiUrl]: running.server.url }) };
}

t.test('client library links, lists and unlinks an identity', async (t) => {
  const { client, browser, vendors, server } = await start(t);
  vendors.set('github', githubUser('other@example.com'));
  const { data: signedUp } = await client.signUp({ email: 'ada@example.com', password: 'correct horse' });
  const { data, error } = await client.linkIdentity({
    provider: 'github',
    options: { scopes: 'repo', skipBrowserRedirect: true },
  });
  t.equal(error, null);
  const landed = land(await browser.visit(data.url ?? '', siteUrl));
  t.ok(landed.fragment.access_token, landed.url.search);
  t.equal(vendors.requests('github')[0]?.query.get('scope'), 'user:email repo');

  const identities = (await client.getUserIdentities()).data?.identities ?? [];
  t.same(
    identities.map(({ provider, user_id: userId }) => [provider, userId]),
    [
      ['email', signedUp.user?.id],
      ['github', signedUp.user?.id],
    ],
  );
  const { text: log } = await server.call('GET', '/admin/audit?query=action:identity_linked', {
    token: adminToken(),
  });
  t.match(log, /"provider":"github"/);
  const github = identities.find(({ provider }) => provider === 'github');
  if (github === undefined) throw new Error('linked above');
  t.equal((await client.unlinkIdentity(github)).error, null);
  const [email] = (await client.getUserIdentities()).data?.identities ?? [];
  if (email === undefined) throw new Error('a user has an identity');
  t.match((await client.unlinkIdentity(email)).error, { code: 'single_identity_not_deletable' });
  const again = browser.visit(data.url ?? '', siteUrl);
  await t.rejects(again, /was started in another browser/, 'the URL is valid once');
});

t.test('browser that did not ask for a link confirms the account on a page', async (t) => {
  const { server, browser: victim } = await start(t);
  const attacker = await signUp(server, { email: 'eve@example.com' });
  const path = '/user/identities/authorize?provider=github&scopes=repo&skip_http_redirect=true';
  const { body } = await server.call('GET', path, { token: attacker.accessToken });
  const link = String(body.url);

  const opened = await victim.open(link);
  t.equal(opened.status, 302);
  const confirmation = opened.headers.get('location') ?? '';
  t.match(confirmation, `${apiUrl}/pages/link?`);
  const response = await victim.open(confirmation);
  t.match(response.headers.get('content-security-policy'), "frame-ancestors 'none'");
  const page = await response.text();
  t.match(page, 'connected to the account eve@example.com.');
  const [, button = ''] = /<a class="button" href="([^"]+)"/.exec(page) ?? [];
  const url = button.replaceAll('&amp;', '&');
  t.match(url, `${apiUrl}/authorize?provider=github&scopes=repo&link_ticket=`);
  const elsewhere = await new Browser({ [apiUrl]: server.url }).open(url);
  t.match(elsewhere.headers.get('location'), `${apiUrl}/pages/link?`, 'the button is of this browser');
  t.ok(land(await victim.visit(url, siteUrl)).fragment.access_token, 'after consent');

  const used = await victim.open(confirmation);
  t.equal(used.status, 400);
  t.match(await used.text(), /<html/);
});

t.test('browser that asked for a link goes to the provider', async (t) => {
  const { server, browser } = await start(t);
  const { accessToken } = await signUp(server, { email: 'bob@example.com' });
  const path = `${apiUrl}/user/identities/authorize?provider=github`;
  const asked = await browser.open(path, undefined, { authorization: `Bearer ${accessToken}` });
  const start302 = await browser.open(asked.headers.get('location') ?? '');
  t.match(start302.headers.get('location'), '/login/oauth/authorize?');
});

t.test('identity of another user is not linked', async (t) => {
  const { server, signIn, browser } = await start(t);
  await signIn('github');
  const { accessToken: token } = await signUp(server, { email: 'bob@example.com' });
  const { body } = await server.call(
    'GET',
    '/user/identities/authorize?provider=github&skip_http_redirect=true',
    {
      token,
    },
  );
  t.match(land(await browser.visit(String(body.url), siteUrl)).query, {
    error: 'server_error',
    error_code: 'identity_already_exists',
    error_description: 'Identity is already linked to another user',
  });
});

t.test('anonymous user becomes permanent by linking', async (t) => {
  const running = await startWithProviders(t, {
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  });
  const { server } = running;
  const { accessToken: token, userId } = await signUp(server, { email: undefined, password: undefined });
  const redirect = await server.call('GET', '/user/identities/authorize?provider=github', { token });
  t.equal(redirect.status, 302);
  const browser = new Browser({ [apiUrl]: server.url });
  const landed = land(await browser.visit(redirect.headers.get('location') ?? '', siteUrl));
  const { body } = await server.call('GET', '/user', { token: String(landed.fragment.access_token) });
  t.match(body, { id: userId, is_anonymous: false, email: 'ada@example.com' });
});

t.test('email of a removed identity is replaced by a verified one', async (t) => {
  const { server, vendors, signIn, browser } = await start(t);
  const landed = await signIn('github');
  const token = String(landed.fragment.access_token);
  vendors.set('google', { claims: { sub: '9', email: 'new@example.com', email_verified: true } });
  const { headers } = await server.call('GET', '/user/identities/authorize?provider=google', { token });
  await browser.visit(headers.get('location') ?? '', siteUrl);
  const { body } = await server.call('GET', '/user/identities', { token });
  const [github] = body.identities as { identity_id: string }[];
  t.equal((await server.call('DELETE', `/user/identities/${github?.identity_id}`, { token })).status, 200);
  t.match((await server.call('GET', '/user', { token })).body, {
    email: 'new@example.com',
    app_metadata: { provider: 'google', providers: ['google'] },
  });
});

/** Removes the identity of a provider. */
async function unlink(server: AuthServer, token: string, provider: string) {
  const { body } = await server.call('GET', '/user/identities', { token });
  const identity = (body.identities as { identity_id: string; provider: string }[]).find(
    (listed) => listed.provider === provider,
  );
  return server.call('DELETE', `/user/identities/${identity?.identity_id}`, { token });
}

/** Links the GitHub account of an email to the user of the token. */
async function linkGithub({ server, vendors, browser }: Running, token: string, user = githubUser()) {
  vendors.set('github', user);
  const redirect = await server.call('GET', '/user/identities/authorize?provider=github', { token });
  await browser.visit(redirect.headers.get('location') ?? '', siteUrl);
}

t.test('removing the email identity ends password sign-in with its email', async (t) => {
  const running = await start(t);
  const { server } = running;
  const signInWith = (email: string) =>
    server.call('POST', '/token?grant_type=password', { body: { email, password: 'correct horse' } });
  const cases = {
    'verified email of another identity is promoted': {
      github: githubUser('other@example.com', { id: 1 }),
      expected: { email: 'other@example.com', email_confirmed_at: /./, user_metadata: {} },
    },
    'email of an identity that another user has is not promoted': {
      github: githubUser('bob@example.com', { id: 2 }),
      expected: undefined,
    },
    'email that remains in another identity stays': {
      github: githubUser('ada-3@example.com', { id: 3 }),
      expected: { email: 'ada-3@example.com' },
    },
  };
  await signUp(server, { email: 'bob@example.com' });
  let id = 0;
  for (const [title, { github, expected }] of Object.entries(cases)) {
    id += 1;
    const email = `ada-${id}@example.com`;
    const { accessToken: token } = await signUp(server, { email });
    await linkGithub(running, token, github);
    const removed = await unlink(server, token, 'email');
    if (expected === undefined) {
      t.match(removed.body, { error_code: 'email_conflict_identity_not_deletable' }, title);
      t.equal((await signInWith(email)).status, 200, 'nothing changed');
      continue;
    }
    t.equal(removed.status, 200, title);
    t.match((await server.call('GET', '/user', { token })).body, expected, title);
    t.equal((await signInWith(email)).status, expected.email === email ? 200 : 400, title);
  }
});

t.test('email of an identity that was not verified is promoted unconfirmed', async (t) => {
  const mail = await startSmtp();
  t.teardown(() => mail.stop());
  const running = await start(t, { MAILER_AUTOCONFIRM: 'false', SMTP_PORT: String(mail.port) });
  const { server } = running;
  const user = { email: 'ada@example.com', password: 'correct horse', email_confirm: true };
  await server.call('POST', '/admin/users', { token: adminToken(), body: user });
  const { accessToken: token } = signedIn(
    await server.call('POST', '/token?grant_type=password', { body: user }),
  );
  await linkGithub(running, token, githubUser('other@example.com', { verified: false }));
  t.equal((await server.call('GET', '/reauthenticate', { token })).status, 200);
  t.equal((await unlink(server, token, 'email')).status, 200);
  const { body } = await server.call('GET', '/user', { token });
  t.match(body, { email: 'other@example.com', user_metadata: { email_verified: false } });
  t.notOk('email_confirmed_at' in body);
  t.notOk('reauthentication_sent_at' in body, 'codes to the old email are withdrawn');
});

t.test('email is cleared if no other identity has one', async (t) => {
  const { server } = await start(t);
  const { accessToken: token } = await signUp(server);
  t.equal((await server.call('PUT', '/user', { token, body: { phone: '15550100' } })).status, 200);
  t.equal((await unlink(server, token, 'email')).status, 200);
  const { body } = await server.call('GET', '/user', { token });
  t.match(body, { email: '', phone: '15550100', app_metadata: { providers: ['phone'] } });
  t.notOk('email_confirmed_at' in body);
});

t.test('first password adds the email identity, if the setting wants it', async (t) => {
  const variables = { EXPERIMENTAL_CREATE_EMAIL_IDENTITY_ON_PASSWORD_SET_ENABLED: 'true' };
  const { server, vendors, signIn } = await startWithProviders(t, variables);
  const both = {
    app_metadata: { provider: 'github', providers: ['github', 'email'] },
    identities: [{ provider: 'github' }, { provider: 'email', identity_data: { email_verified: true } }],
  };
  const own = String((await signIn('github')).fragment.access_token);
  // Identities are listed by the time of their creation.
  server.clock.advance(1000);
  const answer = await server.call('PUT', '/user', { token: own, body: { password: 'correct horse' } });
  t.match(answer, { status: 200, body: both });
  vendors.set('github', githubUser('bob@example.com', { id: 7 }));
  const { body } = await server.call('GET', '/user', {
    token: String((await signIn('github')).fragment.access_token),
  });
  server.clock.advance(1000);
  const path = `/admin/users/${body.id}`;
  const password = { password: 'correct horse' };
  t.match(await server.call('PUT', path, { token: adminToken(), body: password }), {
    status: 200,
    body: both,
  });
});

t.test('linking needs its setting', async (t) => {
  const { server } = await startWithProviders(t);
  const { accessToken: token } = await signUp(server);
  const disabled = { status: 404, body: { error_code: 'manual_linking_disabled' } };
  t.match(await server.call('GET', '/user/identities/authorize?provider=github', { token }), disabled);
  t.match(await server.call('DELETE', '/user/identities/x', { token }), disabled);
});
