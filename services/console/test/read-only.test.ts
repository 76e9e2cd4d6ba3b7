// A person with read-only scopes: no form in any page, and 403 for every action.
import t from 'tap';
import { areas } from '../src/pages/registry.ts';
import { isPermitted } from '../src/scopes.ts';
import { ConsoleSuite, skip } from './support/console-suite.ts';
import { authForLimiters, startLimiter } from './support/limiter.ts';

const scopes = ['users:read', 'limits:read', 'audit:read'];
const granted = new Set(scopes.map((scope) => `tollgate:${scope}`));
const actions = areas.flatMap((area) => area.actions);
const forbidden = actions.filter(({ permission }) => !isPermitted(granted, permission));
const rules = 'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 5 } }]';

t.setTimeout(240_000);
t.test('a person without the scope gets no button, and 403', { skip }, async (t) => {
  const suite = await ConsoleSuite.start(t, {
    ...{ scopes, auth: authForLimiters },
    limiterUrls: async (auth) => [(await startLimiter(t, auth, { 'config/shop.yaml': rules })).url],
  });
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
});
