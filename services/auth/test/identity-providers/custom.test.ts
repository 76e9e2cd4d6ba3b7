// Providers that the settings define.
import t from 'tap';
import { parseCustomProviders } from '../../src/identity-providers/custom.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { oidcUser, startOidcServer } from '../helpers/oidc-server.ts';
import { startProviderServer } from '../helpers/provider-server.ts';
import { apiUrl, land, siteUrl } from '../helpers/provider-sign-in.ts';

t.test('issuer of OpenID Connect is found by discovery', async (t) => {
  const issuer = await startOidcServer(t, {
    client_id: 'app',
    client_secret: 'secret',
    redirect_uris: [`${apiUrl}/callback`],
    token_endpoint_auth_method: 'client_secret_post',
  });
  const shop = { issuer, client_id: 'app', client_secret: 'secret' };
  const server = await startAuthServer(t, { EXTERNAL_CUSTOM_PROVIDERS: JSON.stringify({ shop }) });
  const browser = new Browser({ [apiUrl]: server.url });
  const landed = land(await browser.visit(`${apiUrl}/authorize?provider=custom:shop`, siteUrl));
  t.ok(landed.fragment.access_token, landed.url.search);
  const { body } = await server.call('GET', '/user', { token: String(landed.fragment.access_token) });
  t.match(body, {
    email: oidcUser.email,
    app_metadata: { provider: 'custom:shop' },
    identities: [
      {
        provider: 'custom:shop',
        identity_data: { iss: issuer, sub: oidcUser.sub, full_name: oidcUser.name, email_verified: true },
      },
    ],
  });
});

t.test('metadata decide how the client authenticates, and whether requests are pushed', async (t) => {
  const issuer = await startOidcServer(
    t,
    { client_id: 'app', client_secret: 'secret', redirect_uris: [`${apiUrl}/callback`] },
    undefined,
    {
      clientAuthMethods: ['client_secret_basic'],
      features: { pushedAuthorizationRequests: { requirePushedAuthorizationRequests: true } },
    },
  );
  const shop = { issuer, client_id: 'app', client_secret: 'secret' };
  const server = await startAuthServer(t, { EXTERNAL_CUSTOM_PROVIDERS: JSON.stringify({ shop }) });
  const browser = new Browser({ [apiUrl]: server.url });
  const landed = land(await browser.visit(`${apiUrl}/authorize?provider=custom:shop`, siteUrl));
  t.ok(landed.fragment.access_token, landed.url.search);
});

t.test('endpoints of OAuth 2.0 and the names of claims are settings', async (t) => {
  const vendors = await startProviderServer(t);
  vendors.set('forum', {
    payloads: { '/me': { uid: 77, mail: 'ada@example.com', confirmed: true, nick: 'ada', team: 'blue' } },
  });
  const url = vendors.url('forum');
  const forum = {
    client_id: 'app',
    client_secret: 'secret',
    authorization_url: `${url}/authorize`,
    token_url: `${url}/token`,
    userinfo_url: `${url}/me`,
    scopes: ['profile'],
    authorization_params: { prompt: 'login' },
    attribute_mapping: {
      sub: 'uid',
      email: 'mail',
      email_verified: 'confirmed',
      preferred_username: 'nick',
      team: 'team',
    },
  };
  const server = await startAuthServer(t, { EXTERNAL_CUSTOM_PROVIDERS: JSON.stringify({ forum }) });
  const browser = new Browser({ [apiUrl]: server.url });
  const landed = land(await browser.visit(`${apiUrl}/authorize?provider=custom:forum`, siteUrl));
  const { body } = await server.call('GET', '/user', { token: String(landed.fragment.access_token) });
  t.match(body, {
    email: 'ada@example.com',
    identities: [{ id: '77', identity_data: { user_name: 'ada', custom_claims: { team: 'blue' } } }],
  });
  t.match(Object.fromEntries(vendors.requests('forum')[0]?.query ?? []), {
    scope: 'profile',
    prompt: 'login',
    code_challenge_method: 'S256',
  });
});

t.test('provider that is down is an error of the server', async (t) => {
  const shop = { issuer: 'http://127.0.0.1:9', client_id: 'app', client_secret: 'secret' };
  const server = await startAuthServer(t, { EXTERNAL_CUSTOM_PROVIDERS: JSON.stringify({ shop }) });
  t.match(await server.call('GET', '/authorize?provider=custom:shop'), {
    status: 500,
    body: { msg: 'Unable to reach the external provider' },
  });
  t.match(await server.call('GET', '/authorize?provider=custom:other'), {
    status: 400,
    body: { msg: 'Unsupported provider: Provider custom:other could not be found' },
  });
});

const client = { client_id: 'app', client_secret: 'secret' };
const endpoints = {
  authorization_url: 'https://as.example/authorize',
  token_url: 'https://as.example/token',
  userinfo_url: 'https://as.example/me',
};
for (const [what, value] of Object.entries({
  'text that is not JSON': '{',
  'a list': '[]',
  'a name with capitals': JSON.stringify({ Shop: { ...client, issuer: 'https://as.example' } }),
  'no client id': JSON.stringify({ shop: { issuer: 'https://as.example' } }),
  'plain http': JSON.stringify({ shop: { ...client, issuer: 'http://as.example' } }),
  'no endpoint of the user': JSON.stringify({ shop: { ...client, ...endpoints, userinfo_url: '' } }),
}))
  t.test(`rejects ${what}`, (t) => {
    t.equal(parseCustomProviders(value), undefined);
    t.end();
  });

t.test('accepts an issuer, or endpoints', (t) => {
  const value = { shop: { ...client, issuer: 'https://as.example' }, forum: { ...client, ...endpoints } };
  t.same(
    parseCustomProviders(JSON.stringify(value))?.map(({ name, scopes }) => [name, scopes]),
    [
      ['shop', ['openid', 'email', 'profile']],
      ['forum', []],
    ],
  );
  t.end();
});
