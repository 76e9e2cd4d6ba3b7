import t from 'tap';
import { clientOptionsFrom, createMetadataSource, discover, discoverClient } from '../src/discovery.ts';
import { createAuthorizationServer } from '../src/testing/authorization-server.ts';

function makeServer() {
  const server = createAuthorizationServer({ now: () => 1_800_000_000 });
  return { server, options: { fetch: server.fetch, now: server.now } };
}

t.test('metadata is found at either well-known path', async (t) => {
  const { server, options } = makeServer();
  for (const format of ['openid-configuration', 'oauth-authorization-server'] as const) {
    const metadata = await discover(server.issuer, { ...options, format });
    t.equal(metadata.token_endpoint, server.endpoints.token);
    t.match(server.requests.at(-1)?.url.pathname, new RegExp(format));
  }
});

t.test('a server with only RFC 8414 metadata is found with the second request', async (t) => {
  const { server, options } = makeServer();
  server.inject({ endpoint: 'metadata', effect: () => new Response('not here', { status: 404 }) });
  t.equal((await discover(server.issuer, options)).issuer, server.issuer);
  t.equal(server.count('metadata'), 2);
});

t.test('a server without metadata is named with the URLs that were tried', async (t) => {
  const { server, options } = makeServer();
  server.inject({ endpoint: 'metadata', times: 2, effect: () => new Response('', { status: 404 }) });
  await t.rejects(discover(server.issuer, options), {
    name: 'DiscoveryError',
    message: /tried https:\/\/as.test\/.well-known\/openid-configuration and https/,
    retryable: false,
  });
});

t.test('a failure of the server is retryable, and the second path is not tried', async (t) => {
  const { server, options } = makeServer();
  server.inject({ endpoint: 'metadata', effect: () => new Response('', { status: 503 }) });
  await t.rejects(discover(server.issuer, options), {
    name: 'DiscoveryError',
    message: /503/,
    retryable: true,
  });
  t.equal(server.count('metadata'), 1);
});

t.test('malformed JSON, an unreachable server and an aborted signal have their own errors', async (t) => {
  const { server, options } = makeServer();
  const headers = { 'content-type': 'application/json' };
  server.inject({ endpoint: 'metadata', effect: () => new Response('{', { headers }) });
  await t.rejects(discover(server.issuer, options), { name: 'ParseError' });
  server.inject({ endpoint: 'metadata', effect: 'refuse' });
  await t.rejects(discover(server.issuer, options), { name: 'ConnectionError' });
  server.inject({ endpoint: 'metadata', effect: 'hang' });
  await t.rejects(discover(server.issuer, { ...options, signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
});

t.test('a client made by discovery gets tokens from the endpoints found', async (t) => {
  const { server, options } = makeServer();
  const client = await discoverClient(server.issuer, {
    ...options,
    clientId: 'client',
    clientSecret: 'secret',
  });
  t.equal(client.settings.issuer, server.issuer);
  const token = await client.clientCredentials.getToken();
  t.ok(server.isActive(token.token));
});

t.test('given options take precedence over the metadata', async (t) => {
  const { server, options } = makeServer();
  const client = await discoverClient(server.issuer, {
    ...options,
    tokenEndpoint: 'https://other.test/token',
  });
  t.equal(client.tokenUrl(), 'https://other.test/token');
});

t.test('a client with a certificate uses the mutual TLS endpoints', (t) => {
  const metadata = {
    issuer: 'https://as.test',
    token_endpoint: 'https://as.test/token',
    revocation_endpoint: 'https://as.test/revoke',
    mtls_endpoint_aliases: { token_endpoint: 'https://mtls.as.test/token' },
  };
  const plain = {
    issuer: 'https://as.test',
    tokenEndpoint: 'https://as.test/token',
    revocationEndpoint: 'https://as.test/revoke',
  };
  t.same(clientOptionsFrom(metadata), plain);
  t.same(clientOptionsFrom(metadata, { mtls: true }), {
    ...plain,
    tokenEndpoint: 'https://mtls.as.test/token',
  });
  t.end();
});

t.test(
  'a metadata source loads once for concurrent calls, and again when the metadata are old',
  async (t) => {
    const { server, options } = makeServer();
    const metadata = createMetadataSource(server.issuer, options);
    t.equal(server.count('metadata'), 0, 'the server need not be up when the source is made');
    await Promise.all(Array.from({ length: 20 }, metadata));
    t.equal(server.count('metadata'), 1);
    server.advance(3599);
    await metadata();
    t.equal(server.count('metadata'), 1);
    server.advance(1);
    await metadata();
    t.equal(server.count('metadata'), 2);
  },
);

t.test('a failure is not cached, and old metadata are used if a reload fails', async (t) => {
  const { server, options } = makeServer();
  const metadata = createMetadataSource(server.issuer, options);
  server.inject({ endpoint: 'metadata', effect: 'refuse' });
  await t.rejects(metadata(), { name: 'ConnectionError' });
  t.equal((await metadata()).issuer, server.issuer);
  server.advance(3600);
  server.inject({ endpoint: 'metadata', effect: 'refuse' });
  t.equal((await metadata()).issuer, server.issuer);
  await metadata();
  t.equal(server.count('metadata'), 4);
});

t.test('metadata or keys that moved by 308 name verb, URL and target', async (t) => {
  const { server, options } = makeServer();
  const headers = { location: 'https://new.test/metadata' };
  const moved = () => new Response('', { status: 308, headers });
  server.inject({ endpoint: 'metadata', effect: moved });
  await t.rejects(discover(server.issuer, options), {
    name: 'DiscoveryError',
    message:
      /^GET https:\/\/as\.test\/\.well-known\/openid-configuration: HTTP status 308, a redirect to https:\/\/new\.test/,
  });
  const client = await discoverClient(server.issuer, { ...options, clientId: 'client' });
  server.inject({ endpoint: 'jwks', effect: moved });
  const { id_token: idToken = '' } = await server.issueTokens({ scope: 'openid' });
  const validate = await client.idTokenValidator();
  await t.rejects(validate(idToken), { message: /^GET https:\/\/as\.test\/jwks: HTTP status 308/ });
});
