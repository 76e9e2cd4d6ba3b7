import { AuthClient, type Provider } from '@supabase/auth-js';
import { startSmtp } from '@tollgate/testkit/smtp';
import { decodeJwt } from 'jose';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signedIn } from '../helpers/auth-server.ts';
import { Authenticator, relyingParty } from '../helpers/authenticator.ts';
import { Browser } from '../helpers/browser.ts';
import { addProvider } from '../helpers/custom-providers.ts';
import { codeIn, linkIn, startMailingServer } from '../helpers/mail-server.ts';
import { pkce, redirectParameter } from '../helpers/oauth-clients.ts';
import { apiUrl, startWithProviders } from '../helpers/provider-sign-in.ts';
import { textMessages } from '../helpers/text-messages.ts';

const pagesUrl = `${apiUrl}/pages`;
const app = 'https://example.com/welcome';
const ada = { email: 'ada@pages.example', password: 'correct horse' };

t.setTimeout(120_000);
t.test('pages', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const sms = await textMessages(t);
  const { server } = await startWithProviders(t, {
    ...sms.variables,
    ...relyingParty,
    WEBAUTHN_RP_ID: 'localhost',
    WEBAUTHN_RP_ORIGINS: apiUrl,
    PAGES_ENABLED: 'true',
    URI_ALLOW_LIST: 'com.example.app://callback',
    RATE_LIMIT_HEADER: 'x-client',
    RATE_LIMIT_TOKEN_REFRESH: '50',
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    MAILER_AUTOCONFIRM: 'false',
    MAILER_LINK_PAGE_ENABLED: 'true',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
  });

  const hosts = { [apiUrl]: server.url };
  const text = async (browser: Browser, name: string) => (await browser.open(`${pagesUrl}/${name}`)).text();

  async function addUser(email: string): Promise<void> {
    const body = { email, password: ada.password, email_confirm: true };
    await server.call('POST', '/admin/users', { token: adminToken(), body });
  }

  function signIn(browser: Browser, url: string, identifier: string): Promise<Response> {
    return browser.submit(url, { identifier, password: ada.password }, { target: 'sign-in' });
  }

  await t.test('sign-in at a provider ends at the account, in the browser that started it', async (t) => {
    const browser = new Browser(hosts);
    const page = await text(browser, 'sign-in');
    t.match(page, '<a class="button" href="/pages/provider?provider=google">Continue with Google</a>');
    const back = await browser.visit(`${pagesUrl}/provider?provider=google`, `${pagesUrl}/continue`);
    const stolen = await new Browser(hosts).open(back.href);
    t.equal(stolen.status, 400);
    t.match(await stolen.text(), 'This link is not complete');
    await browser.visit(back.href, `${pagesUrl}/account`);
    t.match(await text(browser, 'account'), 'Signed in as <strong>ada@example.com</strong>');
  });

  await t.test('sign-in at a provider for an app hands the session over', async (t) => {
    const start = `${pagesUrl}/provider?provider=google&redirect_to=${encodeURIComponent(app)}`;
    const target = await new Browser(hosts).visit(start, app);
    t.match(target.hash, /^#access_token=.+&refresh_token=/);
    const failed = await new Browser(hosts).open(`${pagesUrl}/continue?error_code=signup_disabled`);
    t.equal(failed.headers.get('location'), '/pages/sign-in?error_code=signup_disabled');
    const unknown = await new Browser(hosts).open(`${pagesUrl}/provider?provider=unknown`);
    t.equal(unknown.status, 400);
  });

  await t.test('a person connects and disconnects an account, and ends sessions', async (t) => {
    const browser = new Browser(hosts);
    await browser.visit(`${pagesUrl}/provider?provider=google`, `${pagesUrl}/account`);
    const [, link = ''] = /href="([^"]+provider=github[^"]+)"/.exec(await text(browser, 'security')) ?? [];
    const url = new URL(link.replaceAll('&amp;', '&'), apiUrl);
    await browser.visit(url.href, `${pagesUrl}/security`);
    t.match(await text(browser, 'security'), 'aria-label="Disconnect: GitHub"');
    t.match(await text(browser, 'sessions'), 'Sign out all other sessions');

    const removed = await browser.submit(`${pagesUrl}/security`, {}, { target: 'identity-remove' });
    t.equal(removed.headers.get('location'), '/pages/security?saved=identity');
    await browser.submit(`${pagesUrl}/sessions`, {}, { target: 'session-end' });
    const { status } = await browser.submit(
      `${pagesUrl}/sessions`,
      { session_id: 'not-an-id' },
      { target: 'session-end' },
    );
    t.equal(status, 404);
  });

  await t.test('a person signs up, confirms the address, signs in and deletes the account', async (t) => {
    const browser = new Browser(hosts);
    const submit = (name: string, fields: Record<string, string>) =>
      browser.submit(`${pagesUrl}/${name}`, fields, { target: name });
    t.match(await (await submit('sign-up', { ...ada, password: 'short' })).text(), 'At least 6 characters.');
    const sent = await submit('sign-up', { ...ada, name: 'Ada' });
    t.equal(sent.headers.get('location'), '/pages/sign-up?sent=true');
    const signIn = { identifier: ada.email, password: ada.password };
    t.match(await (await submit('sign-in', signIn)).text(), 'Your email address is not confirmed yet.');

    const link = linkIn(await smtp.mailTo(ada.email)).href;
    const confirmed = await browser.visit(link, `${pagesUrl}/sign-in`);
    t.match(await (await browser.open(confirmed.href)).text(), 'Your email address is confirmed.');
    t.equal((await submit('sign-in', signIn)).headers.get('location'), '/pages/account');
    t.match(await text(browser, 'account'), 'name="full_name" type="text" autocomplete="name" value="Ada"');

    const deleted = await submit('delete', {});
    t.equal(deleted.headers.get('location'), '/pages/sign-in?deleted=true');
    t.match(await text(browser, 'sign-in?deleted=true'), 'Your account is deleted.');
    t.match(await (await submit('sign-in', signIn)).text(), 'Email or password is not correct.');
  });

  /** Asks for a code on the page, and returns the page to enter it. */
  async function requestCode(browser: Browser, identifier: string, query = ''): Promise<URL> {
    const asked = await browser.submit(`${pagesUrl}/code${query}`, { identifier }, { target: 'code' });
    return new URL(asked.headers.get('location') ?? '', apiUrl);
  }

  /** Enters a code, and returns where it leads. */
  async function enterCode(browser: Browser, page: URL, code: string): Promise<string> {
    const entered = await browser.submit(page.href, { code }, { target: 'code-verify' });
    return entered.headers.get('location') ?? entered.text();
  }

  await t.test('a code by mail signs in, and its link does in the same browser', async (t) => {
    const email = 'code@pages.example';
    const browser = new Browser(hosts);
    t.match(await text(browser, 'sign-in'), 'href="/pages/code">Sign in with a code');
    const page = await requestCode(browser, email);
    t.equal(page.search, '?sent=email');
    const mail = await smtp.mailTo(email);
    const wrong = await enterCode(browser, page, '000000');
    t.match(wrong, '<a href="#code">The code is not correct, or has expired.</a>');
    t.match(wrong, `name="identifier" value="${email}"`, 'the form can be sent again');
    const target = await requestCode(browser, email);
    t.equal(await enterCode(browser, target, codeIn(mail)), '/pages/account');

    server.clock.advance(61_000);
    const other = new Browser(hosts);
    await requestCode(other, email);
    const link = linkIn(await smtp.mailTo(email, 2)).href;
    const back = await other.visit(link, `${pagesUrl}/continue`);
    t.match(await (await new Browser(hosts).open(back.href)).text(), 'This link is not complete');
    await other.visit(back.href, `${pagesUrl}/account`);
  });

  await t.test('a code by text message hands a session over to an app', async (t) => {
    const browser = new Browser(hosts);
    const { verifier, challenge } = pkce;
    const query = `?redirect_to=${encodeURIComponent(app)}&code_challenge=${challenge}&code_challenge_method=s256`;
    const page = await requestCode(browser, '+15005550001', query);
    t.equal(page.searchParams.get('sent'), 'phone');
    const location = await enterCode(browser, page, sms.lastCode());
    t.ok(location.startsWith(`${app}?code=`), location);
    const body = { auth_code: redirectParameter(location, 'code'), code_verifier: verifier };
    const { body: session } = await server.call('POST', '/token?grant_type=pkce', { body });
    t.match(session, { user: { phone: '15005550001' } });
  });

  await t.test('providers of administrators have buttons while they are enabled', async (t) => {
    const button = 'href="/pages/provider?provider=custom%3Aforum">Continue with Our &lt;forum&gt;</a>';
    await addProvider(server, { name: 'Our <forum>' });
    for (const name of ['sign-in', 'sign-up']) t.match(await text(new Browser(hosts), name), button);
    const started = await new Browser(hosts).open(`${pagesUrl}/provider?provider=custom:forum`);
    t.match(started.headers.get('location'), /^https:\/\/forum\.example\/authorize\?/);
    const path = '/admin/custom-providers/custom:forum';
    await server.call('PUT', path, { token: adminToken(), body: { enabled: false } });
    t.notMatch(await text(new Browser(hosts), 'sign-in'), 'forum');
  });

  await t.test('a passkey signs in, and only its own challenge', async (t) => {
    const email = 'key@pages.example';
    await addUser(email);
    const signIn = { body: { email, password: ada.password } };
    const { accessToken: token } = signedIn(await server.call('POST', '/token?grant_type=password', signIn));
    const authenticator = new Authenticator();
    const place = { origin: apiUrl, rpId: 'localhost' };
    const started = await server.call('POST', '/passkeys/registration/options', { token });
    const { challenge_id, options } = started.body as {
      challenge_id: string;
      options: { challenge: string };
    };
    const credential = authenticator.create(options, place);
    await server.call('POST', '/passkeys/registration/verify', { token, body: { challenge_id, credential } });

    const browser = new Browser(hosts);
    /** Answers a challenge of the page, and returns the response. */
    async function answer(more: { readonly userHandle?: string } = {}): Promise<Response> {
      const asked = await browser.submit(`${pagesUrl}/sign-in`, {}, { target: 'passkey' });
      t.match(asked.headers.get('content-security-policy'), /script-src 'sha256-[^']+'; form-action 'self';/);
      const page = await asked.text();
      const [, json = ''] = /name="options" value="([^"]+)"/.exec(page) ?? [];
      const [, id = ''] = /name="challenge_id" value="([^"]+)"/.exec(page) ?? [];
      const [, formToken = ''] = /name="form_token" value="([^"]+)"/.exec(page) ?? [];
      const shown = authenticator.get(JSON.parse(json.replaceAll('&quot;', '"')), { ...place, ...more });
      const fields = { form_token: formToken, challenge_id: id, credential: JSON.stringify(shown) };
      return browser.open(`${pagesUrl}/passkey-verify`, new URLSearchParams(fields));
    }
    const refused = await answer({ userHandle: 'of another user' });
    t.match(await refused.text(), 'The passkey was not accepted.');
    t.equal((await answer()).headers.get('location'), '/pages/account');
  });

  await t.test('a second app gets a session without a form, as old as the first one', async (t) => {
    const browser = new Browser(hosts);
    await addUser('sso@pages.example');
    const first = `${pagesUrl}/sign-in?redirect_to=${encodeURIComponent(app)}`;
    const handed = await signIn(browser, first, 'sso@pages.example');
    const tokens = new URLSearchParams(new URL(handed.headers.get('location') ?? '').hash.slice(1));
    server.clock.advance(60_000);

    const { verifier, challenge } = pkce;
    const second = `${first}&code_challenge=${challenge}&code_challenge_method=s256`;
    const location = (await browser.open(second)).headers.get('location') ?? '';
    t.ok(location.startsWith(`${app}?code=`), location);
    const body = { auth_code: redirectParameter(location, 'code'), code_verifier: verifier };
    const session = await server.call('POST', '/token?grant_type=pkce', { body });
    const [one, other] = [tokens.get('access_token'), session.body.access_token].map((token) =>
      decodeJwt(String(token)),
    );
    t.not(one?.session_id, other?.session_id);
    t.same(other?.amr, one?.amr, 'the authentication is not newer');
    for (const token of [tokens.get('refresh_token'), session.body.refresh_token]) {
      const refresh = { body: { refresh_token: token } };
      t.equal((await server.call('POST', '/token?grant_type=refresh_token', refresh)).status, 200);
    }

    const asked = await (await browser.open(`${first}&prompt=login`)).text();
    t.match(asked, 'name="password"');
    t.match(await (await browser.open(`${first}&login_hint=eve@pages.example`)).text(), 'name="password"');
    await server.call('POST', '/logout', { token: String(session.body.access_token) });
    t.match(await (await browser.open(second)).text(), 'name="password"', 'signed out everywhere');
  });

  await t.test('an app that any program can pretend to be gets no session without a click', async (t) => {
    const browser = new Browser(hosts);
    await addUser('local@pages.example');
    await signIn(browser, `${pagesUrl}/sign-in`, 'local@pages.example');
    const query = `code_challenge=${pkce.challenge}&code_challenge_method=s256`;
    for (const [target, place] of [
      ['http://127.0.0.1:5555/', '127.0.0.1:5555'],
      ['http://[::1]:5555/', '[::1]:5555'],
      ['com.example.app://callback', 'com.example.app:'],
    ] as const) {
      const app = `redirect_to=${encodeURIComponent(target)}&${query}`;
      for (const page of ['sign-in', 'second-factor']) {
        const { status, headers } = await browser.open(`${pagesUrl}/${page}?${app}`);
        t.equal(status, 303);
        t.match(headers.get('location'), /^\/pages\/accounts\?/, `${page} for ${target}`);
      }
      const chooser = `${pagesUrl}/accounts?${app}`;
      const shown = await (await browser.open(chooser)).text();
      t.match(shown, `You return to ${place}.`);
      t.match(shown, 'Continue only if you have started the sign-in yourself.');
      const used = await browser.submit(chooser, {}, { target: 'account-use' });
      t.ok(used.headers.get('location')?.startsWith(`${target}?code=`), target);
    }
    const local = encodeURIComponent('http://127.0.0.1:5555/');
    const start = `${pagesUrl}/provider?provider=google&redirect_to=${local}`;
    await new Browser(hosts).visit(start, `${pagesUrl}/accounts`);
  });

  await t.test('sessions without a form are limited by client', async (t) => {
    const browser = new Browser(hosts);
    await addUser('often@pages.example');
    await signIn(browser, `${pagesUrl}/sign-in`, 'often@pages.example');
    const url = `${pagesUrl}/sign-in?redirect_to=${encodeURIComponent(app)}`;
    const open = (client: string) => browser.open(url, undefined, { 'x-client': client });
    for (let count = 0; count < 50; count++) t.equal((await open('192.0.2.1')).status, 303);
    const refused = await open('192.0.2.1');
    t.equal(refused.status, 429);
    t.ok(refused.headers.get('retry-after'));
    t.equal((await open('192.0.2.2')).status, 303);
  });

  await t.test('signing in again ends the earlier session of the browser', async (t) => {
    const browser = new Browser(hosts);
    await addUser('again@pages.example');
    await signIn(browser, `${pagesUrl}/sign-in`, 'again@pages.example');
    const earlier = new Browser(hosts);
    for (const cookie of browser.cookies(apiUrl)) earlier.setCookie(apiUrl, cookie);
    await signIn(browser, `${pagesUrl}/sign-in?again=true`, 'again@pages.example');
    t.match(await text(browser, 'account'), 'again@pages.example');
    t.match((await earlier.open(`${pagesUrl}/account`)).headers.get('location'), '/pages/sign-in');
  });

  await t.test('a browser has several accounts, and signs one of them out', async (t) => {
    const browser = new Browser(hosts);
    for (const name of ['one', 'two']) {
      const identifier = `${name}@pages.example`;
      await addUser(identifier);
      await signIn(browser, `${pagesUrl}/sign-in?other=true`, identifier);
    }
    const url = `${pagesUrl}/sign-in?redirect_to=${encodeURIComponent(app)}`;
    const asked = new URL((await browser.open(url)).headers.get('location') ?? '', apiUrl);
    t.equal(asked.pathname, '/pages/accounts');
    /** The id of the session of an account on the page. */
    async function findSession(name: string): Promise<string> {
      const page = await (await browser.open(asked.href)).text();
      const item = page.split('<li>').find((part) => part.includes(`Continue as ${name}@pages.example`));
      return /name="session_id" value="([^"]+)"/.exec(item ?? '')?.[1] ?? '';
    }
    for (const name of ['one', 'two', 'one']) {
      const session_id = await findSession(name);
      const used = await browser.submit(asked.href, { session_id }, { target: 'account-use' });
      const tokens = new URLSearchParams(new URL(used.headers.get('location') ?? '').hash.slice(1));
      t.match(decodeJwt(tokens.get('access_token') ?? ''), { email: `${name}@pages.example` });
    }
    const unknown = { session_id: crypto.randomUUID() };
    const refused = await browser.submit(asked.href, unknown, { target: 'account-use' });
    t.match(refused.headers.get('location'), /^\/pages\/accounts\?/);

    const one = await findSession('one');
    await browser.submit(asked.href, { session_id: one }, { target: 'account-end' });
    t.equal(await findSession('one'), '');
    const two = await findSession('two');
    await browser.submit(asked.href, { session_id: two }, { target: 'account-use' });
    t.match(await text(browser, 'account'), 'two@pages.example');
    await browser.submit(asked.href, { session_id: two }, { target: 'account-end' });
    const empty = await browser.open(asked.href);
    t.match(empty.headers.get('location'), /^\/pages\/sign-in\?other=true/);
  });

  await t.test('an unmodified client library signs in with the provider pages', async (t) => {
    await addUser('library@pages.example');
    const provider = 'pages' as Provider; // the type of the library lists vendors only
    for (const flowType of ['pkce', 'implicit'] as const) {
      const client = new AuthClient({
        url: apiUrl,
        flowType,
        autoRefreshToken: false,
        fetch: (input, init) => fetch(String(input).replace(apiUrl, server.url), init),
      });
      const options = { redirectTo: app, skipBrowserRedirect: true, queryParams: { ui_locales: 'de' } };
      const { data } = await client.signInWithOAuth({ provider, options });
      const browser = new Browser(hosts);
      const started = await browser.open(data.url ?? '');
      t.equal(started.status, 302);
      const page = new URL(started.headers.get('location') ?? '');
      t.equal(page.pathname, '/pages/sign-in');
      t.match(await (await browser.open(page.href)).text(), '<html lang="de">');
      const handed = await signIn(browser, page.href, 'library@pages.example');
      const target = new URL(handed.headers.get('location') ?? '');
      t.ok(target.href.startsWith(app));
      const tokens = Object.fromEntries(new URLSearchParams(target.hash.slice(1)));
      const { access_token = '', refresh_token = '' } = tokens;
      const { data: result } =
        flowType === 'pkce'
          ? await client.exchangeCodeForSession(target.searchParams.get('code') ?? '')
          : await client.setSession({ access_token, refresh_token });
      t.match(result.user, { email: 'library@pages.example' }, flowType);
    }
    const elsewhere = `${apiUrl}/authorize?provider=pages&redirect_to=https://evil.example/`;
    const refused = new URL((await new Browser(hosts).open(elsewhere)).headers.get('location') ?? '');
    t.equal(refused.searchParams.get('redirect_to'), 'https://example.com', 'as for other providers');
    const invalid = await server.call('GET', '/authorize?provider=pages&code_challenge=short');
    t.match(invalid, { status: 400, body: { error_code: 'validation_failed' } });
  });
});

t.test('the page of codes does not disclose who has an account', async (t) => {
  const { server, smtp } = await startMailingServer(t, { PAGES_ENABLED: 'true', DISABLE_SIGNUP: 'true' });
  const body = { email: ada.email, email_confirm: true };
  await server.call('POST', '/admin/users', { token: adminToken(), body });
  for (const email of [ada.email, ada.email, 'eve@pages.example', 'eve@pages.example']) {
    const browser = new Browser({ [apiUrl]: server.url });
    const asked = await browser.submit(`${pagesUrl}/code`, { identifier: email }, { target: 'code' });
    t.equal(asked.status, 303);
    const page = new URL(asked.headers.get('location') ?? '', apiUrl);
    t.match(await (await browser.open(page.href)).text(), 'If you can sign in with this address');
    const wrong = await browser.submit(`${pagesUrl}/code`, { identifier: 'no address' }, { target: 'code' });
    t.equal(wrong.status, 400);
  }
  t.equal(smtp.mails().length, 1);
});
