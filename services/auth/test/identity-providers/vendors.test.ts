// Every provider against a server that responds with the payload that its vendor documents.
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { providerNames, providers } from '../../src/identity-providers/registry.ts';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { type ProviderServer, providerAccessToken, startProviderServer } from '../helpers/provider-server.ts';
import { vendorCases } from './payloads.ts';

const apiUrl = 'http://localhost:9999';

interface Running {
  readonly vendors: ProviderServer;
  readonly server: AuthServer;
}

async function start(t: Test): Promise<Running> {
  const vendors = await startProviderServer(t);
  const variables: Record<string, string> = { MAILER_AUTOCONFIRM: 'false', SMTP_HOST: '' };
  for (const [name, { behavior, path = '' }] of Object.entries(vendorCases)) {
    const url = vendors.url(name);
    const issuer = behavior.issuer && `${url}${behavior.issuer}`;
    vendors.set(name, { ...behavior, ...(issuer && { issuer }) });
    const prefix = `EXTERNAL_${name.toUpperCase()}`;
    variables[`${prefix}_ENABLED`] = 'true';
    variables[`${prefix}_CLIENT_ID`] = `${name}-client`;
    variables[`${prefix}_SECRET`] = `${name}-secret`;
    variables[`${prefix}_URL`] = `${url}${path}`;
  }
  return { vendors, server: await startAuthServer(t, variables) };
}

/** Signs in and returns the URL that the client is sent to. */
async function signIn(browser: Browser, name: string, query: Readonly<Record<string, string>> = {}) {
  const parameters = new URLSearchParams({ provider: name, ...query });
  return await browser.visit(`${apiUrl}/authorize?${parameters}`, 'https://example.com/');
}

/** Where a callback with this state leads. */
async function callBack(browser: Browser, state: string, isFormPost: boolean) {
  const parameters = new URLSearchParams({ state, code: 'code-1' });
  const response = isFormPost
    ? await browser.open(`${apiUrl}/callback`, parameters)
    : await browser.open(`${apiUrl}/callback?${parameters}`);
  return new URL(response.headers.get('location') ?? '').searchParams.get('error_code');
}

t.test('every OAuth 2.0 provider has a case', (t) => {
  const tested = providerNames.filter((name) => 'endpoints' in providers[name]);
  t.same(new Set(Object.keys(vendorCases)), new Set(tested));
  t.end();
});

t.test('every provider is in the table of the documentation', async (t) => {
  const page = join(import.meta.dirname, '../../../../docs/identity-providers.md');
  const rows = (await readFile(page, 'utf8')).split('\n').filter((line) => line.startsWith('| `'));
  const named = new Set(rows.flatMap((row) => Array.from(row.matchAll(/`(\w+)`/g), ([, name]) => name)));
  for (const name of providerNames) t.ok(named.has(name), name);
});

t.test('providers sign users in with the identity that the vendor documents', async (t) => {
  const running = await start(t);
  const { vendors, server } = running;
  for (const [name, { identity, authorization = {}, query = {}, isVerified = true }] of Object.entries(
    vendorCases,
  ))
    await t.test(name, async (t) => {
      const browser = new Browser({ [apiUrl]: server.url });
      const landed = await signIn(browser, name, query);
      const fragment = new URLSearchParams(landed.hash.slice(1));
      const [sent] = vendors.requests(name).filter(({ query }) => query.has('redirect_uri'));
      t.match(Object.fromEntries(sent?.query ?? []), {
        client_id: `${name}-client`,
        redirect_uri: `${apiUrl}/callback`,
        ...authorization,
      });
      if (!isVerified) {
        t.match(Object.fromEntries(landed.searchParams), {
          error: 'access_denied',
          error_code: 'provider_email_needs_verification',
          error_description: `Unverified email with ${name}. A confirmation email has been sent to your ${name} email`,
        });
        return;
      }
      t.equal(fragment.get('provider_token'), providerAccessToken, landed.search);
      const { body } = await server.call('GET', '/user', { token: fragment.get('access_token') ?? '' });
      t.match(body, {
        email: `${name}@example.com`,
        app_metadata: { provider: name, providers: [name] },
        identities: [
          {
            provider: name,
            identity_data: { ...identity, email: `${name}@example.com`, email_verified: true },
          },
        ],
      });
    });

  for (const [name, { behavior }] of Object.entries(vendorCases))
    await t.test(`${name}: state of another browser, and a used one, are rejected`, async (t) => {
      const browser = new Browser({ [apiUrl]: server.url });
      const attacker = new Browser({ [apiUrl]: server.url });
      const isFormPost = behavior.formPost !== undefined;
      const lastState = () =>
        vendors
          .requests(name)
          .filter(({ query }) => query.has('state'))
          .at(-1)
          ?.query.get('state') ?? '';
      await signIn(browser, name);
      const used = lastState();
      t.equal(await callBack(browser, used, isFormPost), 'bad_oauth_state', 'used');
      await browser.open(
        (await browser.open(`${apiUrl}/authorize?provider=${name}`)).headers.get('location') ?? '',
      );
      const open = lastState();
      t.not(open, used);
      await signIn(attacker, name);
      t.equal(await callBack(attacker, open, isFormPost), 'bad_oauth_state', 'of another browser');
      t.not(await callBack(browser, open, isFormPost), 'bad_oauth_state', 'valid in its browser');
    });

  await t.test('facebook requests carry the proof of the secret', async (t) => {
    const request = vendors.requests('facebook').find(({ path }) => path === '/me');
    const proof = createHmac('sha256', 'facebook-secret').update(providerAccessToken).digest('hex');
    t.equal(request?.query.get('appsecret_proof'), proof);
  });
  await t.test('notion and twitch requests have the headers of their API', async (t) => {
    const requestOf = (name: string, path: string) =>
      vendors.requests(name).find((request) => request.path === path);
    t.match(requestOf('notion', '/v1/users/me')?.headers, { 'notion-version': '2021-08-16' });
    t.match(requestOf('twitch', '/helix/users')?.headers, { 'client-id': 'twitch-client' });
  });
});
