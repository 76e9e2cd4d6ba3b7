// A person with read-only scopes: no form in any page, and 403 for every action.
import t from 'tap';
import { areas } from '../src/pages/registry.ts';
import { isPermitted } from '../src/scopes.ts';
import { ConsoleSuite, skip } from './support/console-suite.ts';
import { authForLimiters, startLimiter } from './support/limiter.ts';
import { startRefusingProxy } from './support/refusing-proxy.ts';

const scopes = ['users:read', 'limits:read', 'audit:read'];
const granted = new Set(scopes.map((scope) => `tollgate:${scope}`));
const actions = areas.flatMap((area) => area.actions);
const forbidden = actions.filter(({ permission }) => !isPermitted(granted, permission));
const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 5 } }]';

t.setTimeout(240_000);
t.test('a person without the scope gets no button, and 403', { skip }, async (t) => {
  const proxy = await startRefusingProxy(t);
  const suite = await ConsoleSuite.start(t, {
    ...{ scopes, auth: authForLimiters, settings: { CONSOLE_AUTH_URL: proxy.url } },
    limiterUrls: async (auth) => [(await startLimiter(t, auth, { 'config/shop.yaml': rules })).url],
  });
  proxy.target = suite.auth.url;
  const page = await suite.signIn('/limits/counter?domain=shop&descriptor=user%3Dann');
  t.ok(forbidden.length >= 3);
  t.equal(await page.evaluate('document.querySelectorAll("main form[method=post]").length'), 0);
  const links = await page.evaluate(`[...document.querySelectorAll('nav.pages a')].map((a) => a.pathname)`);
  const permitted = areas.filter(({ permission }) => isPermitted(granted, permission));
  t.strictSame(
    new Set(links as string[]),
    new Set(permitted.map(({ path }) => path)),
    'the menu has only what the person may see',
  );
  for (const { path } of forbidden) {
    const target = path.replaceAll(/:\w+/g, crypto.randomUUID());
    const status = await page.evaluate(`(async () => {
      const body = new URLSearchParams({ _csrf: document.querySelector('[name=_csrf]').value });
      return (await fetch('${target}', { method: 'POST', body })).status;
    })()`);
    t.equal(status, 403, `POST ${target}`);
  }
  const status = async (path: string) => page.evaluate(`fetch('${path}').then(({ status }) => status)`);
  t.equal(await status('/limits/reset?domain=shop&descriptor=user%3Dann'), 403);

  await t.test('a token that expires during the sign-in leads to a second one, and no third', async (t) => {
    const { url: consoleUrl, auth, admin, password } = suite;
    const cookies = new Map<string, string>();
    const send = async (url: string) => {
      const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
      const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
      for (const [, name = '', value = ''] of response.headers
        .getSetCookie()
        .map((line) => /^([^=]+)=([^;]*)/.exec(line) ?? []))
        cookies.set(name, value);
      return response;
    };
    const token = await suite.requestToken('/token?grant_type=password', { email: admin.email, password });
    /** The auth server sends the person back, who has given access before. */
    const comeBack = async (authorizeUrl: string) => {
      const redirect = await fetch(authorizeUrl, { redirect: 'manual' });
      const id = new URL(redirect.headers.get('location') ?? '', auth.url).searchParams.get(
        'authorization_id',
      );
      const opened = `${auth.url}/oauth/authorizations/${id}`;
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const known = JSON.parse(await (await fetch(opened, { headers })).text());
      if (known.redirect_url) return send(known.redirect_url);
      const consent = { method: 'POST', headers, body: JSON.stringify({ action: 'approve' }) };
      const approved = await fetch(`${opened}/consent`, consent);
      return send(JSON.parse(await approved.text()).redirect_url);
    };
    const location = (response: Response) => response.headers.get('location') ?? '';
    const started = await send(`${consoleUrl}/users`);
    proxy.refusals = 1;
    const second = await comeBack(location(started));
    t.equal(second.status, 303);
    t.match(location(second), `${auth.url}/`, 'to the auth server again');
    t.equal(location(await comeBack(location(second))), `${consoleUrl}/users`);

    cookies.clear();
    proxy.refusals = 2;
    const refused = await comeBack(location(await comeBack(location(await send(`${consoleUrl}/users`)))));
    t.equal(refused.status, 403, 'it is not started a third time');
    t.match(await refused.text(), 'bad_jwt');
  });
});
