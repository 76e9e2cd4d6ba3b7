import t from 'tap';
import { discover, discoverClient } from '../src/discovery.ts';
import { createDpop, generateDpopKey } from '../src/dpop/dpop.ts';
import type { ClientOptions } from '../src/index.ts';
import { startPushedAuthorization } from '../src/par.ts';
import { createAuthorizationServer } from '../src/testing/authorization-server.ts';

/** Members of the metadata; undefined removes one. */
type Members = Readonly<Record<string, unknown>>;

/** A server that names other methods and algorithms in its metadata. */
async function makeServer(members: Members) {
  const server = createAuthorizationServer();
  const metadata = await discover(server.issuer, { fetch: server.fetch });
  server.inject({ endpoint: 'metadata', effect: () => Response.json({ ...metadata, ...members }) });
  return server;
}

/** Such a server, and a client made of its metadata. */
async function connect(members: Members, options: ClientOptions<true> = {}) {
  const server = await makeServer(members);
  const client = await discoverClient(server.issuer, {
    ...{
      clientId: 'client',
      clientSecret: 'secret',
      redirectUri: 'https://app.test/cb',
      fetch: server.fetch,
    },
    ...options,
  });
  return { server, client };
}

const methods = (...names: string[]) => ({ token_endpoint_auth_methods_supported: names });

t.test('without a choice, a secret is sent by a method that the server supports', async (t) => {
  for (const [members, name] of [
    [{ token_endpoint_auth_methods_supported: undefined }, 'client_secret_basic'],
    [methods('private_key_jwt', 'client_secret_post', 'client_secret_basic'), 'client_secret_basic'],
    [methods('client_secret_jwt', 'client_secret_post'), 'client_secret_post'],
  ] as const) {
    const { server, client } = await connect(members);
    t.ok((await client.clientCredentials.getToken()).token, name);
    const sent = server.requests.at(-1);
    t.equal(sent?.headers.has('authorization'), name === 'client_secret_basic');
    t.equal(sent?.params.has('client_secret'), name === 'client_secret_post');
  }
  const { client } = await connect(methods('private_key_jwt', 'client_secret_jwt'));
  t.match(client.toJSON(), { clientAuth: 'client_secret_jwt' });
});

t.test('a secret that the server supports no method for is rejected', async (t) => {
  await t.rejects(connect(methods('private_key_jwt', 'tls_client_auth')), {
    name: 'ConfigurationError',
    message: /not support client_secret_basic.*private_key_jwt, tls_client_auth.*`clientAuth`/,
  });
});

t.test('a chosen method that the server does not list is rejected with both named', async (t) => {
  for (const clientAuth of ['client_secret_post', { method: 'client_secret_jwt' }] as const) {
    const name = typeof clientAuth === 'string' ? clientAuth : clientAuth.method;
    await t.rejects(connect(methods('client_secret_basic', 'none'), { clientAuth }), {
      name: 'ConfigurationError',
      message: new RegExp(
        `not support ${name}.*client_secret_basic, none.*tokenEndpointAuthMethodsSupported`,
      ),
    });
  }
});

t.test('a list in the options replaces that of incomplete metadata', async (t) => {
  const { client } = await connect(methods('private_key_jwt'), {
    clientAuth: 'client_secret_post',
    tokenEndpointAuthMethodsSupported: ['client_secret_post'],
  });
  t.ok((await client.clientCredentials.getToken()).token);
});

t.test('a certificate of either kind is accepted where the server lists one', async (t) => {
  const { client } = await connect(methods('self_signed_tls_client_auth'), { clientAuth: 'tls_client_auth' });
  t.match(client.toJSON(), { clientAuth: 'tls_client_auth' });
});

t.test('public clients, functions and assertions of third parties need no listed method', async (t) => {
  const own = [
    'none',
    () => undefined,
    { method: 'client_assertion', assertion: () => 'a.b.c' },
  ] as const satisfies ClientOptions['clientAuth'][];
  for (const clientAuth of own) await t.resolves(connect(methods('client_secret_basic'), { clientAuth }));
});

t.test('PKCE is an error where the server lists methods without S256', async (t) => {
  const { server, client } = await connect({
    code_challenge_methods_supported: ['plain'],
    pushed_authorization_request_endpoint: 'https://as.test/par',
  });
  const sent = server.requests.length;
  const refused = { name: 'ConfigurationError', message: /S256.*plain.*`pkce: false`/ };
  await t.rejects(client.authCode.startAuthorization(), refused);
  await t.rejects(startPushedAuthorization(client), refused);
  t.equal(server.requests.length, sent);
  const { url, transaction } = await client.authCode.startAuthorization({}, { pkce: false });
  t.notOk(new URL(url).searchParams.has('code_challenge'));
  const callback = await server.authorize(url);
  t.ok((await client.authCode.completeAuthorization(callback, transaction)).token);
});

t.test('PKCE is used where the server lists no methods', async (t) => {
  const { client } = await connect({ code_challenge_methods_supported: undefined });
  const { url } = await client.authCode.startAuthorization();
  t.equal(new URL(url).searchParams.get('code_challenge_method'), 'S256');
});

t.test('where requests must be pushed, URLs that were not pushed are an error', async (t) => {
  const { server, client } = await connect({ require_pushed_authorization_requests: true });
  const builders = [client.authorizationUrl.bind(client), client.authCode.authorizationUrl];
  for (const build of [...builders, client.implicit.authorizationUrl])
    t.throws(() => build({ state: 's' }), {
      name: 'ConfigurationError',
      message: /RFC 9126.*startAuthorization.*pushAuthorizationRequest/,
    });
  t.match(client.authCode.authorizationUrl({ request_uri: 'urn:x' }), /request_uri=urn/);
  const sent = server.requests.length;
  await t.rejects(client.authCode.startAuthorization(), { message: /pushedAuthorizationRequestEndpoint/ });
  t.equal(server.requests.length, sent);
});

t.test('a DPoP key whose algorithm the server does not list is rejected', async (t) => {
  const server = await makeServer({ dpop_signing_alg_values_supported: ['ES256', 'PS256'] });
  const dpop = await createDpop({ key: await generateDpopKey('ES384'), fetch: server.fetch });
  await t.rejects(discoverClient(server.issuer, { clientId: 'client', fetch: dpop.fetch }), {
    name: 'ConfigurationError',
    message: /ES384.*ES256, PS256.*generateDpopKey/,
  });
});

t.test('a generated DPoP key has an algorithm that the server lists', async (t) => {
  for (const [listed, algorithm] of [
    [['RS256', 'ES256'], 'ES256'],
    [['unheard-of', 'HS256', 'ES384', 'RS256'], 'ES384'],
    [undefined, 'ES256'],
  ] as const) {
    const key = await generateDpopKey(listed);
    t.equal(key.alg, algorithm);
    const server = await makeServer({ dpop_signing_alg_values_supported: listed });
    const dpop = await createDpop({ key, fetch: server.fetch });
    await t.resolves(discoverClient(server.issuer, { clientId: 'client', fetch: dpop.fetch }));
  }
  await t.rejects(generateDpopKey(['HS256', 'none']), {
    name: 'ConfigurationError',
    message: /HS256, none/,
  });
});

t.test('lists that are not arrays are an error', async (t) => {
  const options: object = { codeChallengeMethodsSupported: 'S256' };
  await t.rejects(connect({}, options), { message: /`codeChallengeMethodsSupported` must be an array/ });
});
