// Hosted pages ask users whether an OAuth client may have access, without scripts.
import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { pageLanguages } from '../../src/pages/texts/texts.ts';
import { type AuthServer, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import {
  applicationUri,
  createApplication,
  oauthServer,
  openAuthorize,
  redeem,
  redirectParameter,
} from '../helpers/oauth-clients.ts';
import { startProviderServer } from '../helpers/provider-server.ts';
import { googleClaims } from '../helpers/provider-sign-in.ts';

const apiUrl = 'http://localhost:9999';
const ada = { identifier: 'ada@example.com', password: 'correct horse' };

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const server = await startAuthServer(t, { ...oauthServer, PAGES_ENABLED: 'true', ...variables });
  await signUp(server);
  return { server, client: await createApplication(server), browser: new Browser({ [apiUrl]: server.url }) };
}

/** Where `/oauth/authorize` sends the browser. */
async function ask(
  server: AuthServer,
  clientId: string,
  scope = 'email profile',
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { headers } = await openAuthorize(server, { client_id: clientId, scope, state: 'a state', ...more });
  return headers.get('location') ?? '';
}

function target(response: Response): string {
  return new URL(response.headers.get('location') ?? '', apiUrl).href;
}

t.test('a user signs in, sees who asks for what, and approves', async (t) => {
  const { server, client, browser } = await start(t);
  const page = await ask(server, client.client_id);
  t.ok(page.startsWith(`${apiUrl}/pages/consent?authorization_id=`));
  const signIn = target(await browser.open(page));
  t.ok(signIn.startsWith(`${apiUrl}/pages/sign-in?authorization_id=`));
  t.equal(target(await browser.submit(signIn, ada)), page);

  const shown = await browser.open(page);
  const text = await shown.text();
  for (const part of ['Planner', 'ada@example.com', 'app.example.org', 'See your email address'])
    t.match(text, part);
  t.notMatch(text, 'See your phone number');
  const policy = shown.headers.get('content-security-policy') ?? '';
  t.match(policy, "form-action 'self' https:");
  t.match(policy, "frame-ancestors 'none'", 'clicks cannot be hijacked');

  const callback = target(await browser.submit(page, { action: 'approve' }, { target: 'consent' }));
  t.ok(callback.startsWith(`${applicationUri}?`));
  t.equal(redirectParameter(callback, 'state'), 'a state');
  const answer = await redeem(server, client, redirectParameter(callback, 'code'));
  t.match(answer, { status: 200, body: { scope: 'email profile' } });

  const again = target(await browser.open(await ask(server, client.client_id, 'email')));
  t.ok(again.startsWith(`${applicationUri}?code=`), 'within the consent there is no question');
  const wider = await browser.open(await ask(server, client.client_id, 'email phone'));
  t.match(await wider.text(), 'See your phone number');
});

t.test('a consent is for one resource, or for none', async (t) => {
  const { server, client, browser } = await start(t);
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const [notes, mail] = ['https://mcp.example.com/notes', 'https://mcp.example.com/mail'];
  const open = async (resource?: string) => {
    const more = resource === undefined ? {} : { resource };
    const page = await ask(server, client.client_id, 'email', more);
    const response = await browser.open(page);
    return { page, text: await response.text(), isAsked: response.status === 200 };
  };
  for (const resource of [undefined, notes, mail]) {
    const { page, text, isAsked } = await open(resource);
    t.ok(isAsked, `${resource} is asked for`);
    t.match(text, resource ?? 'See your email address');
    const callback = target(await browser.submit(page, { action: 'approve' }, { target: 'consent' }));
    t.ok(callback.startsWith(`${applicationUri}?code=`));
  }
  for (const resource of [undefined, notes, mail]) t.notOk((await open(resource)).isAsked);

  const { accessToken: token } = signedIn(
    await server.call('POST', '/token?grant_type=password', {
      body: { email: ada.identifier, password: ada.password },
    }),
  );
  const grants = `/user/oauth/grants?client_id=${client.client_id}`;
  t.equal((await server.call('DELETE', grants, { token })).status, 204);
  const { page } = await open(notes);
  await browser.submit(page, { action: 'approve' }, { target: 'consent' });
  t.ok((await open(mail)).isAsked, 'a revoked consent does not come back with another one');
  t.ok((await open()).isAsked);

  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  // Roles belong to the server, not to the database.
  await sql`create role consent_revoker`;
  t.teardown(async () => {
    await sql`reset role`;
    await sql`drop owned by consent_revoker`;
    await sql`drop role consent_revoker`;
  });
  await sql`grant usage on schema auth to consent_revoker`;
  await sql`grant select, update on auth.oauth_consents to consent_revoker`;
  await sql`set role consent_revoker`;
  await sql`update auth.oauth_consents set revoked_at = now() + interval '1 day'`;
  await sql`reset role`;
  const left = await sql`select 1 from auth.oauth_consent_resources`;
  t.equal(left.length, 0, 'a program without rights on our tables revoked the consent');
});

t.test('an app of a device is asked for each time', async (t) => {
  const { server, browser } = await start(t);
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const places = {
    'http://127.0.0.1/callback': '127.0.0.1',
    // Any text can be the host of such a URL.
    'com.example.app://bank.example/callback': 'com.example.app:',
  };
  for (const [uri, place] of Object.entries(places)) {
    const app = { token_endpoint_auth_method: 'none', redirect_uris: [uri] };
    const { client_id: id } = await createApplication(server, app);
    for (const time of ['first', 'second']) {
      const page = await ask(server, id, 'email', { redirect_uri: uri });
      const text = await (await browser.open(page)).text();
      t.match(text, 'See your email address', `the ${time} time`);
      t.match(text, `You return to ${place}.`);
      t.match(text, 'You return to an application on this device');
      const callback = target(await browser.submit(page, { action: 'approve' }, { target: 'consent' }));
      t.ok(callback.startsWith(`${uri}?code=`));
    }
  }
});

t.test('a user changes the account before the decision', async (t) => {
  const { server, client, browser } = await start(t);
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const page = await ask(server, client.client_id, 'email', { prompt: 'select_account' });
  const [, link = ''] =
    /href="([^"]+)">Use another account/.exec(await (await browser.open(page)).text()) ?? [];
  const accounts = await (await browser.open(new URL(link, apiUrl).href)).text();
  const [, other = ''] = /href="([^"]+)">Use another account/.exec(accounts) ?? [];
  const signIn = new URL(other.replaceAll('&amp;', '&'), apiUrl).href;
  const { userId } = await signUp(server, { email: 'eve@example.com' });
  t.equal(target(await browser.submit(signIn, { ...ada, identifier: 'eve@example.com' })), page);
  t.match(await (await browser.open(page)).text(), 'eve@example.com');
  const callback = target(await browser.submit(page, { action: 'approve' }, { target: 'consent' }));
  const { body } = await redeem(server, client, redirectParameter(callback, 'code'));
  const token = String(body.access_token);
  t.match((await server.call('GET', '/oauth/userinfo', { token })).body, { sub: userId });
});

t.test('only the button of the page approves', async (t) => {
  const { server, client, browser } = await start(t);
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const page = await ask(server, client.client_id);
  await browser.open(page);
  const forged = await browser.open(page, new URLSearchParams({ action: 'approve' }));
  t.equal(forged.status, 403, 'a form of another site');
  const denied = target(await browser.submit(page, { action: 'deny' }, { target: 'consent' }));
  t.equal(redirectParameter(denied, 'error'), 'access_denied');
  t.equal(redirectParameter(denied, 'state'), 'a state');
  t.equal((await browser.open(page)).status, 400, 'it was decided');
  t.equal((await browser.open(`${apiUrl}/pages/consent?authorization_id=x`)).status, 404);
});

t.test('the page shows the logo of a client from its own host only', async (t) => {
  const { server, browser } = await start(t);
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  for (const [logo_uri, isShown] of [
    ['https://app.example.org/logo.png', true],
    ['https://cdn.example.org/logo.png', false],
    ['http://app.example.org/logo.png', false],
  ] as const) {
    const client = await createApplication(server, { logo_uri });
    const shown = await browser.open(await ask(server, client.client_id));
    t.equal((await shown.text()).includes('<img'), isShown, logo_uri);
    const policy = shown.headers.get('content-security-policy') ?? '';
    t.equal(/img-src[^;]* https:\/\/app.example.org/.test(policy), isShown, policy);
  }
});

t.test('the page has the language of the browser', async (t) => {
  const { server, client, browser } = await start(t);
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const page = await ask(server, client.client_id);
  for (const [language, { consentTitle: title }] of Object.entries(pageLanguages))
    t.match(await (await browser.open(page, undefined, { 'accept-language': language })).text(), title);
});

t.test('a session of a provider is no sign-in that a client has asked for', async (t) => {
  const vendors = await startProviderServer(t);
  const bank = { issuer: vendors.url('bank'), client_id: 'app', client_secret: 'secret' };
  const { server, client, browser } = await start(t, {
    EXTERNAL_CUSTOM_PROVIDERS: JSON.stringify({ bank }),
  });
  const seconds = Math.floor(server.clock.nowMs() / 1000);
  const request = (parameters: Readonly<Record<string, string>>) =>
    ask(server, client.client_id, 'openid', parameters);
  /** Signs in at the provider, where the user has signed in this long ago. */
  const signIn = async (page: string, agoSeconds: number) => {
    vendors.set('bank', { claims: { ...googleClaims, auth_time: seconds - agoSeconds } });
    server.clock.advance(1_000);
    const start = page.replace('/consent?', '/provider?provider=custom:bank&');
    await browser.visit(start, `${apiUrl}/pages/consent`);
    const sent = vendors.requests('bank').filter(({ path }) => path === '/authorize');
    return Object.fromEntries(sent.at(-1)?.query ?? []);
  };
  const mustSignIn = async (page: string) => target(await browser.open(page)).includes('/sign-in?again=true');
  const approve = async (page: string) => {
    const callback = target(await browser.submit(page, { action: 'approve' }, { target: 'consent' }));
    const { body } = await redeem(server, client, redirectParameter(callback, 'code'));
    return decodeJwt(String(body.id_token));
  };

  const login = await request({ prompt: 'login' });
  t.match(await signIn(login, 3_600), { prompt: 'login', max_age: '31536000' });
  t.ok(await mustSignIn(login), 'the provider has not asked the user');
  await signIn(login, 0);
  t.match(await approve(login), { auth_time: seconds + 2 });

  const recent = await request({ max_age: '7200', prompt: 'consent' });
  const { prompt, max_age: maxAge } = await signIn(recent, 3_600);
  t.same([prompt, maxAge], [undefined, '7200']);
  t.match(await approve(recent), { auth_time: seconds - 3_600 });
  t.ok(await mustSignIn(await request({ max_age: '60' })), 'our session is younger');
});
