// The account area of the hosted pages, without scripts.
import t from 'tap';
import { pageLanguages } from '../../src/pages/texts/texts.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { authorize, createApplication, oauthServer, redeem } from '../helpers/oauth-clients.ts';

const apiUrl = 'http://localhost:9999';
const pagesUrl = `${apiUrl}/pages`;
const password = 'correct horse';

t.test('account area', async (t) => {
  const server = await startAuthServer(t, {
    ...oauthServer,
    PAGES_ENABLED: 'true',
    SECURITY_RECENT_SIGN_IN: '10m',
  });

  /** A new user with a browser. */
  const open = async (email: string) => {
    const user = await signUp(server, { email, password });
    const browser = new Browser({ [apiUrl]: server.url });
    await browser.submit(`${pagesUrl}/sign-in`, { identifier: email, password });
    return {
      ...user,
      text: async (page: string) => (await browser.open(`${pagesUrl}/${page}`)).text(),
      open: async (page: string) => (await browser.open(`${pagesUrl}/${page}`)).headers.get('location'),
      submit: (page: string, target: string) => browser.submit(`${pagesUrl}/${page}`, {}, { target }),
      /** Sends a form. Returns where it leads to, or the status and the page. */
      async send(page: string, target: string, fields: Readonly<Record<string, string>> = {}) {
        const response = await browser.submit(`${pagesUrl}/${page}`, fields, { target });
        return response.headers.get('location') ?? `${response.status} ${await response.text()}`;
      },
    };
  };

  await t.test('the navigation has the pages that the settings enable', async (t) => {
    const ada = await open('ada@navigation.example');
    const page = await ada.text('security');
    const [, navigation = ''] = /<nav aria-label="Your account">(.*?)<\/nav>/s.exec(page) ?? [];
    const names = [...navigation.matchAll(/href="\/pages\/([\w-]+)"/g)].map(([, name]) => name);
    t.same(names, ['account', 'security', 'sessions', 'applications', 'data']);
    t.match(navigation, '<a href="/pages/security" aria-current="page">Sign-in and security</a>');
    for (const { security, sessions, applications } of Object.values(pageLanguages))
      t.equal(new Set([security, sessions, applications]).size, 3);
  });

  await t.test('a user sees the access of an application, and revokes it', async (t) => {
    const [ada, eve] = [await open('ada@applications.example'), await open('eve@applications.example')];
    t.match(await ada.text('applications'), 'No application has access to your account.');
    const client = await createApplication(server);
    const { client_id } = client;
    const resource = 'https://mcp.example.com/notes';
    for (const { accessToken } of [ada, eve])
      await authorize(server, accessToken, { client_id, scope: 'email' });
    const code = await authorize(server, ada.accessToken, { client_id, scope: 'email profile', resource });
    const granted = await ada.text('applications');
    for (const part of ['Planner', 'See your email address', `For ${resource}`, 'access since <time'])
      t.match(granted, part);
    t.notMatch(granted, 'last used');

    const { body } = await redeem(server, client, code, { resource });
    t.match(await ada.text('applications'), 'last used <time');
    t.match(await ada.text('sessions'), 'aria-label="Sign out: Planner"');

    const unknown = await ada.send('applications', 'application-revoke', { client_id: 'x' });
    t.match(unknown, /^404 .*This application has no access any more\./s);
    t.equal(await ada.send('applications', 'application-revoke'), '/pages/applications?saved=application');
    t.match(await ada.text('applications?saved=application'), 'The application has no access any more.');
    const refresh = { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) };
    t.equal((await redeem(server, client, '', refresh)).status, 400, 'its session has ended');
    t.match(await eve.text('applications'), 'Planner', 'of another user it has not');
    const { body: entries } = await server.call('GET', '/user/oauth/grants', { token: ada.accessToken });
    t.same(entries, []);
  });

  await t.test('sessions of others cannot be ended', async (t) => {
    const [ada, eve] = [await open('ada@sessions.example'), await open('eve@sessions.example')];
    const [, foreign = ''] = /name="session_id" value="([^"]+)"/.exec(await ada.text('sessions')) ?? [];
    t.match(await eve.send('sessions', 'session-end', { session_id: foreign }), /^404 /);
    t.match(await ada.text('sessions'), foreign);
    t.equal(
      await ada.send('sessions', 'session-end', { session_id: foreign }),
      '/pages/sessions?saved=session',
    );
    t.notMatch(await ada.text('sessions'), foreign);
    t.match(await ada.text('sessions'), '<strong>(this one)</strong>');
  });

  await t.test('a user downloads what is stored, after a recent sign-in', async (t) => {
    const ada = await open('ada@data.example');
    const client = await createApplication(server);
    await authorize(server, ada.accessToken, { client_id: client.client_id, scope: 'email' });
    const response = await ada.submit('data', 'data-export');
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'application/json; charset=utf-8',
      'content-disposition': 'attachment; filename="account-data.json"',
      'cache-control': 'no-store',
    });
    t.equal(response.headers.get('access-control-allow-origin'), null);
    const text = await response.text();
    t.match(JSON.parse(text), {
      user: { id: ada.userId, email: 'ada@data.example', identities: [{ provider: 'email' }] },
      passkeys: [],
      sessions: [{ amr: [{ method: 'password' }] }, {}],
      applications: [{ name: 'Planner', scopes: ['email'] }],
      organizations: [],
      api_keys: [],
      audit_log: { is_complete: true, entries: [{ actor_id: ada.userId }] },
    });
    for (const secret of ['$argon2', '$2', ada.refreshToken]) t.notOk(text.includes(secret), secret);
    server.clock.advance(10 * 60_000);
    t.equal(await ada.send('data', 'data-export'), '/pages/confirm?target=data');
  });

  await t.test('a user deletes the account, and all access ends', async (t) => {
    const ada = await open('ada@deleted.example');
    const client = await createApplication(server);
    const code = await authorize(server, ada.accessToken, { client_id: client.client_id, scope: 'email' });
    const { body } = await redeem(server, client, code);
    server.clock.advance(10 * 60_000);
    const confirm = '/pages/confirm?target=delete';
    t.equal(await ada.open('delete'), confirm);
    t.equal(
      await ada.send('confirm?target=delete', 'confirm', { current_password: password }),
      '/pages/delete',
    );
    t.match(await ada.send('delete', 'delete', { confirmed: '' }), /^400 .*Something is missing/s);
    t.equal(await ada.send('delete', 'delete'), '/pages/sign-in?deleted=true');
    const refresh = { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) };
    t.equal((await redeem(server, client, '', refresh)).status, 400, 'the client has no session');
    t.equal((await server.call('GET', '/user', { token: ada.accessToken })).status, 403);
  });
});
