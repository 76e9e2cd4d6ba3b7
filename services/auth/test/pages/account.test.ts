// The account area of the hosted pages, without scripts.
import t from 'tap';
import { pageLanguages } from '../../src/pages/texts/texts.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Authenticator, relyingParty } from '../helpers/authenticator.ts';
import { Browser } from '../helpers/browser.ts';
import { authorize, createApplication, oauthServer, redeem } from '../helpers/oauth-clients.ts';
import { textMessages } from '../helpers/text-messages.ts';

const apiUrl = 'http://localhost:9999';
const pagesUrl = `${apiUrl}/pages`;
const password = 'correct horse';

t.test('account area', async (t) => {
  const sms = await textMessages(t);
  const server = await startAuthServer(t, {
    ...oauthServer,
    ...relyingParty,
    ...sms.variables,
    WEBAUTHN_RP_ID: 'localhost',
    WEBAUTHN_RP_ORIGINS: apiUrl,
    PAGES_ENABLED: 'true',
    SECURITY_RECENT_SIGN_IN: '10m',
  });

  /** A new user with a browser. */
  const open = async (email: string) => {
    const user = await signUp(server, { email, password });
    const browser = new Browser({ [apiUrl]: server.url });
    await browser.submit(`${pagesUrl}/sign-in`, { identifier: email, password }, { target: 'sign-in' });
    return {
      ...user,
      text: async (page: string) => (await browser.open(`${pagesUrl}/${page}`)).text(),
      open: async (page: string) => (await browser.open(`${pagesUrl}/${page}`)).headers.get('location'),
      submit: (page: string, target: string) => browser.submit(`${pagesUrl}/${page}`, {}, { target }),
      post: (page: string, fields: Readonly<Record<string, string>>) =>
        browser.open(`${pagesUrl}/${page}`, new URLSearchParams(fields)),
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

  await t.test('a user adds a phone number, which the code confirms in the same session', async (t) => {
    const [ada, eve] = [await open('ada@phones.example'), await open('eve@phones.example')];
    const change = { phone: '+49 151 12345678' };
    t.equal(await ada.send('account', 'phone', change), '/pages/phone-code');
    t.match(await ada.text('account'), 'Waiting for confirmation of +4915112345678.');
    t.match(await ada.text('phone-code'), 'We have sent a code to +4915112345678.');
    const code = sms.lastCode();
    t.equal(await eve.open('phone-code'), '/pages/account', 'has no change');
    t.equal(await eve.send('account', 'phone', change), '/pages/phone-code');
    const wrong = await eve.send('phone-code', 'phone-code', { code });
    t.match(wrong, /^4\d\d .*The code is not correct, or has expired\./s, 'the code of another user');
    t.equal(await ada.send('phone-code', 'phone-code', { code }), '/pages/account?saved=phone');
    const account = await ada.text('account?saved=phone');
    for (const part of ['Your phone number is saved.', 'value="+4915112345678"']) t.match(account, part);
    t.equal(await ada.open('phone-code'), '/pages/account');
    t.equal((await ada.text('sessions')).match(/<time/g)?.length, 4, 'no further session');
    t.match(
      await eve.send('account', 'phone', change),
      /^422 .*There is already an account with this phone/s,
    );
    server.clock.advance(10 * 60_000);
    const later = await ada.send('account', 'phone', { phone: '+49 151 87654321' });
    t.equal(later, '/pages/confirm?target=account');
    t.match(await ada.text('account'), 'value="+49 151 87654321"', 'what was typed');
  });

  await t.test('a user adds, renames and removes a passkey', async (t) => {
    const [ada, eve] = [await open('ada@passkeys.example'), await open('eve@passkeys.example')];
    /** Answers the challenge of the page. */
    const add = async (by: typeof ada) => {
      const page = await (await ada.submit('passkey-add', 'passkey-add')).text();
      const read = (name: string) =>
        (new RegExp(`name="${name}" value="([^"]+)"`).exec(page)?.[1] ?? '').replaceAll('&quot;', '"');
      const place = { origin: apiUrl, rpId: 'localhost' };
      const credential = JSON.stringify(new Authenticator().create(JSON.parse(read('options')), place));
      const formToken = /form_token" value="([^"]+)"/.exec(await by.text('account'))?.[1] ?? '';
      const fields = { form_token: formToken, challenge_id: read('challenge_id'), credential };
      return by.post('passkey-create', fields);
    };
    t.match(await ada.text('security'), 'A passkey signs you in with your fingerprint');
    t.equal((await add(eve)).status, 400, 'a challenge of another user');
    t.equal((await add(ada)).headers.get('location'), '/pages/security?saved=passkey');

    const [, id = ''] = /passkey-name\?passkey=([0-9a-f-]+)"/.exec(await ada.text('security')) ?? [];
    for (const page of [`passkey-name?passkey=${id}`, `passkey-remove?passkey=${id}`, 'passkey-name'])
      t.match(await eve.text(page), 'This passkey has been removed.');
    const name = `passkey-name?passkey=${id}`;
    const friendly = { friendly_name: ' Phone <1> ' };
    t.equal(await ada.send(name, 'passkey-name', friendly), '/pages/security?saved=passkey-renamed');
    t.match(await ada.text('security'), 'aria-label="Remove: Phone &lt;1&gt;"');
    t.match(await ada.send(name, 'passkey-name', { friendly_name: ' ' }), /^400 /);

    const remove = `passkey-remove?passkey=${id}`;
    const formToken = /form_token" value="([^"]+)"/.exec(await eve.text('account'))?.[1] ?? '';
    for (const page of [name, remove])
      t.equal((await eve.post(page, { form_token: formToken, friendly_name: 'Eve' })).status, 404);
    server.clock.advance(10 * 60_000);
    for (const page of ['passkey-add', remove])
      t.match(await ada.open(page), `/pages/confirm?target=${page.replace('?', '&')}`);
    const confirm = `confirm?target=${remove.replace('?', '&')}`;
    t.equal(await ada.send(confirm, 'confirm', { current_password: password }), `/pages/${remove}`);
    t.match(await ada.text(remove), 'You will no longer be able to sign in with Phone &lt;1&gt;.');
    t.equal(await ada.send(remove, 'passkey-remove'), '/pages/security?saved=passkey-removed');
    t.notMatch(await ada.text('security'), 'Phone');
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
