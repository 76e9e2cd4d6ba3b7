// Browsers sign in at an application that has no code for it, behind Envoy.
import { awaitUntil } from '@tollgate/testkit/await-until';
import { textProxyIsMissing } from '@tollgate/testkit/text-proxies';
import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { AppBrowser, navigation } from '../helpers/app-browser.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz } from '../helpers/authz-client.ts';
import {
  apps,
  arrive,
  chromiumIsMissing,
  open,
  signInAs,
  startBrowser,
  submitForm,
} from '../helpers/browser-gateways.ts';
import {
  authorizeQuery,
  createApplication,
  oauthServer,
  redeem,
  redirectParameter,
  requestToken,
} from '../helpers/oauth-clients.ts';
import { startPlatform } from '../helpers/policy-platform.ts';
import { assertPromptRevocation } from '../helpers/replica-delay.ts';

const policy = `apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: app, namespace: shop }
spec:
  hosts: [app.example.com, "*.apps.example.com"]
  access: { browser: Redirect }
  rules:
    - { matches: [{ path: { value: /public } }], access: { type: Public } }
    - { matches: [{ path: { value: /tokens } }], access: { credentials: [User] } }
    - { matches: [{ path: { value: /secure } }], access: { browser: Redirect, assurance: AAL2 } }
    - { matches: [{ path: { value: /key } }], access: { browser: Redirect, assurance: AAL3 } }
  limits:
    - { name: per-user, by: [User], requests: 500, per: Year }
`;

t.setTimeout(300_000);
const apiUrl = 'https://auth.example.com';
const app = 'https://app.example.com';
const pages = { ...oauthServer, API_EXTERNAL_URL: apiUrl, PAGES_ENABLED: 'true' };
const { server, xds, limiter } = await startPlatform(t, policy, pages);
const platform = { EXT_AUTHZ_POLICY_SERVER: xds.address, EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address };
const user = await signUp(server);
/** Another replica. Over HTTP it takes the checks of Caddy and nginx. */
const replica = await startAuthServer(t, {
  ...{ ...platform, ...pages, DB_DATABASE_URL: server.databaseUrl },
  ...{ EXT_AUTHZ_HTTP_FORWARDED: 'true', EXT_AUTHZ_MAX_STALENESS: '1m' },
});

const gateway = { server, client: connectAuthz(t, server.extAuthz.grpc), apiUrl };
const callback = '/.tollgate/callback';
const visitor = new AppBrowser(gateway);
await awaitUntil(async () => (await visitor.check(`${app}/`)).httpStatus === 302, { what: 'the policy' });

t.test('a code is exchanged for a cookie of the host, which identifies the user there', async (t) => {
  const browser = new AppBrowser(gateway);
  const { outcome, headers = {}, setCookie } = await browser.signIn(`${app}/orders/1?page=2&a=%2F`);
  t.equal(outcome, '302 signed_in');
  t.match(headers, { location: `${app}/orders/1?page=2&a=%2F`, 'cache-control': 'no-store' });
  t.match(
    setCookie,
    /^__Host-tollgate-access=[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );

  const spoofed = { 'x-auth-user-id': 'root', x_auth_role: 'admin', 'x-user-id': 'root' };
  const own = await browser.check(`${app}/`, {
    ...spoofed,
    cookie: `a=1; ${browser.cookie('app.example.com')};b=2`,
  });
  t.match(own.set, { 'x-auth-user-id': user.userId, 'x-auth-aal': 'aal1', cookie: 'a=1;b=2' });
  for (const name of ['x_auth_role', 'x-user-id']) t.ok(own.remove?.includes(name), name);
  const alone = await browser.check(`${app}/`);
  t.ok(alone.remove?.includes('cookie'));
  const open = await browser.check(`${app}/public`);
  t.equal(open.outcome, '200');
  t.ok(open.remove?.includes('cookie'), 'of a public part, too');
  t.equal((await browser.check(`${app}/tokens`)).outcome, '401 no_authorization', 'a part without browsers');
  const other = await signUp(server, { email: 'ben@example.com' });
  const bearer = { cookie: browser.cookie('app.example.com'), authorization: `Bearer ${other.accessToken}` };
  const byToken = await browser.check(`${app}/`, bearer);
  t.match(byToken.set, { 'x-auth-user-id': other.userId }, 'a token comes first');
  t.ok(byToken.remove?.includes('cookie'));

  t.equal((await new AppBrowser(gateway).check(`${app}/`, {})).outcome, '401 no_authorization');
  const elsewhere = new AppBrowser(gateway);
  elsewhere.steal('one.apps.example.com', browser.cookie('app.example.com'));
  const foreign = await elsewhere.check('https://one.apps.example.com/', {});
  t.equal(foreign.outcome, '401 session_not_found', 'the cookie of another host');
  const hidden = { cookie: `a=1,${browser.cookie('app.example.com').replaceAll('; ', ',')}` };
  const planted = await new AppBrowser(gateway).check(`${app}/`, hidden);
  t.equal(planted.outcome, '401 no_authorization', 'a cookie in the value of another one');
});

t.test('a code is good once, for the browser that asked for it, at its host', async (t) => {
  const victim = new AppBrowser(gateway);
  await victim.signInToPages();
  const attacker = new AppBrowser(gateway);

  // The attacker lets the victim sign in for the browser of the attacker.
  const code = await victim.findCode(await attacker.begin(`${app}/`));
  t.equal((await victim.check(code)).outcome, '400 sign_in_failed', 'a browser that did not ask');
  t.equal((await attacker.check(code)).outcome, '400 sign_in_failed', 'the code is spent then');

  // The attacker makes the victim use the code of the attacker.
  const own = await victim.findCode(await victim.begin(`${app}/`));
  t.equal((await attacker.check(own)).outcome, '400 sign_in_failed');
  t.equal((await victim.check(own)).outcome, '400 sign_in_failed');

  let good = await victim.findCode(await victim.begin(`${app}/`));
  const moved = good.replace('app.example.com', 'one.apps.example.com');
  victim.steal('one.apps.example.com', victim.cookie('app.example.com'));
  t.equal((await victim.check(moved)).outcome, '400 sign_in_failed', 'another host');
  t.equal((await victim.check(good)).outcome, '400 sign_in_failed', 'the code is spent then');
  good = await victim.findCode(await victim.begin(`${app}/`));
  t.equal((await victim.check(good)).outcome, '302 signed_in');
  t.equal((await victim.check(good)).outcome, '400 sign_in_failed', 'once');

  const slow = new AppBrowser(gateway, victim);
  const late = await slow.findCode(await slow.begin(`${app}/x`));
  server.clock.advance(61_000);
  t.equal((await slow.check(late)).outcome, '400 sign_in_failed', 'late');
  t.equal((await victim.check(`${app}${callback}`)).outcome, '400 sign_in_failed', 'without parameters');

  const page = await slow.begin(`${app}/slow`);
  server.clock.advance(15 * 60_000);
  t.equal(await slow.findCode(page), `${app}/slow`, 'an address that has expired has no code');
});

t.test('no address leads to another host', async (t) => {
  const browser = new AppBrowser(gateway);
  await browser.signInToPages();
  for (const path of [
    '//evil.test/',
    '/%2F%2Fevil.test',
    '/@evil.test/',
    '/?next=https://evil.test',
    `/${'a'.repeat(2000)}`,
  ]) {
    const fresh = new AppBrowser(gateway, browser);
    const page = await fresh.check(`${app}${path}`);
    if (page.httpStatus === 400) continue;
    const url = await fresh.findCode(page.headers?.location ?? '');
    t.match(url, `${app}${callback}?`, path);
    t.match((await fresh.check(url)).headers?.location, new RegExp(`^${app}/`), path);
  }
  for (const host of [
    'app.example.com@evil.test',
    'evil.test',
    'app.example.com:1@evil.test',
    'evil.test?.apps.example.com',
    'evil.test%2F.apps.example.com',
    'evil.test\\.apps.example.com',
  ])
    t.not((await new AppBrowser(gateway).check(`https://${host}/`)).httpStatus, 302, host);
  const page = new URL(await new AppBrowser(gateway).begin(`${app}/`));
  const [payload = '', signature = ''] = page.searchParams.get('return_to')?.split('.') ?? [];
  const [, binding, expiry] = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const forged = Buffer.from(JSON.stringify(['https://evil.test/', binding, expiry])).toString('base64url');
  for (const text of [
    `${forged}.${signature}`,
    `${forged}.`,
    forged,
    'https://evil.test/',
    `${payload}.${signature}.x`,
  ]) {
    page.searchParams.set('return_to', text);
    const shown = await browser.pages.open(page.href);
    t.equal(shown.status, 200, text);
    t.equal(shown.headers.get('location'), null);
  }
});

t.test('requests that are no navigations get 401, and those of other sites 403', async (t) => {
  const browser = new AppBrowser(gateway);
  const fetched = { accept: '*/*', 'sec-fetch-mode': 'cors' };
  const html = { accept: 'text/html' };
  const requests: readonly [string, Readonly<Record<string, string>>, string?][] = [
    ['a fetch', fetched],
    ['a fetch for HTML', { ...html, 'sec-fetch-mode': 'cors' }],
    ['a WebSocket', { ...navigation, upgrade: 'websocket', connection: 'Upgrade' }],
    ['a form', navigation, 'POST'],
    ['no Accept', {}],
    ['an invalid token', { ...navigation, authorization: 'Bearer x' }],
  ];
  for (const [what, headers, method] of requests)
    t.match((await browser.check(`${app}/`, headers, method)).outcome, /^401 /, what);
  t.equal((await browser.check(`${app}/`, html)).outcome, '302 sign_in_required', 'an old browser');

  await browser.signIn(`${app}/`);
  const answers: readonly [string, Readonly<Record<string, string>>, string?][] = [
    ['200', { 'sec-fetch-site': 'same-origin' }],
    ['200', { 'sec-fetch-site': 'none' }],
    ['403 cross_site_request', { 'sec-fetch-site': 'cross-site' }],
    ['403 cross_site_request', { 'sec-fetch-site': 'same-site' }],
    ['403 cross_site_request', { 'sec-fetch-site': 'cross-site', origin: app }],
    ['403 cross_site_request', {}],
    ['200', { origin: app }],
    ['403 cross_site_request', { origin: 'https://evil.test' }],
    ['403 cross_site_request', { origin: 'null' }],
    ['403 cross_site_request', { origin: 'http://app.example.com' }],
    ['403 cross_site_request', { origin: `${app}:8443` }],
    ['403 cross_site_request', { origin: 'https://evil.test', upgrade: 'websocket' }, 'GET'],
    ['200', { origin: app, upgrade: 'websocket' }, 'GET'],
    ['403 cross_site_request', { origin: 'https://evil.test' }, 'CONNECT'],
    ['200', { 'sec-fetch-site': 'cross-site', ...navigation }, 'GET'],
  ];
  for (const [outcome, headers, method = 'POST'] of answers)
    t.equal((await browser.check(`${app}/`, headers, method)).outcome, outcome, JSON.stringify(headers));
});

t.test('the session ends at the gateway with that of the pages', async (t) => {
  const status = async (browser: AppBrowser) => (await browser.check(`${app}/`)).outcome;
  const signedIn = async () => {
    const browser = new AppBrowser(gateway);
    await browser.signIn(`${app}/`);
    t.equal(await status(browser), '200');
    return browser;
  };
  const [first, second] = [await signedIn(), await signedIn()];
  await first.pages.submit(`${apiUrl}/pages/account`, {}, { target: 'sign-out' });
  t.equal(await status(first), '302 sign_in_required');
  t.equal(await status(second), '200', 'another session');
  await server.call('POST', '/logout?scope=global', { token: user.accessToken });
  t.equal(await status(second), '302 sign_in_required');
  const third = await signedIn();
  await server.call('PUT', `/admin/users/${user.userId}`, {
    token: adminToken(),
    body: { ban_duration: '1h' },
  });
  t.equal(await status(third), '403 user_banned');
  await server.call('PUT', `/admin/users/${user.userId}`, {
    token: adminToken(),
    body: { ban_duration: 'none' },
  });
  t.equal(await status(third), '200');
});

t.test('a sign-out takes effect on another replica within 50 ms', async (t) => {
  replica.clock.advance(server.clock.nowMs() - replica.clock.nowMs());
  const other = new AppBrowser({ ...gateway, client: connectAuthz(t, replica.extAuthz.grpc) });
  await awaitUntil(async () => (await other.check(`${app}/`)).httpStatus === 302, { what: 'the policy' });
  const signOuts = {
    'at the application': (browser: AppBrowser) =>
      browser.check(`${app}/.tollgate/sign-out`, { origin: app }, 'POST'),
    'at the pages': ({ pages }: AppBrowser) =>
      pages.submit(`${apiUrl}/pages/account`, {}, { target: 'sign-out' }),
  };
  for (const [where, signOut] of Object.entries(signOuts))
    await t.test(where, (t) =>
      assertPromptRevocation(t, server.databaseUrl, async () => {
        const browser = new AppBrowser(gateway);
        await browser.signIn(`${app}/`);
        const cookie = browser.cookie('app.example.com');
        const isRevoked = async () =>
          (await other.check(`${app}/`, { ...navigation, cookie })).httpStatus === 302;
        return { id: user.userId, revoke: () => signOut(browser), isRevoked };
      }),
    );
});

t.test('a part that requires a second factor sends browsers to its page, and back', async (t) => {
  const browser = new AppBrowser(gateway);
  const { accessToken } = await signUp(server, { email: 'mia@example.com' });
  const credentials = { identifier: 'mia@example.com', password: 'correct horse' };
  await browser.pages.submit(`${apiUrl}/pages/sign-in`, credentials);
  await browser.check(await browser.findCode(await browser.begin(`${app}/`)));
  const { pages } = browser;
  const location = ({ headers }: Response) => new URL(headers.get('location') ?? '', apiUrl);
  const bearer = { ...navigation, authorization: `Bearer ${accessToken}` };
  for (const [path, headers] of [
    ['/secure', { accept: '*/*', 'sec-fetch-mode': 'cors' }],
    ['/secure', bearer],
    ['/key', navigation],
  ] as const)
    t.equal((await browser.check(`${app}${path}`, headers)).outcome, '401 insufficient_aal', path);

  // This user has no second factor yet.
  const setUp = location(await pages.open(await browser.begin(`${app}/secure?x=1`)));
  t.equal(setUp.pathname, '/pages/factor');
  const page = await (await pages.submit(setUp.href, {}, { target: 'factor' })).text();
  const [, secret = ''] = /<code>([A-Z2-7 ]+)</.exec(page) ?? [];
  const [, action = '', form = ''] =
    /<form[^>]* action="([^"]*factor-code[^"]*)"[^>]*>(.*?)<\/form>/s.exec(page) ?? [];
  const fields = new URLSearchParams();
  for (const [, name = '', value = ''] of form.matchAll(/name="(\w+)"[^>]* value="([^"]*)"/g))
    fields.set(name, value);
  const key = Secret.fromBase32(secret.replaceAll(' ', ''));
  fields.set('code', TOTP.generate({ secret: key, timestamp: server.clock.nowMs() }));
  const set = location(await pages.open(new URL(action.replaceAll('&amp;', '&'), apiUrl).href, fields));
  t.equal(set.pathname, '/pages/return');
  const { outcome, headers } = await browser.check(await browser.findCode(set.href));
  t.equal(outcome, '302 signed_in');
  t.match(headers, { location: `${app}/secure?x=1` });
  const allowed = await browser.check(`${app}/secure?x=1`);
  t.match(allowed, { outcome: '200', set: { 'x-auth-aal': 'aal2' } });
});

t.test('an application signs out by a form, and asks with a link', async (t) => {
  const browser = new AppBrowser(gateway);
  await browser.signIn(`${app}/`);
  const countSignOuts = async () => {
    const { text } = await server.call('GET', '/admin/audit?query=action:logout', { token: adminToken() });
    return (JSON.parse(text) as readonly unknown[]).length;
  };
  const client = await createApplication(server);
  const query = authorizeQuery({ client_id: client.client_id, scope: 'openid' });
  const asks = await browser.pages.open(`${apiUrl}/oauth/authorize?${query}`);
  const consent = asks.headers.get('location') ?? '';
  const approved = await browser.pages.submit(consent, { action: 'approve' }, { target: 'consent' });
  const code = redirectParameter(approved.headers.get('location'), 'code');
  const { body: tokens } = await redeem(server, client, code);
  const before = await countSignOuts();
  const signOut = `${app}/.tollgate/sign-out`;
  const asked = await browser.check(signOut, { 'accept-language': 'de' });
  t.equal(asked.outcome, '405 sign_out_needs_post');
  t.match(asked.body, /<html lang="de">.*<form method="post" action="\/.tollgate\/sign-out">/s);
  t.match(asked.headers?.['content-security-policy'], "form-action 'self' https://auth.example.com;");
  for (const headers of [{}, { origin: 'https://evil.test' }, { 'sec-fetch-site': 'same-site' }])
    t.equal((await browser.check(signOut, headers, 'POST')).outcome, '403 cross_site_request');
  t.equal((await browser.check(`${app}/`)).outcome, '200', 'still signed in');

  const { outcome, headers, setCookie } = await browser.check(signOut, { origin: app }, 'POST');
  t.equal(outcome, '303 signed_out');
  t.match(headers, { location: '/' });
  t.match(setCookie, '__Host-tollgate-access=; Max-Age=0;');
  t.equal((await browser.check(`${app}/`)).outcome, '302 sign_in_required');
  const page = await browser.pages.open(await browser.begin(`${app}/`));
  t.match(page.headers.get('location'), '/pages/sign-in?return_to=', 'the pages have no session either');
  t.equal(await countSignOuts(), before + 1, 'the audit log has it');
  const refresh = { grant_type: 'refresh_token', refresh_token: String(tokens.refresh_token), ...client };
  t.match((await requestToken(server, refresh)).body, { error: 'invalid_grant' }, 'the client, too');
  t.equal((await browser.check(signOut, { origin: app }, 'POST')).outcome, '303 signed_out', 'again');
  t.equal((await browser.check(signOut, { origin: app }, 'DELETE')).outcome, '401 no_authorization');
});

t.test('hosts of a configured domain share a cookie, and sessions end by inactivity', async (t) => {
  const shared = await startAuthServer(t, {
    ...{ ...platform, ...pages, EXT_AUTHZ_COOKIE_DOMAIN: 'example.com' },
    // Uses are recorded four times within the timeout.
    ...{ SESSIONS_INACTIVITY_TIMEOUT: '8s', EXT_AUTHZ_MAX_STALENESS: '1s' },
    SESSIONS_SINGLE_PER_USER: 'true',
  });
  const sql = postgres(shared.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  await signUp(shared);
  const own = { server: shared, client: connectAuthz(t, shared.extAuthz.grpc), apiUrl };
  const browser = new AppBrowser(own);
  await awaitUntil(async () => (await browser.check(`${app}/`)).httpStatus === 302, { what: 'the policy' });
  // The newest session counts.
  shared.clock.advance(1_000);
  const { setCookie } = await browser.signIn(`${app}/`);
  t.match(
    setCookie,
    /^__Secure-tollgate-access=[\w.-]+; Path=\/; HttpOnly; SameSite=Lax; Secure; Domain=example\.com$/,
  );
  const other = new AppBrowser(own);
  const host = 'one.apps.example.com';
  other.steal(host, browser.cookie('app.example.com'));
  const answer = await other.check(`https://${host}/`);
  t.equal(answer.outcome, '200', 'another host of the domain');
  t.ok(answer.remove?.includes('cookie'));

  const outcome = async () => (await browser.check(`${app}/`)).outcome;
  const lastUse = async () => {
    const [row] = await sql`select max(used_at) as used_at from auth.browser_sessions`;
    return new Date(row?.used_at).getTime();
  };
  shared.clock.advance(5_000);
  t.equal(await outcome(), '200');
  const isRecorded = async () => (await outcome()) === '200' && (await lastUse()) === shared.clock.nowMs();
  await awaitUntil(isRecorded, { what: 'the recorded use' });
  shared.clock.advance(5_000);
  t.equal(await outcome(), '200', 'in use');
  shared.clock.advance(9_000);
  t.equal(await outcome(), '302 sign_in_required', 'not in use');

  await browser.signIn(`${app}/`);
  t.equal(await outcome(), '200');
  shared.clock.advance(1_000);
  await new AppBrowser(own).signIn(`${app}/`);
  shared.clock.advance(1_000);
  t.equal(await outcome(), '302 sign_in_required', 'replaced by a newer session');
});

t.test('without hosted pages the policy is rejected, and denies its hosts', async (t) => {
  const { extAuthz, ...bare } = await startAuthServer(t, platform);
  const browser = new AppBrowser({ server: bare, client: connectAuthz(t, extAuthz.grpc), apiUrl });
  await awaitUntil(async () => (await browser.check(`${app}/`)).outcome === '503 policy_invalid', {
    what: 'the denial',
  });
  const message = 'spec.access.browser: Redirect needs SVC_PAGES_ENABLED and SVC_EXT_AUTHZ_SESSION_CHECK';
  await awaitUntil(() => xds.logs().includes(message), { what: 'the reason at the xDS server' });
});

t.test('in Chromium', { skip: chromiumIsMissing }, async (t) => {
  const { chromium, envoy } = await startBrowser(t, server, replica);
  const page = await chromium.newPage();
  const here = () => page.evaluate('location.href');

  await t.test('the deep link of a browser without a session is kept over the sign-in', async (t) => {
    await open(page, `${app}/orders/1?page=2`, `${apiUrl}/pages/sign-in`);
    await signInAs(page, 'ada@example.com', app);
    t.equal(await here(), `${app}/orders/1?page=2`);
    const echoed = JSON.parse(String(await page.evaluate('document.body.innerText')));
    t.match(echoed.headers, { 'x-auth-user-id': user.userId, 'x-auth-plan': 'free', 'x-auth-kind': 'user' });
    t.notHas(echoed.headers, 'cookie', 'cookies of the server do not reach the application');
  });

  const other = 'https://one.apps.example.com';
  await t.test('another application needs no second sign-in', async (t) => {
    await open(page, `${other}/a`);
    t.match(await page.evaluate('document.body.innerText'), user.userId);
  });

  const connect = (url: string) =>
    page.evaluate(`new Promise((resolve) => {
      const socket = new WebSocket('${url}');
      for (const name of ['open', 'error']) socket.addEventListener(name, () => resolve(name));
    })`);

  await t.test('forms and sockets of other hosts are refused', async (t) => {
    const before = envoy.upstream.requests.length;
    t.match(await submitForm(page, `${app}/from-same-site`), 'cross_site_request');
    await open(page, `${other}/a`);
    t.equal(await connect('wss://app.example.com/socket'), 'error');
    await open(page, 'https://evil.test/');
    t.match(
      await submitForm(page, `${app}/from-other-site`),
      'no_authorization',
      'the browser sends no cookie',
    );
    await open(page, `${app}/own`);
    t.match(await submitForm(page, `${app}/from-own-page`), '"method":"POST"');
    const seen = envoy.upstream.requests.slice(before).map(({ path }) => path);
    t.same(
      seen.filter((path) => /from|socket/.test(path)),
      ['/from-own-page'],
    );
  });

  await t.test('a link signs out at all applications', async (t) => {
    await open(page, `${app}/.tollgate/sign-out`);
    t.equal(await page.evaluate('getComputedStyle(document.body).margin'), '0px', 'the page has its style');
    await page.evaluate(`document.querySelector('button').click()`);
    await arrive(page, `${apiUrl}/pages/sign-in`);
    await open(page, `${other}/a`, `${apiUrl}/pages/sign-in`);
    await open(page, `${app}/public`);
    t.equal(
      await page.evaluate(`fetch('/orders').then(({ status }) => status)`),
      401,
      'fetch is not redirected',
    );
    t.equal(await connect('wss://app.example.com/socket'), 'error');
  });

  await t.test('a part that requires a second factor leads to its page, and back', async (t) => {
    await signUp(server, { email: 'zoe@example.com' });
    await open(page, `${app}/`, `${apiUrl}/pages/sign-in`);
    await signInAs(page, 'zoe@example.com', app);
    await open(page, `${app}/secure?x=1`, `${apiUrl}/pages/factor`);
    const submit = (name: string) =>
      page.evaluate(`document.querySelector('[name=${name}]').form.requestSubmit()`);
    await submit('friendly_name');
    const key = `document.querySelector('code')?.innerText ?? ''`;
    await awaitUntil(async () => (await page.evaluate(key).catch(() => '')) !== '', { what: 'the key' });
    const secret = Secret.fromBase32(String(await page.evaluate(key)).replaceAll(' ', ''));
    const code = TOTP.generate({ secret, timestamp: server.clock.nowMs() });
    await page.evaluate(`document.querySelector('[name=code]').value = '${code}'`);
    await submit('code');
    await arrive(page, `${app}/secure?x=1`);
    t.match(await page.evaluate('document.body.innerText'), '"x-auth-aal":"aal2"');
    await submitForm(page, `${app}/.tollgate/sign-out`, `${apiUrl}/pages/sign-in`);
  });

  for (const name of ['Envoy over HTTP', 'caddy', 'nginx'] as const) {
    const skip = name === 'Envoy over HTTP' ? false : textProxyIsMissing(name);
    await t.test(`behind ${name}: deep link, sign-in, form and sign-out`, { skip }, async (t) => {
      const own = `https://${apps[name]}`;
      const page = await chromium.newPage();
      await open(page, `${own}/orders/1?page=2`, `${apiUrl}/pages/sign-in`);
      await signInAs(page, 'ada@example.com', own);
      t.equal(await page.evaluate('location.href'), `${own}/orders/1?page=2`);
      const echoed = JSON.parse(String(await page.evaluate('document.body.innerText')));
      t.match(echoed.headers, { 'x-auth-user-id': user.userId, 'x-auth-plan': 'free' });
      t.notHas(echoed.headers, 'cookie');
      t.match(await submitForm(page, `${own}/from-own-page`), '"method":"POST"');
      // It goes to `/`, and from there to the sign-in page.
      await submitForm(page, `${own}/.tollgate/sign-out`, `${apiUrl}/pages/sign-in`);
      await open(page, `${own}/orders/2`, `${apiUrl}/pages/sign-in`);
    });
  }
});
