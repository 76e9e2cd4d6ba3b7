import t from 'tap';
import { discover, discoverClient } from '../src/discovery.ts';
import { createDpop, generateDpopKey } from '../src/dpop/dpop.ts';
import { createIdTokenValidator } from '../src/id-token/id-token.ts';
import { AccessToken, Client, type ClientOptions } from '../src/index.ts';
import { createAuthorizationServer } from '../src/testing.ts';
import { recordingFetch, tokenAnswer } from './support/recording-fetch.ts';

const issuer = 'https://as.test';

function makeClient(options: ClientOptions<true> = {}, ...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  return { client: new Client({ clientId: 'id', clientSecret: 'x', site: issuer, fetch, ...options }), sent };
}

t.test('a callback without iss is rejected if the metadata announces it', async (t) => {
  const server = createAuthorizationServer();
  const redirectUri = 'https://app.test/cb';
  const own = { clientId: 'client', clientSecret: 'secret', redirectUri, fetch: server.fetch };
  const client = await discoverClient(server.issuer, own);
  const { url, transaction } = await client.authCode.startAuthorization();
  const callback = new URL(await server.authorize(url));
  t.equal(callback.searchParams.get('iss'), server.issuer);
  callback.searchParams.delete('iss');
  const completing = client.authCode.completeAuthorization(callback, transaction);
  await t.rejects(completing, { name: 'IssuerMismatchError', message: /no `iss`/ });
  t.equal(server.count('token'), 0);
  const lenient = { issuerRequired: false };
  t.ok((await client.authCode.completeAuthorization(callback, transaction, lenient)).token);
});

const insecure = { name: 'ConfigurationError', message: /allowInsecure/ };

t.test('metadata, key sets and tokens are not requested over plain http', async (t) => {
  const { client, sent } = makeClient({ site: 'http://as.test' });
  const { fetch, sent: discovered } = recordingFetch();
  await t.rejects(discover('http://as.test', { fetch }), insecure);
  t.throws(() => createIdTokenValidator({ client, issuer, jwksUri: 'http://as.test/jwks' }), insecure);
  t.throws(() => createIdTokenValidator({ client, issuer, jwksUri: '/jwks' }), insecure);
  await t.rejects(client.clientCredentials.getToken(), insecure);
  await t.rejects(client.revokeToken('t'), insecure);
  await t.rejects(client.authCode.startAuthorization({ redirect_uri: 'https://app.test/cb' }), insecure);
  t.same([...sent, ...discovered], []);
});

t.test('allowInsecure allows plain http', async (t) => {
  const server = createAuthorizationServer({ issuer: 'http://as.test' });
  const own = { clientId: 'client', clientSecret: 'secret', fetch: server.fetch, allowInsecure: true };
  const client = await discoverClient(server.issuer, own);
  const token = await client.password.getToken('user', 'password', { scope: 'openid' });
  t.match(token.idTokenClaims, { sub: 'user' });
});

for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '[::1]']) {
  t.test(`${host} is loopback`, async (t) => {
    const server = createAuthorizationServer({ issuer: `http://${host}:4000` });
    const own = { clientId: 'client', clientSecret: 'secret', fetch: server.fetch };
    t.ok((await (await discoverClient(server.issuer, own)).clientCredentials.getToken()).token);
  });
}

for (const host of [
  '127.0.0.1.evil.test',
  'localhost.evil.test',
  'evil-localhost',
  'as.localhost',
  '10.0.0.1',
  '[::2]',
]) {
  t.test(`${host} is not loopback`, async (t) => {
    const { client, sent } = makeClient({ site: `http://${host}` });
    await t.rejects(client.clientCredentials.getToken(), insecure);
    t.same(sent, []);
  });
}

t.test('metadata of this machine do not redirect to plain http elsewhere', async (t) => {
  const headers = { location: 'http://evil.test/metadata' };
  const { fetch, sent } = recordingFetch(() => new Response(null, { status: 302, headers }));
  await t.rejects(discover('http://localhost:4000', { fetch }), {
    ...{ name: 'RedirectError', message: /plain http at http:\/\/evil.test/ },
  });
  t.equal(sent.length, 1);
});

for (const token_type of ['mac', 'pop', 7, 'bearer token']) {
  t.test(`a token of type ${token_type} is rejected, unless the scheme is given`, async (t) => {
    const { client } = makeClient({}, tokenAnswer({ token_type }));
    await t.rejects(client.clientCredentials.getToken(), {
      ...{ name: 'TokenResponseError', message: /token_type .* is unknown/ },
    });
    const outcome = await client.clientCredentials.getToken({}, { throwOnError: false });
    t.equal(outcome.ok, false);
    const token = await client.clientCredentials.getToken({}, { authorizationScheme: 'MAC' });
    t.equal(token.headers().authorization, 'MAC at');
  });
}

t.test('a stored token of unknown type is not sent', async (t) => {
  const { client, sent } = makeClient();
  const token = AccessToken.fromHash(client, { access_token: 'at', token_type: 'mac' });
  await t.rejects(token.get('/x'), { name: 'ConfigurationError', message: /mac/ });
  t.same(sent, []);
});

for (const token_type of ['Bearer', 'bearer', 'BEARER', 'DPoP', '', null]) {
  t.test(`a token of type ${JSON.stringify(token_type)} is used`, async (t) => {
    const { client } = makeClient({}, tokenAnswer({ token_type }));
    t.equal((await client.clientCredentials.getToken()).token, 'at');
  });
}

for (const [token_type, isBound] of [
  ['Bearer', false],
  [undefined, false],
  ['DPoP', true],
] as const) {
  t.test(
    `with DPoP requested, a token of type ${token_type} is ${isBound ? 'used' : 'rejected'}`,
    async (t) => {
      const { fetch } = recordingFetch(() => Response.json({ access_token: 'at', token_type }));
      const dpop = await createDpop({ key: await generateDpopKey(), fetch });
      // As a program that logs its requests would wrap it.
      const { client } = makeClient({ fetch: (url, init) => dpop.fetch(url, init) });
      const getting = client.clientCredentials.getToken();
      if (isBound) t.equal((await getting).headers().authorization, 'DPoP at');
      else await t.rejects(getting, { name: 'TokenResponseError', message: /DPoP token was requested/ });
    },
  );
}
