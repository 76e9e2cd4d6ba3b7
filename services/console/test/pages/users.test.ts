// Sign-in and users, in Chromium over a real auth server.
import { startSmtp } from '@tollgate/testkit/smtp';
import postgres from 'postgres';
import t from 'tap';
import { ConsoleSuite, readCookies, readText, skip } from '../support/console-suite.ts';

const firefox = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 15.0; rv:140.0) Gecko/20100101 Firefox/140.0';

t.setTimeout(240_000);
t.test('users in the console', { skip }, async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const suite = await ConsoleSuite.start(t, {
    auth: {
      ...{ SVC_SMTP_HOST: smtp.host, SVC_SMTP_PORT: String(smtp.port) },
      SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
      ...{ SVC_PASSKEY_ENABLED: 'true', SVC_WEBAUTHN_RP_ID: 'example.com' },
      ...{ SVC_WEBAUTHN_RP_ORIGINS: 'https://example.com', SVC_WEBAUTHN_RP_DISPLAY_NAME: 'Example' },
    },
  });
  const bob = await suite.createUser({
    email: 'bob@example.com',
    app_metadata: { plan: 'gold' },
    user_metadata: { name: '<img src=x onerror=alert(1)>' },
  });
  const sql = postgres(suite.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const page = await suite.signIn('/users?plan=gold');

  await t.test('the sign-in returns to the page that was asked for', async (t) => {
    const text = await readText(page);
    t.match(text, 'bob@example.com');
    t.notMatch(text, 'ada@example.com', 'the filter of the URL applies');
    t.match(await readText(page, '.top'), 'ada@example.com');
    t.notMatch(suite.logs(), /eyJ/, 'no token is logged');
  });

  await t.test('a user is found and shown, and its metadata are text', async (t) => {
    await page.open(`${suite.url}/users`);
    t.match(await readText(page), /bob@example\.com.*ada@example\.com/s, 'the newest comes first');
    await page.submit('/users', { q: 'bob@' });
    t.equal(await page.evaluate('new URLSearchParams(location.search).get("q")'), 'bob@');
    t.notMatch(await readText(page), 'ada@example.com');
    for (const search of ['ob@exam', 'BOB@example.com', bob]) {
      await page.open(`${suite.url}/users?q=${search}`);
      t.match(await readText(page), 'bob@example.com', search);
      t.notMatch(await readText(page), 'ada@example.com', search);
    }
    await page.open(`${suite.url}/users?q=${crypto.randomUUID()}`);
    t.match(await readText(page), 'No user matches');
    await page.open(`${suite.url}/users?q=bob`);
    await page.navigate(() => page.evaluate(`document.querySelector('tbody a').click()`));
    t.equal(await page.evaluate('location.pathname'), `/users/${bob}`);
    t.match(await readText(page), /bob@example\.com.*gold.*<img src=x onerror=alert\(1\)>/s);
    await page.open(`${suite.url}/users/${crypto.randomUUID()}`);
    t.match(await readText(page), /refused the request.*user_not_found/s);
  });

  await t.test('users are found by id, phone and each filter', async (t) => {
    const email = 'dora@example.com';
    const dora = await suite.createUser({
      ...{ email, phone: '+15550001111', phone_confirm: true, role: 'support', ban_duration: '24h' },
      app_metadata: { plan: 'silver' },
    });
    await sql`update auth.identities set provider = 'google' where user_id = ${dora} and provider = 'email'`;
    for (const query of [
      ...[`q=${dora}`, 'q=%2B15550001111', 'q=15550001111', 'q=DORA@example.com', 'q=ora@'],
      ...['plan=silver', 'role=support', 'provider=google', 'banned=true'],
    ]) {
      await page.open(`${suite.url}/users?${query}`);
      t.match(await readText(page, 'tbody'), /^dora@example\.com\s+banned\s+support\s+silver/, query);
      t.equal(await page.evaluate(`document.querySelectorAll('tbody tr').length`), 1, query);
    }
    await suite.callAuth('DELETE', `/admin/users/${dora}`);
  });

  await t.test('a person changes a user, and the audit log has their name', async (t) => {
    const carl = await suite.createUser({ email: 'carl@example.com' });
    /** Does an action on its page. Returns the text of the page that follows. */
    const act = async (path: string, fields: Record<string, string> = {}): Promise<string> => {
      await page.open(`${suite.url}/users/${carl}/${path}`);
      await page.submit(`/users/${carl}/${path}`, fields);
      return readText(page, 'body');
    };
    const credentials = JSON.stringify({ email: 'carl@example.com', password: suite.password });
    const headers = { 'content-type': 'application/json', 'user-agent': firefox };
    const post = async (path: string, body: string, more = {}) => {
      const init = { method: 'POST', headers: { ...headers, ...more }, body };
      const response = await fetch(`${suite.auth.url}${path}`, init);
      // Parsed boundary: a token response, or a factor.
      return (await response.json()) as { readonly access_token: string; readonly id: string };
    };
    const signIn = () => post('/token?grant_type=password', credentials);
    const { access_token: token } = await signIn();
    const totp = JSON.stringify({ factor_type: 'totp', friendly_name: 'Phone app' });
    const factor = await post('/factors', totp, { authorization: `Bearer ${token}` });
    await page.open(`${suite.url}/users/${carl}`);
    t.match(await readText(page), /Factors.*Phone app\s+totp\s+unverified.*Remove/s);
    t.match(
      await readText(page),
      /Sessions.*Firefox, macOS\s+127\.0\.0\.1\s+–.*aal1: password\s+in (1 h|5\d min)\s+End/s,
    );
    t.equal(await page.evaluate(`document.querySelector('[id^=session-] [title]').title`), firefox);
    t.match(
      await page.evaluate(`document.querySelector('svg.period').getAttribute('aria-label')`),
      /^In use from (now|\d+ s ago) to (now|\d+ s ago)$/,
    );
    await page.open(`${suite.url}/users/${suite.admin.id}`);
    t.match(await readText(page), 'Tollgate console', 'the name of the OAuth client of a session');
    t.match(await act(`factors/${factor.id}/remove`), /The factor is removed.*no second factor/s);
    t.same(await suite.callAuth('GET', `/admin/users/${carl}/factors`), []);
    const passkey = crypto.randomUUID();
    await sql`insert into auth.webauthn_credentials
      (id, user_id, credential_id, public_key, attestation_type, sign_count, transports, friendly_name)
      values (${passkey}, ${carl}, '\\x01', '\\x02', 'none', 0, '[]', 'Laptop')`;
    await page.open(`${suite.url}/users/${carl}`);
    t.match(await readText(page), /Passkeys.*Laptop\s+never.*Remove/s);
    t.match(await act(`passkeys/${passkey}/remove`), /The passkey is removed.*no passkey/s);
    t.same(await suite.callAuth('GET', `/admin/users/${carl}/passkeys`), []);
    const sessionsOf = async () => {
      const { sessions } = await suite.callAuth('GET', `/admin/users/${carl}/sessions`);
      return sessions as readonly { readonly id: string }[];
    };
    await signIn();
    const [session, other] = await sessionsOf();
    t.match(await act(`sessions/${session?.id}/end`), 'The session has ended.');
    t.match(await sessionsOf(), [{ id: other?.id }], 'the other device stays signed in');
    t.match(await act('plan', { plan: 'silver', requests: '50', unit: 'hour' }), 'plan and limit are set');
    t.match((await suite.callAuth('GET', `/admin/users/${carl}`)).app_metadata, {
      plan: 'silver',
      limit: { requests_per_unit: 50, unit: 'hour' },
    });
    t.match(await act('plan', { plan: '', requests: '' }), 'plan and limit are set');
    const { app_metadata: metadata } = await suite.callAuth('GET', `/admin/users/${carl}`);
    t.notHas(metadata, 'plan');
    t.notHas(metadata, 'limit');
    t.match(await act('plan', { requests: '-5' }), 'a whole number of requests', 'nothing is changed');
    const monthly = { limit: { requests_per_unit: 1000, unit: 'MONTH' } };
    await suite.callAuth('PUT', `/admin/users/${carl}`, { app_metadata: monthly });
    await act('plan', { plan: 'silver' });
    t.match((await suite.callAuth('GET', `/admin/users/${carl}`)).app_metadata, {
      plan: 'silver',
      limit: { requests_per_unit: 1000, unit: 'month' },
    });
    t.match(await act('sign-out'), /All sessions have ended.*not signed in anywhere/s);
    t.match(await act('recovery'), /on its way to carl@example\.com.*Send recovery email/s);
    t.match((await smtp.mailTo('carl@example.com')).html, '/verify?');
    await sql`update auth.identities set provider = 'sso:acme' where user_id = ${carl}`;
    await sql`update auth.users set is_sso_user = true where id = ${carl}`;
    t.notMatch(await act('plan'), 'Send recovery email', 'an identity provider manages the user');
    t.match(await act('recovery'), 'user_sso_managed');
    t.match(await act('ban', { duration: 'soon' }), 'longer than 0s');
    t.match(await act('ban', { duration: 'none' }), 'longer than 0s', 'it would lift a ban');
    t.match(await act('ban', { duration: '24h' }), /The user is banned.*Lift the ban/s);
    t.match(await act('unban'), 'The ban is lifted');
    t.match(await act('delete', { confirmed: 'carl' }), 'nothing was changed');
    t.match(await readText(page), 'Not confirmed');
    await page.open(`${suite.url}/audit?actor_id=${suite.admin.id}`);
    t.match(await readText(page), /user_recovery_requested.*ada@example\.com.*user_modified/s);
    t.match(await act('delete', { confirmed: 'carl@example.com' }), 'carl@example.com is deleted');
    t.equal(await page.evaluate('location.pathname'), '/users');
    await t.rejects(suite.callAuth('GET', `/admin/users/${carl}`), /user_not_found/);
    const entries = (await suite.callAuth(
      'GET',
      `/admin/audit?actor_id=${suite.admin.id}&kind=administrator&limit=100`,
    )) as unknown as readonly { readonly payload: { readonly action: string } }[];
    t.strictSame(
      new Set(entries.map(({ payload: { action } }) => action)),
      new Set([
        ...['factor_deleted', 'passkey_deleted', 'logout', 'user_modified', 'user_recovery_requested'],
        'user_deleted',
      ]),
    );
  });

  await t.test('a list continues on the next page', async (t) => {
    await Promise.all(
      Array.from({ length: 51 }, (_, index) =>
        suite.createUser({ email: `user-${index}@example.com`, password: undefined }),
      ),
    );
    await page.open(`${suite.url}/users?sort=created_at+asc`);
    t.match(await readText(page), 'ada@example.com');
    await page.navigate(() => page.evaluate(`document.querySelector('[rel=next]').click()`));
    t.notMatch(await readText(page), 'ada@example.com');
    t.equal(await page.evaluate('document.querySelectorAll("tbody tr").length'), 3);
  });

  await t.test('a sign-out ends the session', async (t) => {
    const cookie = await readCookies(page, suite.url);
    await page.open(`${suite.url}/users`);
    await page.submit('/sign-out');
    t.match(await readText(page), 'You are signed out');
    const after = await fetch(`${suite.url}/users`, { headers: { cookie }, redirect: 'manual' });
    t.match(after.headers.get('location'), `${suite.auth.url}/oauth/authorize`);
    await page.open(`${suite.url}/users/${bob}`);
    await suite.approve(page, `/users/${bob}`);
    t.match(await readText(page), 'bob@example.com', 'signed in again without a password');
  });

  await t.test('a session that the auth server has ended leads to the sign-in', async (t) => {
    await suite.callAuth('DELETE', `/admin/users/${suite.admin.id}/sessions`);
    await page.open(`${suite.url}/users`);
    t.match(await page.evaluate('location.origin'), suite.auth.url);
    await page.submit('/sign-in', { identifier: suite.admin.email, password: suite.password });
    await suite.approve(page, '/users');
    const cookie = await readCookies(page, suite.url);
    t.notMatch(cookie, 'tollgate-console-sign-in', 'the sign-in has completed');
    const again = await fetch(`${suite.url}/callback?code=x&state=y`, {
      headers: { cookie },
      redirect: 'manual',
    });
    t.equal(again.headers.get('location'), `${suite.url}/`, 'who is signed in stays so');
  });

  await t.test('sign-ins of several tabs do not disturb each other', async (t) => {
    const starts = await Promise.all(
      Array.from({ length: 3 }, () => fetch(`${suite.url}/users`, { redirect: 'manual' })),
    );
    const cookies = starts.map((response) => response.headers.get('set-cookie')?.split(';')[0]);
    t.equal(new Set(cookies.map((cookie) => cookie?.split('=')[0])).size, 3);
    const [, other] = starts;
    const state = new URL(other?.headers.get('location') ?? '').searchParams.get('state');
    const callback = `${suite.url}/callback?${new URLSearchParams({ state: String(state), error: 'access_denied', iss: suite.auth.url })}`;
    const refused = await fetch(callback, { headers: { cookie: cookies.join('; ') } });
    t.match(await refused.text(), 'You did not give the console access', 'the state is known');
    const stolen = await fetch(callback, { headers: { cookie: String(cookies[0]) } });
    t.match(await stolen.text(), 'started in another browser');
  });

  await t.test('a callback without its sign-in is refused', async (t) => {
    const response = await fetch(`${suite.url}/callback?code=x&state=y`);
    t.equal(response.status, 400);
    t.match(await response.text(), 'started in another browser');
  });

  await t.test('without the auth server, the page says what is wrong and what to do', async (t) => {
    await suite.auth.stop();
    await page.open(`${suite.url}/users`);
    t.match(await readText(page), /does not answer.*has not answered since.*curl -i/s);
  });
});
