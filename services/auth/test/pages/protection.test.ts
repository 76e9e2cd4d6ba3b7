import { createHash } from 'node:crypto';
import { startJsonServer } from '@tollgate/testkit/echo';
import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { pageLanguages } from '../../src/pages/texts/texts.ts';
import { signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import { codeIn, startMailingServer } from '../helpers/mail-server.ts';
import { rawRequest } from '../helpers/raw-request.ts';
import { findUnreadableRows } from '../helpers/readable-rows.ts';

const apiUrl = 'https://auth.example.com/auth/v1';
const pagesUrl = `${apiUrl}/pages`;
const app = 'https://example.com/welcome?from=pages';
const ada = { identifier: 'ada@example.com', password: 'correct horse' };

const server = await startAuthServer(t, {
  PAGES_ENABLED: 'true',
  API_EXTERNAL_URL: apiUrl,
  RATE_LIMIT_HEADER: 'x-client',
  RATE_LIMIT_OTP: '12',
  MAILER_LANGUAGES: 'en,de',
  MFA_PHONE_ENROLL_ENABLED: 'true',
  MFA_PHONE_VERIFY_ENABLED: 'true',
  SMS_TEST_OTP: '4915112345678:123456',
});
await signUp(server);

/** A gateway would remove the prefix. */
function browse(): Browser {
  return new Browser({ 'https://auth.example.com': server.url }, (path) => path.replace(/^\/auth\/v1/, ''));
}

async function signIn(browser = browse()): Promise<Browser> {
  const response = await browser.submit(`${pagesUrl}/sign-in`, ada, { target: 'sign-in' });
  if (response.status !== 303) throw new Error(`${response.status} ${await response.text()}`);
  return browser;
}

const sessionCookie = '__Host-tollgate-session';

t.test('every page has the headers, a language, a title and one heading', async (t) => {
  const browser = await signIn();
  for (const name of ['sign-in', 'sign-up', 'recovery', 'account', 'password', 'factor', 'delete']) {
    const by = name.startsWith('sign') ? browse() : browser;
    const response = await by.open(`${pagesUrl}/${name}`);
    const page = await response.text();
    t.equal(response.status, 200, name);
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy':
        "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': /camera=\(\), .*usb=\(\)/,
      'strict-transport-security': 'max-age=31536000',
    });
    t.equal(response.headers.get('access-control-allow-origin'), null);
    t.match(page, /<html lang="en">/);
    t.match(page, /<title>[^<]+ · example\.com<\/title>/);
    t.equal(page.match(/<h1>/g)?.length, 1);
    t.notMatch(page, /<script|<style|\sstyle=|\son\w+=/);
  }
});

t.test('errors of a navigation are a page, and those of scripts are JSON', async (t) => {
  const hanging = await startWebServer(t, () => undefined);
  const { url: base } = await startAuthServer(t, {
    EXTERNAL_TWITTER_ENABLED: 'true',
    EXTERNAL_TWITTER_CLIENT_ID: 'id',
    EXTERNAL_TWITTER_SECRET: 'secret',
    EXTERNAL_TWITTER_URL: `http://127.0.0.1:${hanging.port}`,
    API_MAX_REQUEST_DURATION: '1s',
  });
  const accept = ['accept', 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8'];
  for (const [path, status] of [
    ['/nowhere', 404],
    ['/authorize?provider=unknown', 400],
    ['/authorize?provider=twitter', 504],
    ['/verify?type=unknown', 400],
  ] as const) {
    const page = await rawRequest(base, path, { headers: [...accept, 'sec-fetch-mode', 'navigate'] });
    t.equal(page.status, status, path);
    t.match(page.headers['content-type'], 'text/html', path);
    t.match(page.text, '<h1>', path);
    const json = await rawRequest(base, path, { headers: [...accept, 'sec-fetch-mode', 'cors'] });
    t.match(json.headers['content-type'], 'application/json', path);
  }
  t.equal(hanging.requests.length, 2);
});

t.test('pages are in the language of the browser, if the settings list it', async (t) => {
  const open = async (language: string) => {
    const headers = { 'accept-language': language };
    return (await browse().open(`${pagesUrl}/recovery`, undefined, headers)).text();
  };
  const german = await open('fr-CH, de;q=0.9');
  t.match(german, '<html lang="de">');
  t.match(german, `<h1>${pageLanguages.de?.forgotPassword}</h1>`);
  const english = await open('ja, es;q=0.1');
  t.match(english, '<html lang="en">');
  t.match(english, '<h1>Forgot your password?</h1>');
  const titles = Object.values(pageLanguages).map(({ forgotPassword }) => forgotPassword);
  t.equal(new Set(titles).size, 6, 'no language is a copy');
});

t.test('style sheet is cached under the version of its content', async (t) => {
  const page = await (await browse().open(`${pagesUrl}/sign-in`)).text();
  const [, href = ''] = /<link rel="stylesheet" href="([^"]+)">/.exec(page) ?? [];
  t.match(href, /^\/auth\/v1\/pages\/style\.css\?v=[0-9a-f]{8}$/);
  const style = await browse().open(`https://auth.example.com${href}`);
  t.equal(style.status, 200);
  t.match(style.headers.get('content-type'), 'text/css');
  t.match(style.headers.get('cache-control'), 'public');
});

t.test('cookies are host-only, secure and hidden from scripts', async (t) => {
  const browser = browse();
  const page = await browser.open(`${pagesUrl}/sign-in`);
  t.match(page.headers.getSetCookie(), [
    /^__Host-tollgate-browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  ]);
  const response = await browser.submit(`${pagesUrl}/sign-in`, ada);
  t.equal(response.headers.get('location'), '/auth/v1/pages/account');
  t.match(response.headers.getSetCookie(), [
    /^__Host-tollgate-session=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  ]);
});

t.test('forms without the token of the browser and session are rejected', async (t) => {
  const secret = '"><script>alert(1)</script>';
  const token = async (browser: Browser, page: string): Promise<string> => {
    const text = await (await browser.open(`${pagesUrl}/${page}`)).text();
    return /name="form_token" value="([^"]+)"/.exec(text)?.[1] ?? '';
  };
  const other = await token(browse(), 'sign-in');
  const browser = browse();
  const before = await token(browser, 'sign-in');
  for (const [formToken, headers] of [
    ['', {}],
    ['x', {}],
    [other, {}],
    [before, { 'sec-fetch-site': 'cross-site' }],
    [before, { 'sec-fetch-site': 'same-site' }],
    [before, { 'sec-fetch-site': 'none' }],
    [before, { origin: 'https://evil.test' }],
    [before, { origin: 'null' }],
  ] as const) {
    const form = { ...ada, identifier: secret, form_token: formToken };
    const response = await browser.submit(`${pagesUrl}/sign-in`, form, { headers });
    t.equal(response.status, 403, `${formToken} ${JSON.stringify(headers)}`);
    t.notMatch(await response.text(), 'alert(1)', 'fields of another site are not shown');
  }
  await signIn(browser);
  t.not(await token(browser, 'account'), before);
  const old = await browser.submit(`${pagesUrl}/account`, { form_token: before }, { target: 'sign-out' });
  t.equal(old.status, 403, 'a token of the time before the sign-in');
  t.ok(browser.cookies('https://auth.example.com').has(sessionCookie));
});

t.test('identities cannot be linked by a link of another site', async (t) => {
  const browser = await signIn();
  const response = await browser.open(`${pagesUrl}/provider?provider=google&link=x`);
  t.equal(response.status, 400);
});

t.test('redirect_to is checked; a rejected one leads to the account page', async (t) => {
  for (const target of [
    'https://evil.test/',
    '//evil.test',
    '/\\evil.test',
    'javascript:alert(1)',
    'https://example.com@evil.test/',
    'https://auth.example.com/auth/v1/pages/../../evil',
    `${pagesUrl}/account`,
  ]) {
    const url = `${pagesUrl}/sign-in?redirect_to=${encodeURIComponent(target)}`;
    const page = await browse().open(url);
    t.notMatch(page.headers.get('content-security-policy'), /form-action 'self' \w/, target);
    const response = await browse().submit(url, ada);
    t.equal(response.headers.get('location'), '/auth/v1/pages/account', target);
  }
});

t.test('an app gets the tokens in the fragment, and the browser keeps a session of its own', async (t) => {
  const browser = browse();
  const url = `${pagesUrl}/sign-in?redirect_to=${encodeURIComponent(app)}`;
  t.match((await browser.open(url)).headers.get('content-security-policy'), "form-action 'self' https:;");
  const response = await browser.submit(url, ada);
  t.equal(response.status, 303);
  const target = new URL(response.headers.get('location') ?? '');
  t.equal(target.href.split('#', 1)[0], app);
  const { access_token: token = '', ...rest } = Object.fromEntries(new URLSearchParams(target.hash.slice(1)));
  t.match(rest, { token_type: 'bearer', refresh_token: /./, sb: '' });
  t.equal((await server.call('GET', '/user', { token })).status, 200);
  const kept = browser.cookies('https://auth.example.com').get(sessionCookie);
  t.ok(kept);
  t.not(kept, rest.refresh_token);
});

t.test('an app with PKCE gets a code for the session', async (t) => {
  const verifier = 'v'.repeat(43);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const query = new URLSearchParams({
    redirect_to: app,
    code_challenge: challenge,
    code_challenge_method: 's256',
  });
  const browser = await signIn();
  const response = await browser.open(`${pagesUrl}/sign-in?${query}`);
  const target = new URL(response.headers.get('location') ?? '');
  t.equal(target.origin, 'https://example.com');
  t.same(await findUnreadableRows(server.databaseUrl, 'own'), [], 'also a code that is not spent');
  const body = { auth_code: target.searchParams.get('code'), code_verifier: verifier };
  const exchange = () => server.call('POST', '/token?grant_type=pkce', { body });
  const session = await exchange();
  t.equal(session.status, 200);
  t.equal((await exchange()).status, 404, 'once');
  const refresh = { body: { refresh_token: session.body.refresh_token } };
  t.equal((await server.call('POST', '/token?grant_type=refresh_token', refresh)).status, 200);

  const invalid = await browser.open(`${pagesUrl}/sign-in?code_challenge=short&code_challenge_method=s256`);
  t.equal(invalid.status, 400);
  t.match(invalid.headers.get('content-type'), 'text/html');
});

t.test('values are escaped wherever they are shown', async (t) => {
  const attack = `"'><img src=x onerror=alert(1)>{{7*7}}`;
  const shown = async (browser: Browser, page: string, fields: Record<string, string>, target = page) => {
    const response = await browser.submit(`${pagesUrl}/${page}`, fields, { target });
    t.equal(response.status >= 400 && response.status < 500, true, `${page}: ${response.status}`);
    const text = await response.text();
    t.notMatch(text, '<img', page);
    t.match(text, '&gt;&lt;img src=x', page);
  };
  await shown(browse(), 'sign-in', { identifier: attack, password: 'x' });
  await shown(browse(), 'sign-up', { email: attack, password: 'correct horse', name: attack });
  await shown(browse(), 'recovery', { email: attack });
  const browser = await signIn();
  await shown(browser, 'account', { email: attack }, 'email');
  await shown(browser, 'account', { full_name: attack.repeat(200) }, 'profile');
  await shown(browser, 'factor', { friendly_name: attack.repeat(10) });
  await browser.submit(`${pagesUrl}/account`, { full_name: attack }, { target: 'profile' });
  const account = await (await browser.open(`${pagesUrl}/account`)).text();
  t.match(account, `value="&quot;&#39;&gt;&lt;img src=x onerror=alert(1)&gt;{{7*7}}"`);
  for (const query of [
    'error_code',
    'saved',
    'message',
    'redirect_to',
    'code_challenge',
    'code',
    'provider',
  ]) {
    for (const name of ['sign-in', 'account', 'password', 'continue', 'provider', 'sign-up']) {
      const url = `${pagesUrl}/${name}?${query}=${encodeURIComponent(attack)}`;
      t.notMatch(await (await browser.open(url)).text(), '<img', url);
    }
  }
});

t.test('tabs that refresh the session at the same time stay signed in', async (t) => {
  const browser = await signIn();
  const first = browser.cookies('https://auth.example.com').get(sessionCookie);
  t.equal((await browser.open(`${pagesUrl}/account`)).status, 200);
  t.equal(browser.cookies('https://auth.example.com').get(sessionCookie), first, 'not yet');
  server.clock.advance(3600_000);
  const tabs = await Promise.all([1, 2, 3].map(() => browser.open(`${pagesUrl}/account`)));
  t.same(
    tabs.map(({ status }) => status),
    [200, 200, 200],
  );
  const second = browser.cookies('https://auth.example.com').get(sessionCookie);
  t.not(second, first, 'rotated');
  server.clock.advance(3600_000);
  t.equal((await browser.open(`${pagesUrl}/account`)).status, 200);

  await browser.submit(`${pagesUrl}/account`, {}, { target: 'sign-out' });
  const headers = { cookie: `${sessionCookie}=${second}` };
  const stolen = await browser.open(`${pagesUrl}/account`, undefined, headers);
  t.equal(stolen.headers.get('location'), '/auth/v1/pages/sign-in');
});

t.test('a hook that fails during a refresh does not end the session', async (t) => {
  const hook = await startHookServer(t);
  const hooked = await startAuthServer(t, {
    PAGES_ENABLED: 'true',
    ...hook.variables('CUSTOM_ACCESS_TOKEN'),
  });
  const echo = { status: 200 };
  hook.answer((event) => ({ ...echo, body: { claims: event.claims } }));
  await signUp(hooked);
  const browser = new Browser();
  const url = `${hooked.url}/pages`;
  await browser.submit(`${url}/sign-in`, ada);
  hooked.clock.advance(3600_000);
  hook.answer({ status: 400, body: { error: { http_code: 403, message: 'not now' } } });
  t.notOk((await browser.open(`${url}/account`)).ok);
  hook.answer((event) => ({ ...echo, body: { claims: event.claims } }));
  t.equal((await browser.open(`${url}/account`)).status, 200, 'still signed in');
});

t.test('an email address that did not change is saved without a mail', async (t) => {
  const browser = await signIn();
  const response = await browser.submit(
    `${pagesUrl}/account`,
    { email: ada.identifier },
    { target: 'email' },
  );
  t.match(response.headers.get('location'), /account\?.*profile/);
});

t.test('wrong passwords and unknown users get the same page', async (t) => {
  const attempt = async (identifier: string) => {
    const fields = { identifier, password: 'wrong password' };
    const response = await browse().submit(`${pagesUrl}/sign-in`, fields);
    const text = (await response.text()).replaceAll(/value="[^"]*"/g, '');
    return { status: response.status, text };
  };
  const wrong = await attempt('ada@example.com');
  t.equal(wrong.status, 400);
  t.match(wrong.text, '<title>Error: Sign in');
  t.match(wrong.text, /role="alert" tabindex="-1" autofocus/);
  t.same(await attempt('unknown@example.com'), wrong);
});

t.test('limits of the API apply, and the form is shown again', async (t) => {
  const send = async () => {
    const headers = { 'x-client': 'one' };
    return browse().submit(`${pagesUrl}/recovery`, { email: 'not an address' }, { headers });
  };
  for (let count = 0; count < 12; count++) t.equal((await send()).status, 400);
  const limited = await send();
  t.equal(limited.status, 429);
  t.match(limited.headers.get('retry-after'), /^\d+$/);
  const page = await limited.text();
  t.match(page, 'Too many attempts');
  t.match(page, '<form method="post"');
});

t.test('a phone is set up as second factor, and its code is asked for', async (t) => {
  await signUp(server, { email: 'eve@example.com' });
  const eve = { ...ada, identifier: 'eve@example.com' };
  const browser = browse();
  await browser.submit(`${pagesUrl}/sign-in`, eve);
  const setup = await browser.submit(`${pagesUrl}/factor?type=phone`, { phone: '+49 151 12345678' });
  t.equal(setup.status, 200);
  const page = await setup.text();
  const read = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)?.[1] ?? '';
  const form = {
    form_token: read('form_token'),
    factor_id: read('factor_id'),
    challenge_id: read('challenge_id'),
  };
  const confirm = (code: string) =>
    browser.open(`${pagesUrl}/factor-code?type=phone`, new URLSearchParams({ ...form, code }));
  const wrong = await confirm('654321');
  t.equal(wrong.status, 422);
  t.match(await wrong.text(), form.challenge_id);
  t.equal((await confirm('123456')).headers.get('location'), '/auth/v1/pages/security?saved=factor');

  const other = browse();
  server.clock.advance(60_000);
  const password = await other.submit(`${pagesUrl}/sign-in`, eve);
  t.equal(password.headers.get('location'), '/auth/v1/pages/second-factor');
  for (const name of ['account', 'factor', 'delete'])
    t.equal(
      (await other.open(`${pagesUrl}/${name}`)).headers.get('location'),
      '/auth/v1/pages/second-factor',
    );
  const verifier = 'w'.repeat(43);
  const query = new URLSearchParams({
    redirect_to: app,
    code_challenge: verifier,
    code_challenge_method: 'plain',
  });
  const sent = await other.submit(`${pagesUrl}/second-factor?${query}`, {});
  const code = new URL(sent.headers.get('location') ?? '', apiUrl).href;
  server.clock.advance(1000);
  const verified = await other.submit(code, { code: '123 456' });
  const target = new URL(verified.headers.get('location') ?? '');
  const body = { auth_code: target.searchParams.get('code'), code_verifier: verifier };
  const session = signedIn(await server.call('POST', '/token?grant_type=pkce', { body }));
  const claims = JSON.parse(Buffer.from(session.accessToken.split('.')[1] ?? '', 'base64url').toString());
  t.match(claims, { aal: 'aal2', amr: [{ method: 'mfa/phone' }, { method: 'password' }] });
});

t.test('CAPTCHA and a code before the password change apply as in the API', async (t) => {
  const vendor = await startJsonServer(({ body }) => ({
    status: 200,
    body: { success: new URLSearchParams(body).get('response') === 'solved' },
  }));
  t.teardown(() => vendor.stop());
  const hardened = await startMailingServer(t, {
    PAGES_ENABLED: 'true',
    MAILER_AUTOCONFIRM: 'true',
    SECURITY_CAPTCHA_ENABLED: 'true',
    SECURITY_CAPTCHA_PROVIDER: 'turnstile',
    SECURITY_CAPTCHA_SECRET: 'secret',
    SECURITY_CAPTCHA_URL: `${vendor.url}/siteverify`,
    PAGES_CAPTCHA_SITE_KEY: 'site-key',
    SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
    SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: '2',
    SESSIONS_SINGLE_PER_USER: 'true',
  });
  const url = `${hardened.server.url}/pages`;
  const browser = new Browser();
  const page = await browser.open(`${url}/sign-up`);
  const host = 'https://challenges.cloudflare.com';
  t.equal(
    page.headers.get('content-security-policy'),
    `default-src 'none'; style-src 'self' ${host}; script-src ${host}; frame-src ${host}; connect-src ${host}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  );
  t.match(await page.text(), '<div class="cf-turnstile" data-sitekey="site-key"></div>');
  const fields = { email: 'ada@example.com', password: ada.password };
  const unsolved = await browser.submit(`${url}/sign-up`, fields);
  t.equal(unsolved.status, 400);
  t.match(await unsolved.text(), 'Please confirm that you are human.');
  const request = { identifier: 'code@example.com' };
  t.equal((await browser.submit(`${url}/code`, request, { target: 'code' })).status, 400);
  const sent = { ...request, 'cf-turnstile-response': 'solved' };
  t.equal((await browser.submit(`${url}/code`, sent, { target: 'code' })).status, 303);
  const solved = { ...fields, 'cf-turnstile-response': 'solved' };
  t.equal((await browser.submit(`${url}/sign-up`, solved)).headers.get('location'), '/pages/account');

  hardened.server.clock.advance(25 * 3600_000);
  const change = { password: 'battery staple' };
  const needed = await browser.submit(`${url}/password`, change, { target: 'password' });
  t.equal(needed.status, 400);
  t.match(await needed.text(), 'name="nonce"');
  const nonce = codeIn(await hardened.smtp.mailTo(fields.email));
  const wrong = await browser.submit(`${url}/password`, { ...change, nonce: '000000' });
  t.equal(wrong.status, 422);
  const saved = await browser.submit(`${url}/password`, { ...change, nonce });
  t.equal(saved.headers.get('location'), '/pages/security?saved=password');

  const verifier = 'x'.repeat(43);
  const query = new URLSearchParams({
    redirect_to: app,
    code_challenge: verifier,
    code_challenge_method: 'plain',
  });
  // A second session would end the one of the pages, which is handed over.
  const handed = await browser.open(`${url}/sign-in?${query}`);
  t.notOk(browser.cookies(hardened.server.url).has('tollgate-session'));
  const code = new URL(handed.headers.get('location') ?? '').searchParams.get('code');
  const post = (grant: string, body: object) =>
    hardened.server.call('POST', `/token?grant_type=${grant}`, { body });
  const session = signedIn(await post('pkce', { auth_code: code, code_verifier: verifier }));
  t.equal((await post('refresh_token', { refresh_token: session.refreshToken })).status, 200);
});

t.test('without the setting there are no pages', async (t) => {
  const plain = await startAuthServer(t, { API_EXTERNAL_URL: apiUrl });
  for (const name of ['sign-in', 'sign-up', 'account', 'continue'])
    t.equal((await plain.call('GET', `/pages/${name}`)).status, 404, name);
  const link = `/verify?type=magiclink&token=x&redirect_to=${apiUrl}/pages/account`;
  t.match((await plain.call('GET', link)).headers.get('location'), 'https://example.com/#error=');
  t.match((await server.call('GET', link)).headers.get('location'), `${apiUrl}/pages/account#error=`);
});

t.test('pages require https, a site key with CAPTCHA, and valid settings of the style', async (t) => {
  const problems = (variables: Record<string, string>) => {
    const read = readSettings({
      SVC_SITE_URL: 'https://example.com',
      API_EXTERNAL_URL: 'https://auth.example.com',
      DATABASE_URL: 'postgres://localhost/auth',
      SVC_DB_DRIVER: 'postgres',
      SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
      SVC_PAGES_ENABLED: 'true',
      ...variables,
    });
    return read.ok ? [] : read.problems.map(({ variable }) => variable);
  };
  t.same(problems({}), []);
  t.same(problems({ API_EXTERNAL_URL: 'http://localhost:9999' }), []);
  t.same(problems({ API_EXTERNAL_URL: 'http://auth.example.com' }), ['API_EXTERNAL_URL']);
  const captcha = { SVC_SECURITY_CAPTCHA_ENABLED: 'true', SVC_SECURITY_CAPTCHA_SECRET: 's' };
  t.same(problems(captcha), ['SVC_PAGES_CAPTCHA_SITE_KEY']);
  t.same(problems({ SVC_PAGES_COLOR: 'red;}' }), ['SVC_PAGES_COLOR']);
  t.same(problems({ SVC_PAGES_COLOR: '#FFD400', SVC_PAGES_COLOR_DARK: '#ffd400' }), ['SVC_PAGES_COLOR']);
  t.same(problems({ SVC_PAGES_COLOR_DARK: '#1d4ed8' }), ['SVC_PAGES_COLOR_DARK']);
  const logos = { SVC_PAGES_LOGO_URL: 'https://acme.example/a', SVC_PAGES_LOGO_FILE: '/a.svg' };
  t.same(problems(logos), ['SVC_PAGES_LOGO_FILE']);
  t.same(problems({ SVC_PAGES_LOGO_URL: 'javascript:alert(1)' }), ['SVC_PAGES_LOGO_URL']);
});
