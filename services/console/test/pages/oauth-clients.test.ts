// OAuth clients, identity providers and token issuers, in Chromium over a real auth server.
import { consoleClientId } from '@tollgate/admin-clients/first-party';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import postgres from 'postgres';
import t from 'tap';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';
import { discoveryPath, startIdentityProvider } from '../support/identity-provider.ts';

const attack = '<img src=x onerror=alert(1)>';
const script = 'javascript:alert(1)';

t.setTimeout(180_000);
t.test('OAuth clients, identity providers and token issuers in the console', { skip }, async (t) => {
  const provider = await startIdentityProvider(t, attack);
  const folder = makeTextFolder(t);
  const writeIssuers = (jwksUri = '') =>
    folder.write(
      'routes.yaml',
      `issuers:
  - name: login
    issuer: ${provider.issuer}
    audiences: [orders]
    ca_file: ${provider.caFile}
    claims: { plan: plan, team: '["${attack}"]' }${jwksUri && `\n    jwks_uri: ${jwksUri}`}
`,
    );
  writeIssuers();
  const suite = await ConsoleSuite.start(t, {
    auth: {
      SVC_EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
      SVC_EXT_AUTHZ_ISSUER_PRIVATE_HOSTS: '127.0.0.1',
      SVC_CUSTOM_OAUTH_PRIVATE_HOSTS: '127.0.0.1',
      NODE_EXTRA_CA_CERTS: provider.caFile,
    },
  });
  const sql = postgres(suite.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const page = await suite.signIn('/oauth-clients');
  /** Sends the form of a page. Returns the text of the page that follows. */
  const act = async (path: string, fields: Record<string, string> = {}): Promise<string> => {
    await page.open(suite.url + path);
    await page.submit(path, fields);
    return readText(page, 'body');
  };
  const readPath = async () => String(await page.evaluate('location.pathname'));
  const readClient = (id: string) => suite.callAuth('GET', `/admin/oauth/clients/${id}`);
  /** Asks for a token with a client secret. Returns the status. */
  const authenticate = async (id: string, secret: string): Promise<number> => {
    const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'none' });
    const url = `${suite.auth.url}/oauth/token`;
    return (await fetch(url, { method: 'POST', headers: { authorization }, body })).status;
  };
  const readSecret = async () =>
    String(await page.evaluate(`document.querySelectorAll('main code')[1].innerText`));

  await t.test('the client of the console is marked as built in, and has no actions', async (t) => {
    t.match(await readText(page), /Tollgate console\s+built in/);
    const path = `/oauth-clients/${consoleClientId}`;
    await page.open(suite.url + path);
    t.match(await readText(page), /A client of Tollgate itself/);
    t.equal(await page.evaluate('document.querySelectorAll("main .button").length'), 0);
    t.match(await act(`${path}/delete`, { confirmed: 'Tollgate console' }), 'This client is built in');
    t.match(await readClient(consoleClientId), { built_in: true });
  });

  await t.test(
    'a confidential client: its secret is shown once, and it is changed and deleted',
    async (t) => {
      const created = await act('/oauth-clients/new', {
        client_name: attack,
        redirect_uris: 'https://shop.example.com/callback\n  http://localhost:3000/callback\n',
        scopes: 'orders:read orders:write',
        plan: 'pro',
      });
      t.match(created, /it is not shown again/);
      t.match(created, attack, 'the name is text');
      const secret = await readSecret();
      await page.navigate(() => page.evaluate(`document.querySelector('main .button').click()`));
      const path = await readPath();
      const id = path.replace('/oauth-clients/', '');
      t.equal(await authenticate(id, secret), 400, 'the secret is that of the client');
      t.equal(await authenticate(id, 'other'), 401);
      t.match(await readClient(id), {
        ...{ client_type: 'confidential', client_name: attack, plan: 'pro' },
        redirect_uris: ['https://shop.example.com/callback', 'http://localhost:3000/callback'],
        ...{ scopes: ['orders:read', 'orders:write'], grant_types: ['authorization_code', 'refresh_token'] },
      });
      t.match(await readText(page), /State\s+active.*shop\.example\.com.*orders:write.*pro/s);
      t.notMatch(await page.evaluate('document.documentElement.outerHTML'), secret);

      const again = await act(`${path}/secret`);
      const next = await readSecret();
      t.match(again, next);
      t.not(next, secret);
      t.equal(await authenticate(id, secret), 401, 'the old secret is rejected');
      t.equal(await authenticate(id, next), 400);

      t.match(
        await act(`${path}/change`, { redirect_uris: script }),
        'invalid redirect_uri',
        'nothing is changed',
      );
      const changes = {
        client_name: 'Shop',
        redirect_uris: 'https://shop.example.com/back',
        scopes: '',
        plan: '',
      };
      t.match(
        await act(`${path}/change`, { ...changes, disabled: 'true' }),
        /The client is changed.*disabled/s,
      );
      const changed = await readClient(id);
      t.match(changed, { client_name: 'Shop', disabled: true, redirect_uris: [changes.redirect_uris] });
      t.notHas(changed, 'plan');
      t.notHas(changed, 'scopes');

      t.match(await act(`${path}/delete`, { confirmed: 'shop' }), 'Not confirmed');
      t.match(await readClient(id), { client_name: 'Shop' }, 'nothing is changed');
      t.match(await act(`${path}/delete`, { confirmed: 'Shop' }), 'Shop is deleted');
      t.equal(await readPath(), '/oauth-clients');
      await t.rejects(readClient(id), /oauth_client_not_found/);
      await page.open(`${suite.url}/audit?actor_id=${suite.admin.id}`);
      for (const action of ['created', 'secret_regenerated', 'updated', 'deleted'])
        t.match(await readText(page), new RegExp(`oauth_client_${action}\\s+ada@example\\.com`));
      t.notMatch(suite.logs(), next, 'no secret is logged');
    },
  );

  await t.test('a public client has no secret, and URLs that run scripts are text', async (t) => {
    await page.open(`${suite.url}/oauth-clients/new`);
    await page.evaluate(`document.querySelector('[value="authorization_code"]').click()`);
    await page.evaluate(`document.querySelector('[value$=":device_code"]').click()`);
    await page.submit('/oauth-clients/new', { client_type: 'public', client_name: 'TV' });
    t.match(await readText(page, 'body'), 'The client is created');
    const path = await readPath();
    const id = path.replace('/oauth-clients/', '');
    t.match(await readClient(id), {
      client_type: 'public',
      grant_types: ['refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    });
    t.notMatch(await readText(page), 'Regenerate the secret');
    await suite.callAuth('PUT', `/admin/oauth/clients/${id}`, { logo_uri: 'https://tv.example.com/logo' });
    await sql`update auth.oauth_clients set client_uri = ${script} where id = ${id}`;
    await page.open(suite.url + path);
    t.match(await readText(page), /client_uri\s+javascript:alert\(1\)/);
    const links = await page.evaluate(
      `[...document.querySelectorAll('main dd a')].map(({ href }) => href).join()`,
    );
    t.equal(links, 'https://tv.example.com/logo');
  });

  await t.test('a list of clients continues on the next page', async (t) => {
    const body = { client_type: 'public', redirect_uris: ['https://app.example.com/'] };
    await Promise.all(Array.from({ length: 50 }, () => suite.callAuth('POST', '/admin/oauth/clients', body)));
    await page.open(`${suite.url}/oauth-clients`);
    t.notMatch(await readText(page), 'Tollgate console');
    await page.navigate(() => page.evaluate(`document.querySelector('[rel=next]').click()`));
    t.match(await readText(page), /TV.*Tollgate console/s);
    t.equal(await page.evaluate('document.querySelector("[rel=next]")'), null);
  });

  await t.test('a provider is shown without its secret, and deleted', async (t) => {
    await suite.callAuth('POST', '/admin/custom-providers', {
      ...{ provider_type: 'oauth2', identifier: 'custom:forum', name: attack },
      ...{ client_id: script, client_secret: 'a-secret-of-the-forum' },
      authorization_url: 'https://forum.example/authorize',
      token_url: 'https://forum.example/token',
      userinfo_url: 'https://forum.example/me',
    });
    await page.open(`${suite.url}/identity-providers`);
    t.match(await readText(page), attack);
    await page.navigate(() => page.evaluate(`document.querySelector('tbody a').click()`));
    t.match(
      await readText(page),
      /custom:forum.*OAuth 2\.0.*https:\/\/forum\.example\/token.*javascript:alert\(1\)/s,
    );
    t.notMatch(await page.evaluate('document.documentElement.outerHTML'), 'a-secret-of-the-forum');
    t.equal(
      await page.evaluate(`document.querySelectorAll('main img, main a[href^="javascript:"]').length`),
      0,
    );
    const path = '/identity-providers/custom%3Aforum/delete';
    t.match(await act(path, { confirmed: 'forum' }), 'Not confirmed');
    t.match(await act(path, { confirmed: 'custom:forum' }), /is deleted.*There are no custom providers/s);
    t.strictSame(await suite.callAuth('GET', '/admin/custom-providers'), { providers: [] });
    await page.open(`${suite.url}/audit?action=custom_provider_deleted`);
    t.match(await readText(page), /custom_provider_deleted\s+ada@example\.com/);
  });

  await t.test('a person adds, changes, checks and disables a provider', async (t) => {
    const path = '/identity-providers/custom%3Ashop';
    const read = () => suite.callAuth('GET', '/admin/custom-providers/custom:shop');
    const members = {
      ...{ identifier: 'custom:shop', name: attack, client_id: 'app', client_secret: 'a-secret-of-the-shop' },
      ...{ issuer: provider.issuer, scopes: 'openid email', authorization_params: '{"prompt":"login"}' },
    };
    const add = (change: Record<string, string> = {}) =>
      act('/identity-providers/new', { ...members, ...change });
    t.match(await add({ issuer: 'https://10.0.0.1' }), /validation_failed/, 'an address that is not public');
    t.match(await add({ attribute_mapping: '[]' }), 'Claims is not a JSON object');
    t.match(await add(), `${attack} is added.`);
    t.equal(await readPath(), path);
    t.match(await read(), {
      ...{ name: attack, client_id: 'app', issuer: provider.issuer, enabled: true, pkce_enabled: true },
      ...{ scopes: ['openid', 'email'], authorization_params: { prompt: 'login' } },
    });
    await page.open(`${suite.url}${path}/change`);
    t.equal(await page.evaluate(`document.querySelector('[name=client_secret]').value`), '');
    t.notMatch(await page.evaluate('document.documentElement.outerHTML'), 'a-secret-of-the-shop');
    t.match(await act(`${path}/change`, { name: 'Shop', pkce_enabled: 'false' }), 'The provider is changed.');
    t.match(await read(), { name: 'Shop', client_id: 'app', pkce_enabled: false });
    const [stored] = await sql`select client_secret from auth.custom_oauth_providers`;
    t.equal(stored?.client_secret, 'a-secret-of-the-shop', 'an empty field keeps the secret');

    t.match(await act(`${path}/check`), 'The configuration of Shop has no problem.');
    provider.publish(discoveryPath, { issuer: 'https://other.example' });
    t.match(await act(`${path}/check`), /The check has failed: OIDC discovery failed/);
    t.match(await act(`${path}/disable`), /Shop is disabled.*Enable/s);
    t.match(await read(), { enabled: false });
    t.match(await act(`${path}/enable`), /Shop is enabled.*Disable/s);
    t.match(await read(), { enabled: true });
    const entries = JSON.stringify(await suite.callAuth('GET', `/admin/audit?actor_id=${suite.admin.id}`));
    for (const action of ['created', 'updated', 'checked'])
      t.ok(entries.includes(`"custom_provider_${action}"`), action);
    t.notMatch(entries + suite.logs(), 'a-secret-of-the-shop');
  });

  await t.test('an issuer is shown with its keys, and what keeps them from being loaded', async (t) => {
    await page.open(`${suite.url}/issuers`);
    t.match(
      await readText(page),
      /login\s+https:\/\/127\.0\.0\.1.*orders\s+current\s+1 key\s.*routes\.yaml/s,
    );
    await page.navigate(() => page.evaluate(`document.querySelector('tbody a').click()`));
    t.match(await readText(page), /Last failure\s+none.*Published keys.*<img src.*EC P-256\s+ES256/s);
    t.match(await readText(page), /user_id\s+sub\s+plan\s+plan\s+team\s+(\["|)<img src/);
    writeIssuers(`${provider.issuer}/nothing`);
    await awaitUntil(
      async () => {
        await page.open(`${suite.url}/issuers/login`);
        return /cannot be loaded.*status 404.*503 until then.*issuers check/s.test(await readText(page));
      },
      { what: 'the changed file', timeoutMs: 20_000 },
    );
    await page.open(`${suite.url}/issuers/other`);
    t.match(await readText(page), 'There is no such page');
  });
});

t.test('without a scope, and with a feature that is off', { skip }, async (t) => {
  const suite = await ConsoleSuite.start(t, {
    scopes: ['providers:write'],
    auth: { SVC_CUSTOM_OAUTH_ENABLED: 'false' },
  });
  const page = await suite.signIn('/identity-providers');
  t.match(await readText(page), /This feature is off.*SVC_CUSTOM_OAUTH_ENABLED/s);
  t.notMatch(await readText(page, '.pages'), 'OAuth clients', 'there is no link');
  const statuses = await page.evaluate(`(async () => {
    const body = new URLSearchParams({ _csrf: document.querySelector('[name=_csrf]').value });
    const responses = await Promise.all([fetch('/oauth-clients'), fetch('/oauth-clients/new', { method: 'POST', body })]);
    return responses.map(({ status }) => status).join();
  })()`);
  t.equal(statuses, '403,403');
});
