import t from 'tap';
import { createMetadataSource, DocumentCache, discover, discoverClient } from '../src/discovery.ts';
import { Client } from '../src/index.ts';
import { type StartedAuthorizationServer, startAuthorizationServer } from '../src/testing.ts';

async function startServer(t: { teardown(close: () => unknown): void }) {
  const server = await startAuthorizationServer();
  t.teardown(() => server.close());
  return server;
}

/** Does what a process does for one sign-in: discovery, and validation of an ID token. */
async function useOnce(server: StartedAuthorizationServer, cache: DocumentCache, now = server.now) {
  const client = await discoverClient(server.issuer, { clientId: 'client', cache, now });
  const validate = await client.idTokenValidator();
  return await validate((await server.issueTokens({ scope: 'openid' })).id_token ?? '');
}

const counts = (server: StartedAuthorizationServer) => [server.count('metadata'), server.count('jwks')];

/** Through JSON, as from a store. */
function transfer(cache: DocumentCache, now: () => number): DocumentCache {
  return new DocumentCache({ now, imported: JSON.parse(JSON.stringify(cache.export())) });
}

t.test('clients that share a cache load metadata and keys once, also at the same time', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  await Promise.all(Array.from({ length: 5 }, () => useOnce(server, cache)));
  t.same(counts(server), [1, 1]);
  await useOnce(server, cache);
  await discover(server.issuer, { cache, now: server.now });
  await createMetadataSource(server.issuer, { cache, now: server.now })();
  t.same(counts(server), [1, 1]);
  await useOnce(server, new DocumentCache());
  t.same(counts(server), [2, 2], 'another cache shares nothing');
});

t.test('metadata at the second path are found in the cache', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  server.inject({ endpoint: 'metadata', effect: () => new Response('', { status: 404 }) });
  await discover(server.issuer, { cache, now: server.now });
  await discover(server.issuer, { cache, now: server.now });
  t.equal(server.count('metadata'), 2);
});

t.test('a change of returned metadata does not affect the other clients', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  const metadata = await discover(server.issuer, { cache, now: server.now });
  Object.assign(metadata, { token_endpoint: 'https://evil.example/token' });
  t.equal((await discover(server.issuer, { cache, now: server.now })).token_endpoint, server.endpoints.token);
});

t.test('a process that imports a cache makes no request until its documents are old', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  await useOnce(server, cache);
  server.advance(599);
  await useOnce(server, transfer(cache, server.now));
  t.same(counts(server), [1, 1]);
  server.advance(1);
  await useOnce(server, transfer(cache, server.now));
  t.same(counts(server), [1, 2], 'keys live for 600 seconds');
  server.advance(3000);
  await useOnce(server, transfer(cache, server.now));
  t.same(counts(server), [2, 3], 'metadata for 3600, from when they were loaded');
});

t.test('an export of an import keeps the time at which a document was loaded', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  await useOnce(server, cache);
  const exported = cache.export();
  server.advance(60);
  const again = transfer(cache, server.now).export();
  t.same(again, exported);
  const urls = exported.documents.map(({ url }) => url);
  t.same(urls, [`${server.issuer}/.well-known/openid-configuration`, server.endpoints.jwks]);
});

t.test('documents from the future are loaded again', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  await useOnce(server, cache);
  const behind = (seconds: number) => transfer(cache, () => server.now() - seconds);
  t.equal(behind(60).export().documents.length, 2, 'clocks of machines differ');
  t.equal(behind(61).export().documents.length, 0);
});

t.test('a client adopts the keys that another one has loaded', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  const clients = await Promise.all(
    [1, 2].map(() => discoverClient(server.issuer, { clientId: 'client', cache, now: server.now })),
  );
  const validateAll = async () => {
    const { id_token: idToken = '' } = await server.issueTokens({ scope: 'openid' });
    for (const client of clients) await (await client.idTokenValidator())(idToken);
  };
  await validateAll();
  server.rotateSigningKey();
  await validateAll();
  t.equal(server.count('jwks'), 2);
});

t.test('a failed load and a document that is not valid are not cached', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  server.inject({ endpoint: 'metadata', effect: () => Response.json({ issuer: 'https://evil.example' }) });
  await t.rejects(discover(server.issuer, { cache }), { name: 'IssuerMismatchError' });
  server.inject({ endpoint: 'jwks', effect: () => Response.json({ keys: 1 }) });
  await t.rejects(useOnce(server, cache), { name: 'DiscoveryError' });
  await useOnce(server, cache);
  t.same(counts(server), [2, 2]);
});

/** So many levels that functions that call themselves exceed the stack. */
const nested = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;

t.test('deeply nested documents are errors of this library', async (t) => {
  const server = await startServer(t);
  const { issuer } = server;
  const respond = (name: string, member: string) => () =>
    new Response(`{"${name}":${member},"x":${nested}}`, { headers: { 'content-type': 'application/json' } });
  server.inject({ endpoint: 'metadata', effect: respond('issuer', `"${issuer}"`) });
  await t.rejects(discover(issuer), { name: 'DiscoveryError', message: /levels/ });
  server.inject({ endpoint: 'jwks', effect: respond('keys', '[]') });
  await t.rejects(useOnce(server, new DocumentCache()), { name: 'DiscoveryError', message: /levels/ });
  const documents = [{ url: `${issuer}/jwks`, fetchedAt: 1, document: { x: JSON.parse(nested) } }];
  t.throws(() => new DocumentCache({ imported: { documents } }), {
    name: 'ConfigurationError',
    message: /`documents\[0\]\.document` .* levels/,
  });
});

t.test('imported documents that are not valid for their URL are loaded again', async (t) => {
  const server = await startServer(t);
  const fetchedAt = server.now();
  const documents = [
    {
      url: `${server.issuer}/.well-known/openid-configuration`,
      fetchedAt,
      document: { issuer: 'https://evil.example' },
    },
    { url: server.endpoints.jwks, fetchedAt, document: { keys: 'none' } },
  ];
  const cache = new DocumentCache({ now: server.now, imported: { documents } });
  await useOnce(server, cache);
  t.same(counts(server), [1, 1]);
});

t.test('an aborted discovery does not affect clients with the same cache', async (t) => {
  const server = await startServer(t);
  const cache = new DocumentCache({ now: server.now });
  server.inject({ endpoint: 'metadata', effect: 'hang' });
  const controller = new AbortController();
  const aborted = discover(server.issuer, { cache, now: server.now, signal: controller.signal });
  const other = discover(server.issuer, { cache, now: server.now });
  t.equal((await other).issuer, server.issuer);
  controller.abort();
  await t.rejects(aborted, { name: 'AbortError' });
});

t.test('data that are no exported cache are an error that names every problem', async (t) => {
  const document = { issuer: 'https://as.example' };
  const url = 'https://as.example/jwks';
  const invalid: [unknown, RegExp][] = [
    [null, /an object with an array `documents`/],
    [[], /an object with an array `documents`/],
    [{ documents: {} }, /an object with an array `documents`/],
    [{ documents: [null] }, /`documents\[0\]` must be an object/],
    [{ documents: [{ url: 'file:///etc/passwd', fetchedAt: 1, document }] }, /`documents\[0\]\.url`/],
    [{ documents: [{ url, fetchedAt: '1', document }] }, /`documents\[0\]\.fetchedAt`/],
    [{ documents: [{ url, fetchedAt: 1, document: [] }] }, /`documents\[0\]\.document`/],
    [
      { documents: [{ url, fetchedAt: 1, document }, { url: 1 }] },
      /`documents\[1\]\.url` .*; `documents\[1\]\.fetchedAt` .*; `documents\[1\]\.document`/,
    ],
    [{ documents: Array.from({ length: 101 }, () => ({ url, fetchedAt: 1, document })) }, /at most 100/],
  ];
  for (const [imported, message] of invalid)
    t.throws(() => new DocumentCache({ imported }), { name: 'ConfigurationError', message });
});

t.test('a cache keeps 100 documents, the last ones, and none that is too large', async (t) => {
  const cache = new DocumentCache({ now: () => 1 });
  for (let i = 0; i < 101; i += 1) await cache.load(`https://as.example/${i}`, async () => ({ i }));
  const large = await cache.load('https://as.example/large', async () => ({ x: 'x'.repeat(512 * 1024) }));
  t.ok(large.document, 'it is used nevertheless');
  const urls = cache.export().documents.map(({ url }) => url);
  t.equal(urls.length, 100);
  t.equal(urls[0], 'https://as.example/1');
  t.equal(urls.at(-1), 'https://as.example/100');
});

t.test('options of a cache and a cache that is none are checked', (t) => {
  const unknown: object = { unheardOf: 1 };
  t.throws(() => new DocumentCache(unknown), { message: /unheardOf` is not an option/ });
  const options: object = { cache: new Map() };
  t.throws(() => new Client(options), { message: /`cache` must be a DocumentCache/ });
  t.end();
});
