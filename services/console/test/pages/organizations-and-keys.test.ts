// Organizations and API keys, in Chromium over a real auth server.
import { startTxtServer } from '@tollgate/testkit/txt-server';
import t from 'tap';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';

type Page = Awaited<ReturnType<ConsoleSuite['newPage']>>;

const attack = '<img src=x onerror=alert(1)>';

t.setTimeout(180_000);
t.test('organizations and API keys in the console', { skip }, async (t) => {
  const dns = await startTxtServer(t);
  const suite = await ConsoleSuite.start(t, {
    auth: {
      ...{ SVC_ORGANIZATIONS_ENABLED: 'true', SVC_API_KEYS_ENABLED: 'true' },
      ...{ SVC_ORGANIZATIONS_DNS_SERVERS: dns.address, SVC_ORGANIZATIONS_DNS_TIMEOUT: '10s' },
    },
  });
  const bob = await suite.createUser({ email: 'bob@example.com' });
  const page = await suite.signIn('/organizations');
  /** Does an action on its page. Returns the text of the page that follows. */
  const act = async (path: string, fields: Record<string, string> = {}): Promise<string> => {
    await page.open(suite.url + path);
    await page.submit(path, fields);
    return readText(page, 'body');
  };
  const pathOf = async () => String(await page.evaluate('location.pathname'));

  await t.test('a person creates and changes an organization', async (t) => {
    t.match(await readText(page), 'There are no organizations yet');
    t.match(
      await act('/organizations/new', { name: 'A', owner: 'eve@example.com' }),
      'No user has the email',
    );
    const fields = { name: attack, slug: 'payments', owner: 'ada@example.com', plan: 'pro' };
    t.match(await act('/organizations/new', fields), `${attack} is created.`);
    const path = await pathOf();
    const read = (part = '') => suite.callAuth('GET', `/admin${path}${part}`);
    t.match(await read(), { name: attack, slug: 'payments', plan: 'pro' });
    t.match(await readText(page), /ada@example\.com.*owner/s);
    t.match(
      await act(`${path}/change`, { name: attack, plan: '', requests: '50', unit: 'hour' }),
      /is changed.*50 per hour/s,
    );
    const changed = await read();
    t.match(changed, { limit: { requests_per_unit: 50, unit: 'hour' } });
    t.notHas(changed, 'plan');
    t.match(await act(`${path}/change`, { requests: '-5' }), 'a whole number of requests');
    t.match(await act(`${path}/change`, { metadata: '[1]' }), 'Metadata is not a JSON object');
    const more = { slug: 'pay', domain_role: 'member', metadata: '{"team":"payments"}' };
    t.match(await act(`${path}/change`, more), 'is changed');
    t.match(await read(), { slug: 'pay', domain_role: 'member', metadata: { team: 'payments' } });
    t.match(await act(`${path}/member`, { user: 'bob@example.com' }), 'bob@example.com has the role member.');
    t.match(await act(`${path}/member`, { user: bob, role: 'admin' }), 'bob@example.com has the role admin.');
    t.match(JSON.stringify(await read('/members')), /"role":"admin","email":"bob@example\.com"/);
    t.match(await act(`${path}/members/${suite.admin.id}/remove`), 'last_organization_owner');
    t.match(await act(`${path}/members/${bob}/remove`), 'The member is removed.');
    t.notMatch(JSON.stringify(await read('/members')), 'bob@example.com');
  });

  await t.test('a domain is added with the DNS record to set, verified, and removed', async (t) => {
    const path = await pathOf();
    const read = () => suite.callAuth('GET', `/admin${path}/domains`);
    t.match(await act(`${path}/domain`, { domain: 'gmail.com' }), 'a domain of a mail provider');
    t.match(
      await act(`${path}/domain`, { domain: 'Example.org' }),
      /Set the DNS record.*example\.org.*not verified.*TXT/s,
    );
    const { domains } = (await read()) as {
      domains: { record: { name: string; value: string } }[];
    };
    const { name = '', value = '' } = domains[0]?.record ?? {};
    t.match(await readText(page), name);
    t.match(await readText(page), value);
    t.match(await act(`${path}/domains/example.org/verify`), 'organization_domain_not_verified');
    dns.records = { [name]: [value] };
    t.match(await act(`${path}/domains/example.org/verify`), /example\.org is verified/);
    t.match(await readText(page), /example\.org\s+verified/);
    t.match(
      await act(`${path}/domain`, { domain: 'example.net', proof: 'none' }),
      'example.net is a domain of the organization.',
    );
    t.match(await read(), {
      domains: [
        { domain: 'example.net', verified_at: String },
        { domain: 'example.org', verified_at: String },
      ],
    });
    for (const domain of ['example.org', 'example.net'])
      t.match(await act(`${path}/domains/${domain}/remove`), `${domain} is removed.`);
    t.same(await read(), { domains: [] });
  });

  await t.test('organizations are listed by filters and pages, and one is deleted', async (t) => {
    const path = await pathOf();
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        suite.callAuth('POST', '/admin/organizations', { name: `Team ${index}`, plan: 'team' }),
      ),
    );
    await page.open(`${suite.url}/organizations`);
    await page.navigate(() => page.evaluate(`document.querySelector('[rel=next]').click()`));
    t.match(await readText(page), attack, 'the oldest is on the last page, as text');
    t.equal(await page.evaluate('document.querySelectorAll("main img").length'), 0);
    await page.open(`${suite.url}/organizations`);
    await page.submit('/organizations', { user_id: suite.admin.id });
    t.equal(await page.evaluate('document.querySelectorAll("tbody tr").length'), 1);
    t.match(await act(`${path}/delete`, { confirmed: 'payments' }), 'nothing was changed');
    t.match(await act(`${path}/delete`, { confirmed: attack }), `${attack} is deleted.`);
    t.equal(await pathOf(), '/organizations');
    await t.rejects(suite.callAuth('GET', `/admin${path}`), /404/);
  });

  await t.test('a key is shown once: in the response to its creation', async (t) => {
    const fields = { name: attack, user_id: bob, scopes: 'a:read  a:write' };
    const more = {
      plan: 'pro',
      requests: '5',
      expires_at: '2099-01-31T12:00',
      allowed_networks: '10.0.0.0/8',
    };
    t.match(await act('/api-keys/new', { ...fields, ...more }), 'the only time');
    const key = await readSecret(page);
    t.match(await verify(suite, key), { valid: true });
    t.notMatch(await page.evaluate('location.href'), key);
    t.notMatch(suite.logs(), key);
    await page.navigate(() => page.evaluate(`document.querySelector('main a[href^="/api-keys/"]').click()`));
    const path = await pathOf();
    t.match(await suite.callAuth('GET', `/admin${path}`), {
      ...{ name: attack, owner: { user_id: bob }, scopes: ['a:read', 'a:write'], plan: 'pro' },
      limit: { requests_per_unit: 5, unit: 'minute' },
      ...{ expires_at: '2099-01-31T12:00:00.000Z', allowed_networks: ['10.0.0.0/8'] },
    });
    for (const next of [path, '/api-keys', `/api-keys?user_id=${bob}`, '/audit']) {
      await page.open(suite.url + next);
      t.notMatch(await page.evaluate('document.documentElement.outerHTML'), key, next);
      t.equal(await page.evaluate('document.querySelectorAll("main img").length'), 0);
    }
    await page.open(`${suite.url}/api-keys?last4=${key.slice(-4)}`);
    t.match(await readText(page), new RegExp(`onerror.*${key.slice(-4)}.*active.*never`, 's'));
    await page.submit('/api-keys', { last4: '', plan: 'nothing' });
    t.match(await readText(page), 'No API key matches');
    await page.open(suite.url + path);
  });

  await t.test('a person changes, rotates and revokes a key', async (t) => {
    const path = await pathOf();
    const read = () => suite.callAuth('GET', `/admin${path}`);
    t.match(await act(`${path}/plan`, { plan: '', requests: '' }), 'The plan and limit are set.');
    t.match(await read(), { plan: null, limit: null });
    t.match(await act(`${path}/disable`), /The key is disabled.*Enable/s);
    t.match(await read(), { disabled: true });
    t.match(await act(`${path}/enable`), /The key is enabled.*Disable/s);
    t.match(await read(), { disabled: false });
    t.match(await act(`${path}/rotate`, { grace: 'soon' }), 'grace must be a duration');
    t.match(await act(`${path}/rotate`, { grace: '1h' }), 'the only time');
    t.match(await verify(suite, await readSecret(page)), { valid: true });
    t.ok(Date.parse(String((await read()).expires_at)) < Date.parse('2099-01-01'), 'ends after the grace');
    t.match(await act(`${path}/revoke`), `${attack} is revoked.`);
    await t.rejects(read(), /404/);
  });

  await t.test('a key with admin scopes can only be revoked', async (t) => {
    const body = { name: 'limiter', admin_scopes: ['keys:verify'] };
    const { id } = await suite.callAuth('POST', '/admin/api-keys', body);
    await page.open(`${suite.url}/api-keys/${id}`);
    t.match(await readText(page), /^limiter\s+Revoke\s+A key with admin scopes/);
    t.match(await act(`/api-keys/${id}/disable`), 'insufficient_scope');
    t.match(await act(`/api-keys/${id}/revoke`), 'limiter is revoked.');
  });

  await t.test('the audit log has the name of the person', async (t) => {
    const entries = JSON.stringify(
      await suite.callAuth('GET', `/admin/audit?actor_id=${suite.admin.id}&limit=100`),
    );
    for (const action of [
      ...['organization_created', 'organization_modified', 'organization_deleted'],
      ...['organization_member_added', 'organization_member_modified', 'organization_member_removed'],
      ...['organization_domain_added', 'organization_domain_verified', 'organization_domain_removed'],
      ...['api_key_created', 'api_key_updated', 'api_key_rotated', 'api_key_revoked'],
    ])
      t.ok(entries.includes(`"${action}"`), action);
    await page.open(`${suite.url}/audit?action=api_key_revoked`);
    t.match(await readText(page), 'ada@example.com');
  });
});

t.test('without a feature or a scope', { skip }, async (t) => {
  const suite = await ConsoleSuite.start(t, { scopes: ['organizations:write', 'users:read'] });
  const page = await suite.signIn('/organizations');

  await t.test('the page of a feature that is off names its setting', async (t) => {
    t.match(await readText(page), /This feature is off.*set SVC_ORGANIZATIONS_ENABLED/s);
  });

  await t.test('without the scope there is no link, and 403', async (t) => {
    t.notMatch(await readText(page, 'nav.pages'), 'API keys');
    const token = String(await page.evaluate('document.querySelector("[name=_csrf]").value'));
    for (const init of ['{}', `{ method: 'POST', body: new URLSearchParams({ _csrf: '${token}' }) }`])
      t.equal(await status(page, '/api-keys/new', init), 403);
  });
});

async function status(page: Page, path: string, init: string): Promise<unknown> {
  return page.evaluate(`fetch('${path}', ${init}).then(({ status }) => status)`);
}

/** The key on the page that shows it. */
async function readSecret(page: Page): Promise<string> {
  return readText(page, '#secret code');
}

function verify(suite: ConsoleSuite, key: string) {
  return suite.callAuth('POST', '/admin/api-keys/verify', { key, address: '10.0.0.1' });
}
