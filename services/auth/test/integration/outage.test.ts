import { randomUUID } from 'node:crypto';
import { startPostgres } from '@tollgate/testkit/postgres';
import { startTcpProxy } from '@tollgate/testkit/tcp-proxy';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { createKey } from '../../src/api-keys/key-format.ts';
import { systemRandomness } from '../../src/keys/secrets.ts';
import { adminToken } from '../helpers/admin.ts';
import {
  type Answer,
  type AuthServer,
  type SignedIn,
  signUp,
  startAuthServer,
} from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { apiUrl } from '../helpers/provider-sign-in.ts';

const variables = {
  PASSKEY_ENABLED: 'true',
  WEBAUTHN_RP_ID: 'example.com',
  WEBAUTHN_RP_ORIGINS: 'https://example.com',
  WEBAUTHN_RP_DISPLAY_NAME: 'Example',
  EXTERNAL_GITHUB_ENABLED: 'true',
  EXTERNAL_GITHUB_CLIENT_ID: 'a',
  EXTERNAL_GITHUB_SECRET: 'b',
  EXTERNAL_GITHUB_REDIRECT_URI: 'https://auth.example.com/callback',
  MANUAL_LINKING_ENABLED: 'true',
  PAGES_ENABLED: 'true',
  OAUTH_SERVER_ENABLED: 'true',
  OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
  API_KEYS_ENABLED: 'true',
  API_KEYS_SELF_SERVICE: 'true',
  ORGANIZATIONS_ENABLED: 'true',
  EVENT_WEBHOOKS_ENABLED: 'true',
  API_EXTERNAL_URL: apiUrl,
};

const postgresServer = await startPostgres();
t.teardown(() => postgresServer.stop());

/** A server whose role is not a superuser, behind a proxy, with a user. */
async function startBehindProxy(t: Test, name: string) {
  await postgresServer.createOwnedDatabase(name, 'secret');
  const proxy = await startTcpProxy(postgresServer.port);
  t.teardown(proxy.stop);
  const server = await startAuthServer(t, {
    ...variables,
    DB_DATABASE_URL: `postgres://${name}:secret@127.0.0.1:${proxy.port}/${name}`,
  });
  const admin = postgres(`postgres://postgres@127.0.0.1:${postgresServer.port}/${name}`, { max: 1 });
  t.teardown(() => admin.end());
  const cutConnections = () =>
    admin`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
  return { server, proxy, admin, cutConnections, user: await signUp(server) };
}

const email = 'ben@example.com';
const wellFormedKey = createKey('tgk', systemRandomness);
const credentials = { email, password: 'correct horse' };
const client = { client_id: randomUUID(), client_secret: 'secret' };
/** Bodies that pass validation; other requests have an empty object. */
const bodies: Readonly<Record<string, (user: SignedIn) => unknown>> = {
  'POST /signup': () => credentials,
  'POST /token?grant_type=password': () => ({ ...credentials, email: 'ada@example.com' }),
  'POST /token?grant_type=refresh_token': ({ refreshToken }) => ({ refresh_token: refreshToken }),
  'POST /otp': () => ({ email }),
  'POST /magiclink': () => ({ email }),
  'POST /recover': () => ({ email: 'ada@example.com' }),
  'POST /resend': () => ({ email, type: 'signup' }),
  'POST /verify': () => ({ email, type: 'signup', token: '123456' }),
  'PUT /user': () => ({ data: { a: 1 } }),
  'POST /factors': () => ({ factor_type: 'totp' }),
  'POST /factors/{factor_id}/verify': () => ({ challenge_id: randomUUID(), code: '123456' }),
  'POST /factors/recovery-codes/verify': () => ({ code: 'a-b' }),
  'PATCH /passkeys/{passkey_id}': () => ({ friendly_name: 'a' }),
  'POST /admin/users': () => credentials,
  'PUT /admin/users/{user_id}': () => ({ role: 'x' }),
  'PUT /admin/users/{user_id}/factors/{factor_id}': () => ({ friendly_name: 'a' }),
  'POST /invite': () => ({ email }),
  'POST /user/api-keys': () => ({ name: 'ci' }),
  'POST /admin/api-keys': () => ({ name: 'ci' }),
  'PUT /admin/api-keys/{key_id}': () => ({ name: 'ci' }),
  'PATCH /user/api-keys/{key_id}': () => ({ name: 'ci' }),
  'POST /admin/api-keys/verify': () => ({ key: wellFormedKey }),
  'POST /admin/credentials/verify': () => ({ credential: wellFormedKey }),
  'POST /admin/policies/explain': () => ({
    method: 'GET',
    url: 'http://a.test/',
    as: `user:${randomUUID()}`,
  }),
  'POST /admin/api-keys/import': () => ({ name: 'ci', digest: '0'.repeat(64) }),
  'POST /organizations': () => ({ name: 'Acme' }),
  'POST /admin/organizations': () => ({ name: 'Acme' }),
  'PATCH /organizations/{organization_id}': () => ({ name: 'Acme' }),
  'PUT /admin/organizations/{organization_id}': () => ({ name: 'Acme' }),
  'POST /user/organization': () => ({ id: randomUUID() }),
  'POST /organizations/join': () => ({ token: 'a'.repeat(32) }),
  'POST /organizations/{organization_id}/invitations': () => ({ email }),
  'PATCH /organizations/{organization_id}/members/{user_id}': () => ({ role: 'member' }),
  'POST /admin/organizations/{organization_id}/domains': () => ({ domain: 'example.org' }),
  'PUT /admin/organizations/{organization_id}/members/{user_id}': () => ({ role: 'member' }),
  'POST /admin/webhooks': () => ({ name: 'shop', url: 'https://shop.example.com/events' }),
  'PUT /admin/webhooks/{webhook_id}': () => ({ disabled: true }),
  'POST /admin/oauth/clients': () => ({ grant_types: ['client_credentials'] }),
  'PUT /admin/oauth/clients/{client_id}': () => ({ plan: 'pro' }),
  'POST /oauth/token': () => ({ grant_type: 'client_credentials', ...client }),
  'POST /oauth/revoke': () => ({ token: 'a', ...client }),
  'POST /oauth/introspect': () => ({ token: 'a', ...client }),
  'POST /oauth/device_authorization': () => client,
  'POST /oauth/par': () => client,
  'POST /oauth/clients/register': () => ({ redirect_uris: ['https://shop.example.com/back'] }),
  'POST /admin/generate_link': () => ({ type: 'signup', ...credentials }),
  'POST /passkeys/authentication/verify': () => ({ challenge_id: randomUUID(), credential: { id: 'a' } }),
  'POST /admin/users/{user_id}': () => credentials,
  'POST /admin/users/import': () => ({ email }),
  'POST /admin/custom-providers': () => ({
    identifier: 'custom:shop',
    provider_type: 'oauth2',
    name: 'Shop',
    client_id: 'a',
    client_secret: 'b',
    authorization_url: 'https://shop.example.com/authorize',
    token_url: 'https://shop.example.com/token',
    userinfo_url: 'https://shop.example.com/userinfo',
  }),
};
const queries: Readonly<Record<string, readonly string[]>> = {
  'POST /token': ['?grant_type=password', '?grant_type=refresh_token'],
  'GET /verify': ['?type=signup&token=abc'],
  'GET /authorize': ['?provider=github'],
  'GET /user/identities/authorize': ['?provider=github'],
  'GET /oauth/authorize': [`?client_id=${client.client_id}&redirect_uri=https://shop.example.com/back`],
};

/** Clients authenticate in the body. */
const ofClients: ReadonlySet<string> = new Set(
  ['token', 'revoke', 'introspect', 'device_authorization', 'par'].map((name) => `/oauth/${name}`),
);

interface Attempt {
  readonly route: string;
  readonly answer: Answer;
}

/** Sends a request to each route of the API, and to the pages. */
async function callEveryRoute(server: AuthServer, user: SignedIn): Promise<readonly Attempt[]> {
  const { paths } = (await server.call('GET', '/openapi.json')).body;
  const attempts: Attempt[] = [];
  // Parsed boundary: an OpenAPI document.
  for (const [path, methods] of Object.entries(paths as Record<string, object>)) {
    for (const method of Object.keys(methods)) {
      const name = `${method.toUpperCase()} ${path}`;
      for (const query of queries[name] ?? ['']) {
        const route = name + query;
        const isAdmin = path.startsWith('/admin') || path === '/invite';
        const token = isAdmin ? adminToken() : user.accessToken;
        const hasBody = method !== 'get' && method !== 'delete' && path !== '/callback';
        const url =
          path
            .replaceAll(/\{[^}]*user_id\}/g, user.userId)
            .replace('{identifier}', 'custom:shop')
            .replace('{domain}', 'shop.example.com')
            .replaceAll(/\{\w+\}/g, () => randomUUID()) + query;
        const answer = await server.call(method.toUpperCase(), url, {
          ...(!ofClients.has(path) && { token }),
          ...(hasBody && { body: bodies[route]?.(user) ?? {} }),
        });
        attempts.push({ route, answer });
      }
    }
  }
  return attempts;
}

/** Routes that use no database, or reject the request above before. */
const withoutDatabase = [
  ...['GET /health', 'GET /settings', 'GET /.well-known/jwks.json'],
  ...['GET /.well-known/openid-configuration', 'GET /.well-known/oauth-authorization-server'],
  'GET /openapi.json',
  ...['GET /admin/settings', 'GET /admin/signing-keys', 'GET /admin/issuers'],
  ...['GET /admin/redirect-check', 'GET /callback', 'POST /callback'],
  ...['POST /oauth/authorize', 'GET /oauth/logout', 'POST /oauth/logout'],
  // It says that a check would be 503.
  'POST /admin/policies/explain',
];

/** A link is opened in a browser, which goes on to the app. */
const toApp = /^https:\/\/example\.com.*#.*error=temporarily_unavailable&error_code=database_unavailable/;

function assertUnavailable(t: Test, attempts: readonly Attempt[]): void {
  for (const { route, answer } of attempts) {
    const { status, headers, text } = answer;
    if (route.startsWith('GET /verify')) t.match(headers.get('location'), toApp);
    else if (route === 'GET /ready') t.equal(status, 503);
    else if (withoutDatabase.includes(route)) t.ok(status < 500, route);
    else t.same([status, headers.get('retry-after')], [503, '1'], `${route}: ${text}`);
  }
}

t.test('without a database every route and page is 503 with Retry-After', async (t) => {
  const { server, proxy, user } = await startBehindProxy(t, 'refused');
  const hosts = { [apiUrl]: server.url };
  const browser = new Browser(hosts);
  await browser.submit(`${apiUrl}/pages/sign-in`, {
    ...{ identifier: 'ada@example.com', password: 'correct horse' },
  });
  t.equal((await browser.open(`${apiUrl}/pages/account`)).status, 200);

  proxy.set('refuse');
  assertUnavailable(t, await callEveryRoute(server, user));
  for (const [visitor, path] of [
    [browser, 'account'],
    [new Browser(hosts), 'sign-in'],
  ] as const) {
    const page = await visitor.open(`${apiUrl}/pages/${path}`);
    t.same([page.status, page.headers.get('retry-after')], [503, '1']);
    t.match(page.headers.get('content-type'), 'text/html');
  }

  proxy.set('forward');
  t.match(await server.call('GET', '/user', { token: user.accessToken }), { status: 200 });
});

t.test('without a free connection every route is 503 with Retry-After', async (t) => {
  const { server, admin, cutConnections, user } = await startBehindProxy(t, 'exhausted');
  await admin`alter role exhausted connection limit 0`;
  await cutConnections();
  assertUnavailable(t, await callEveryRoute(server, user));
  await admin`alter role exhausted connection limit -1`;
  t.match(await server.call('GET', '/user', { token: user.accessToken }), { status: 200 });
});

t.test('on a read-only database reads succeed and writes are 503 with Retry-After', async (t) => {
  const { server, admin, cutConnections, user } = await startBehindProxy(t, 'readonly');
  await admin`alter database readonly set default_transaction_read_only = on`;
  await cutConnections();
  const attempts = await callEveryRoute(server, user);
  const failed = attempts.filter(({ answer }) => answer.status >= 500);
  assertUnavailable(t, failed);
  const failedRoutes = failed.map(({ route }) => route);
  for (const route of writes) t.ok(failedRoutes.includes(route), route);
  t.match(await server.call('GET', '/user', { token: user.accessToken }), { status: 200 });
  t.match(server.logs(), /replaced connections: the database is read-only/);
});

const writes = [
  ...['POST /signup', 'POST /token?grant_type=password', 'POST /token?grant_type=refresh_token'],
  ...['PUT /user', 'POST /logout', 'POST /factors', 'POST /recover', 'GET /authorize?provider=github'],
  ...['POST /admin/users', 'PUT /admin/users/{user_id}', 'DELETE /admin/users/{user_id}'],
];
