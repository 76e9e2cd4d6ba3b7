import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, exportPKCS8, generateKeyPair } from 'jose';
import t, { type Test } from 'tap';
import { discoverClient } from '../../../src/discovery.ts';
import { introspectToken } from '../../../src/introspection.ts';
import { headlessBrowser } from '../oidc-provider/support/headless-browser.ts';
import { startProvider, user } from '../oidc-provider/support/start-provider.ts';
import { readmeSection, runReadme } from './readme-blocks.ts';

const clientSecret = 'the secret of my app';
const redirectUri = 'https://app.example/callback';
const scopes = ['openid', 'email', 'offline_access', 'orders:read'];

const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
const clientKey = { ...(await exportJWK(publicKey)), kid: 'key-1', alg: 'ES256', use: 'sig' };

/**
 * A certified provider as it comes: discovery, RS256, endpoints under paths of its own. And an API
 * that asks it about tokens.
 */
async function startStandardServer(t: Test, client: Record<string, unknown> = {}) {
  const signing = await generateKeyPair('RS256', { extractable: true });
  const provider = await startProvider({
    clients: [
      {
        ...{ client_id: 'my-app', client_secret: clientSecret, redirect_uris: [redirectUri] },
        grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
        ...client,
      },
      {
        ...{ client_id: 'api', client_secret: 'the secret of the API' },
        ...{ grant_types: [], redirect_uris: [], response_types: [] },
      },
    ],
    configuration: {
      jwks: { keys: [{ ...(await exportJWK(signing.privateKey)), kid: 'rsa', alg: 'RS256', use: 'sig' }] },
      ...{ clientDefaults: {}, scopes },
    },
  });
  t.teardown(provider.stop);
  const { issuer } = provider;
  const api = await discoverClient(issuer, { clientId: 'api', clientSecret: 'the secret of the API' });
  const server = createServer(async (request, response) => {
    const [, token = ''] = request.headers.authorization?.split(' ') ?? [];
    const introspection = await introspectToken(api, token);
    const status = introspection.active ? (request.url === '/orders' ? 200 : 404) : 401;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(introspection.active ? [{ orderId: introspection.scope }] : {}));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => void server.close());
  // A listening TCP server has such an address.
  const { port } = server.address() as AddressInfo;
  const apiUrl = `http://127.0.0.1:${port}`;
  return { issuer, replacements: { 'https://as.example': issuer, 'https://api.example': apiUrl } };
}

t.test('the first program of the README gets a token and calls an API with it', async (t) => {
  const { replacements } = await startStandardServer(t);
  const first = readmeSection();
  const run = {
    scope: { clientSecret, console: { log: () => undefined } },
    replacements,
    result: 'orders.parsed',
  };
  t.same(await runReadme([first], run), [{ orderId: 'orders:read' }]);
});

t.test('its user signs in, and the ID token says who it is', async (t) => {
  const { issuer } = await startStandardServer(t);
  const printed: unknown[] = [];
  await runReadme([readmeSection('Sign a user in')], {
    scope: {
      ...{ clientSecret, console: { log: (text: unknown) => printed.push(text) } },
      visit: async (url: string) => new Request(await headlessBrowser().visit(url, redirectUri)),
    },
    between: 'const callback = await visit(url);',
    replacements: { 'https://as.example': issuer },
    result: 'undefined',
  });
  t.same(printed, [user.sub]);
});

t.test('its TokenManager calls the API', async (t) => {
  const { replacements } = await startStandardServer(t);
  const programs = [readmeSection(), readmeSection('Keep tokens valid')];
  const run = {
    scope: { clientSecret, console: { log: () => undefined } },
    replacements,
    result: 'response.status',
  };
  t.equal(await runReadme(programs, run), 200);
});

t.test('its second process discovers the server without a request', async (t) => {
  const { issuer } = await startStandardServer(t);
  const stored = new Map<string, string>();
  const run = () =>
    runReadme([readmeSection('Share metadata and keys')], {
      scope: {
        clientSecret,
        store: {
          get: async (key: string) => stored.get(key),
          set: async (key: string, value: string) => void stored.set(key, value),
        },
      },
      replacements: { 'https://as.example': issuer },
      result: 'client.settings.tokenEndpoint',
    });
  const endpoint = await run();
  const first = stored.get('oauth-documents');
  t.equal(await run(), endpoint);
  t.equal(stored.get('oauth-documents'), first, 'with the time of the first load');
});

t.test("error handling example prints the API's error", async (t) => {
  const { replacements } = await startStandardServer(t);
  const printed: unknown[] = [];
  const scope = { clientSecret, console: { log: (...values: unknown[]) => printed.push(values) } };
  const programs = [readmeSection(), readmeSection('Handle errors')];
  await runReadme(programs, { scope, replacements, result: 'undefined' });
  t.match(printed, [['orders:read'], [404]]);
});

t.test('its client that authenticates with a key gets a token', async (t) => {
  const { issuer } = await startStandardServer(t, {
    ...{ client_secret: undefined, token_endpoint_auth_method: 'private_key_jwt' },
    ...{ token_endpoint_auth_signing_alg: 'ES256', jwks: { keys: [clientKey] } },
  });
  const { blocks, imports } = readmeSection('Client authentication');
  const [first = '', ...rest] = blocks;
  const program = {
    imports: new Map([...imports, ['@tollgate/oauth2-client/discovery', ['discoverClient']]]),
    blocks: [`const client = ${first}`, ...rest],
  };
  const run = {
    scope: { pemOrJwkOrCryptoKey: await exportPKCS8(privateKey) },
    replacements: { 'https://as.example': issuer },
    result: "(await client.clientCredentials.getToken({ scope: 'orders:read' })).scope",
  };
  t.same(await runReadme([program], run), ['orders:read']);
});
