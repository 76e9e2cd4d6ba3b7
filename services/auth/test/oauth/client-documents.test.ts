// Clients whose client_id is the URL of their metadata.
import { awaitUntil } from '@tollgate/testkit/await-until';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { documentClients, startDocumentServer } from '../helpers/client-documents.ts';
import {
  authorizationServer,
  authorize,
  openAuthorize,
  redeem,
  requestToken,
} from '../helpers/oauth-clients.ts';

const minuteMs = 60_000;

const settings = { ...authorizationServer, ...documentClients };
const documents = await startDocumentServer(t);
const shared = await startAuthServer(t, settings);
const { accessToken } = await signUp(shared);

/** Forgets what earlier tests have fetched, and the limit of fetches. */
function start() {
  documents.requests.length = 0;
  shared.clock.advance(5 * minuteMs);
  return shared;
}

const refresh = (server: AuthServer, clientId: string, token: unknown) =>
  requestToken(server, { grant_type: 'refresh_token', client_id: clientId, refresh_token: String(token) });

/** The client of a document, as administrators see it. */
async function storedClient(server: AuthServer, url: string): Promise<{ readonly client_id: string }> {
  const { body } = await server.call('GET', '/admin/oauth/clients', { token: adminToken() });
  // Parsed boundary: the members that the tests use.
  const clients = body.clients as { client_id: string; document_url?: string }[];
  const client = clients.find(({ document_url }) => document_url === url);
  if (client === undefined) throw new Error(`no client has the URL ${url}`);
  return client;
}

const claimsOf = (token: unknown): Readonly<Record<string, unknown>> =>
  JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString());

t.test('its tokens name the URL, and its sessions outlive an outage of its host', async (t) => {
  const server = start();
  const away = await startDocumentServer(t);
  const id = away.publish('/client.json', {}, { headers: { 'cache-control': 'max-age=300' } });
  const scope = 'openid email';
  const code = await authorize(server, accessToken, { client_id: id, scope });
  const { body } = await redeem(server, { client_id: id }, code);
  t.match(claimsOf(body.access_token), { client_id: id });
  t.match(claimsOf(body.id_token), { aud: id });
  t.equal(away.requests.length, 1, 'the document is cached');
  const { body: grants } = await server.call('GET', '/user/oauth/grants', { token: accessToken });
  t.match(grants, [{ client: { name: 'Assistant' } }]);

  server.clock.advance(5 * minuteMs);
  away.stop();
  const refreshed = await refresh(server, id, body.refresh_token);
  t.equal(refreshed.status, 200, refreshed.text);
  t.match(claimsOf(refreshed.body.access_token), { client_id: id });
  const again = await openAuthorize(server, { client_id: id });
  t.match(again, {
    status: 400,
    body: { msg: /its metadata document cannot be used: it cannot be fetched/ },
  });
});

t.test('a changed document applies once the stored one has expired', async (t) => {
  const server = start();
  const uri = { redirect_uri: 'https://app.example.org/new' };
  const id = documents.publish('/changed.json', {}, { headers: { 'cache-control': 'no-store' } });
  const open = () => openAuthorize(server, { client_id: id, ...uri });
  t.match(await open(), { status: 400, body: { msg: /invalid redirect_uri/ } });
  documents.publish('/changed.json', { redirect_uris: [uri.redirect_uri], client_name: 'New' });
  t.equal((await open()).status, 400, 'a document is used for a minute');
  server.clock.advance(minuteMs);
  const answers = await Promise.all(Array.from({ length: 5 }, open));
  t.same(
    answers.map(({ status }) => status),
    Array(5).fill(302),
  );
  t.equal(documents.requests.length, 2, 'concurrent requests share a fetch');
  const old = await openAuthorize(server, { client_id: id });
  t.equal(old.status, 400, 'redirect URIs are those of the document only');
  const { text } = await server.call('GET', '/admin/audit', { token: adminToken() });
  for (const action of ['oauth_client_created', 'oauth_client_updated']) t.match(text, action);
});

t.test('documents that cannot be used are refused, with the reason', async (t) => {
  const server = start();
  const { publish } = documents;
  const jwks = { keys: [] };
  const cases: Readonly<Record<string, readonly [id: string, problem: RegExp]>> = {
    'of another URL': [publish('/other', { client_id: `${documents.base}/x` }), /client_id is not its URL/],
    'no JSON': [publish('/text', 'hello'), /it is not JSON/],
    'a list': [publish('/list', '[]'), /client_id is not its URL/],
    'too large': [publish('/large', 'x'.repeat(20_000)), /cannot be fetched/],
    'a redirect': [
      publish('/moved', '', { status: 302, headers: { location: '/text' } }),
      /cannot be fetched/,
    ],
    missing: [`${documents.base}/missing`, /cannot be fetched/],
    'with a secret': [publish('/secret', { client_secret: 'x' }), /it has client_secret/],
    'with a method by secret': [
      publish('/basic', { token_endpoint_auth_method: 'client_secret_basic' }),
      /must be one of: none, private_key_jwt/,
    ],
    'without keys': [publish('/keys', { token_endpoint_auth_method: 'private_key_jwt', jwks }), /jwks/],
    'without redirect URIs': [publish('/uris', { redirect_uris: [] }), /redirect_uris is required/],
    'with a script': [publish('/script', { redirect_uris: ['javascript:alert(1)'] }), /not allowed/],
    'with a number': [publish('/number', { client_name: 1 }), /client_name must be a text/],
    'without usable grants': [
      publish('/grants', { grant_types: ['password'] }),
      /grant_types cannot be empty/,
    ],
  };
  for (const [name, [id, problem]] of Object.entries(cases)) {
    const { status, body } = await openAuthorize(server, { client_id: id });
    t.match({ status, msg: body.msg }, { status: 400, msg: problem }, name);
    const token = await redeem(server, { client_id: id }, 'code');
    t.match(token.body, { error: 'invalid_client' }, name);
  }
  for (const id of [
    ...[`${documents.base}/`, documents.base, `${documents.base}/a/../b`, `${documents.base}/a#b`],
    ...[`${documents.base}/a/%2e%2e/b`, documents.base.replace('//', '//user@').concat('/a')],
    ...['http://localhost/client.json', 'https://LOCALHOST/a', `${documents.base}/${'a'.repeat(255)}`],
  ])
    t.match(
      await openAuthorize(server, { client_id: id }),
      { status: 400, body: { msg: 'invalid client_id' } },
      id,
    );
  const internal = await openAuthorize(server, { client_id: 'https://127.0.0.1/client.json' });
  t.match(
    internal,
    { status: 400, body: { msg: /it cannot be fetched$/ } },
    'private addresses are not shown',
  );
  t.match(server.logs(), 'which is not public');
});

t.test('a network makes the server fetch a limited number of documents', async (t) => {
  const server = start();
  for (let count = 0; count < 30; count++)
    await openAuthorize(server, { client_id: `${documents.base}/${count}` });
  t.equal((await openAuthorize(server, { client_id: `${documents.base}/one-more` })).status, 429);
  t.equal(documents.requests.length, 30);
});

t.test('slow hosts hold neither the fetches of other networks nor clients that are known', async (t) => {
  const server = start();
  const known = documents.publish('/known.json', {}, { headers: { 'cache-control': 'no-store' } });
  t.equal((await openAuthorize(server, { client_id: known })).status, 302);
  server.clock.advance(minuteMs);
  documents.requests.length = 0;
  const { promise: until, resolve: release } = Promise.withResolvers<void>();
  const open = (client_id: string, network: number) => {
    const query = new URLSearchParams({
      ...{ client_id, response_type: 'code', redirect_uri: 'https://app.example.org/callback' },
      ...{ code_challenge: 'a'.repeat(43), code_challenge_method: 'plain' },
    });
    const headers = { 'x-forwarded-for': `8.8.${network}.1` };
    return server.call('GET', `/oauth/authorize?${query}`, { headers });
  };
  const slow = Array.from({ length: 9 }, (_, count) => documents.publish(`/slow-${count}`, {}, { until }));
  const waiting = slow.slice(0, 8).map((id, count) => open(id, count < 4 ? 1 : 2));
  await awaitUntil(() => documents.requests.length === 8, { what: 'the fetches of two networks' });
  const refused = await open(slow[8] ?? '', 1);
  t.match([refused.status, refused.headers.get('retry-after')], [429, '2'], 'the network');
  t.equal((await open(slow[8] ?? '', 3)).status, 429, 'the host');
  t.equal((await open(known, 1)).status, 302, 'its document is used meanwhile');
  const elsewhere = await startDocumentServer(t);
  t.equal((await open(elsewhere.publish('/client.json', {}), 3)).status, 302, 'another host and network');
  server.clock.advance(60 * minuteMs);
  t.equal((await open(known, 1)).status, 429, 'for an hour only');
  release();
  for (const answer of await Promise.all(waiting)) t.equal(answer.status, 302);
  t.equal((await open(known, 1)).status, 302);
});

t.test('a document is stored although an administrator changes its client meanwhile', async (t) => {
  const server = start();
  const headers = { 'cache-control': 'no-store' };
  const id = documents.publish('/contended.json', {}, { headers });
  await openAuthorize(server, { client_id: id });
  server.clock.advance(minuteMs);
  documents.requests.length = 0;
  const { promise: until, resolve: release } = Promise.withResolvers<void>();
  const uri = 'https://app.example.org/new';
  documents.publish('/contended.json', { redirect_uris: [uri] }, { headers, until });
  const opening = openAuthorize(server, { client_id: id, redirect_uri: uri, scope: 'orders:read' });
  await awaitUntil(() => documents.requests.length === 1, { what: 'the fetch' });
  const { client_id: storedId } = await storedClient(server, id);
  const one = `/admin/oauth/clients/${storedId}`;
  await server.call('PUT', one, { token: adminToken(), body: { scopes: ['orders:read'] } });
  release();
  const opened = await opening;
  t.equal(opened.status, 302, opened.text);
  t.match((await server.call('GET', one, { token: adminToken() })).body, {
    redirect_uris: [uri],
    scopes: ['orders:read'],
  });
});

t.test('settings and administrators decide which clients are accepted', async (t) => {
  const server = await startAuthServer(t, {
    ...settings,
    OAUTH_SERVER_CLIENT_ID_METADATA_HOSTS: 'localhost',
  });
  const id = documents.publish('/client.json', {});
  const open = () => openAuthorize(server, { client_id: id });
  t.equal((await open()).status, 302);
  const { client_id: storedId } = await storedClient(server, id);
  t.match(
    await openAuthorize(server, { client_id: storedId }),
    { status: 400, body: { msg: 'invalid client_id' } },
    'the id of its row does not get around the document',
  );
  t.match(await redeem(server, { client_id: storedId }, 'code'), { body: { error: 'invalid_client' } });
  t.match(await openAuthorize(server, { client_id: 'https://other.example/client.json' }), {
    body: { msg: /its host is not allowed/ },
  });
  const token = adminToken();
  const one = `/admin/oauth/clients/${storedId}`;
  await server.call('PUT', one, { token, body: { disabled: true } });
  t.equal((await open()).status, 400, 'disabled');
  await server.call('PUT', one, { token, body: { disabled: false, scopes: ['orders:read'] } });
  server.clock.advance(24 * 60 * minuteMs);
  documents.publish('/client.json', { client_name: 'Renamed' });
  t.equal((await openAuthorize(server, { client_id: id, scope: 'orders:read' })).status, 302);
  t.match((await server.call('GET', one, { token })).body, {
    client_name: 'Renamed',
    scopes: ['orders:read'],
  });
  await server.call('DELETE', one, { token });
  t.match(await open(), { status: 400, body: { msg: /the client was deleted/ } });
});

t.test('an app on a device may use any port of a loopback address in its document', async (t) => {
  const server = start();
  const id = documents.publish('/app.json', {
    redirect_uris: ['http://127.0.0.1/callback', 'http://localhost:3000/callback'],
  });
  const statusOf = async (redirect_uri: string) =>
    (await openAuthorize(server, { client_id: id, redirect_uri })).status;
  for (const uri of [
    'http://127.0.0.1/callback',
    'http://127.0.0.1:51234/callback',
    'http://localhost:4000/callback',
  ])
    t.equal(await statusOf(uri), 302, uri);
  for (const uri of [
    ...['http://127.0.0.1:51234/other', 'http://127.0.0.2:1/callback', 'https://127.0.0.1:1/callback'],
    ...[
      'http://127.0.0.1:1@evil.example/callback',
      'http://127.0.0.1:51234/callback?x',
      'http://[::1]:1/callback',
      '\u0001http://127.0.0.1:1/callback',
    ],
  ])
    t.equal(await statusOf(uri), 400, uri);
});

t.test('a confidential client signs assertions with a key of its document', async (t) => {
  const server = start();
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const id = documents.publish('/service.json', {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [await exportJWK(publicKey)] },
  });
  const user = await signUp(server, { email: 'eve@example.com' });
  const code = await authorize(server, user.accessToken, { client_id: id });
  t.match(await redeem(server, { client_id: id }, code), { status: 401, body: { error: 'invalid_client' } });
  const seconds = Math.floor(server.clock.nowMs() / 1000);
  const claims = {
    iss: id,
    sub: id,
    aud: 'http://localhost:9999',
    jti: '1',
    iat: seconds,
    exp: seconds + 60,
  };
  const assertion = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
  const { status, text } = await redeem(server, { client_id: id }, code, {
    client_assertion: assertion,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  });
  t.equal(status, 200, text);
});
