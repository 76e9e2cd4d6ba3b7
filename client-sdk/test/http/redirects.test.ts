import t from 'tap';
import { AccessToken, Client, type ClientOptions, RedirectError } from '../../src/index.ts';
import { recordingFetch, tokenAnswer } from '../support/recording-fetch.ts';

const site = 'https://as.test';

function redirectTo(location: string | undefined, status = 302): () => Response {
  return () => new Response(null, { status, headers: location === undefined ? {} : { location } });
}
const done = () => Response.json({ access_token: 'at', ok: true });

function makeClient(options: ClientOptions<true>, ...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  const client = new Client({ clientId: 'id', clientSecret: 'secret', site, fetch, ...options });
  return { client, sent, token: AccessToken.fromHash(client, { access_token: 's3cr3t-token' }) };
}

for (const status of [301, 302, 307]) {
  t.test(`${status} keeps verb and body`, async (t) => {
    const { client, sent } = makeClient({}, redirectTo('/next', status), done);
    const response = await client.request('POST', '/first', { body: { a: '1' } });
    t.same(
      sent.map(({ method, url, body }) => [method, url.pathname, body]),
      [
        ['POST', '/first', 'a=1'],
        ['POST', '/next', 'a=1'],
      ],
    );
    t.equal(response.redirected, true);
    t.equal(response.url, `${site}/next`);
  });
}

t.test('303 becomes a GET without a body', async (t) => {
  const { client, sent } = makeClient({}, redirectTo('/next', 303), done);
  await client.request('POST', '/first', { body: { a: '1' } });
  t.same([sent[1]?.method, sent[1]?.body], ['GET', '']);
});

for (const status of [300, 304, 305, 308]) {
  t.test(`${status} is returned unchanged`, async (t) => {
    const { client, sent } = makeClient({}, redirectTo('/next', status));
    t.equal((await client.request('GET', '/first')).status, status);
    t.equal(sent.length, 1);
  });
}

t.test('maxRedirects 0 returns the first redirect', async (t) => {
  const { client, sent } = makeClient({ maxRedirects: 0 }, redirectTo('/next'));
  t.equal((await client.request('GET', '/first')).status, 302);
  t.equal(sent.length, 1);
});

t.test('a loop ends after five redirects with the redirect itself', async (t) => {
  const { client, sent } = makeClient({}, redirectTo('/loop'));
  t.equal((await client.request('GET', '/loop')).status, 302);
  t.equal(sent.length, 6);
});

t.test('a redirect without a Location is an error, also with throwOnError false', async (t) => {
  const { client } = makeClient({}, redirectTo(undefined));
  const error = await client.request('GET', '/x', { throwOnError: false }).catch((thrown: unknown) => thrown);
  t.ok(error instanceof RedirectError);
  t.match(error, {
    message: 'Got 302 status code, but no Location header was present',
    response: { status: 302 },
  });
});

for (const location of ['//evil.test/x', '/\\evil.test/x', '\\\\evil.test/x']) {
  t.test(`a Location of ${location} stays on the origin`, async (t) => {
    const { token, sent } = makeClient({}, redirectTo(location), done);
    await token.get('/first');
    t.equal(sent[1]?.url.origin, site);
    t.equal(sent[1]?.url.pathname.startsWith('///'), true);
  });
}

t.test('within the origin, redirects keep a token in the header or in the query', async (t) => {
  const { client, token, sent } = makeClient(
    {},
    redirectTo('/next?page=2'),
    done,
    redirectTo('/next?page=2'),
    done,
  );
  await token.get('/first');
  await AccessToken.fromHash(client, token.toStored(), { mode: 'query' }).get('/first');
  t.equal(sent[1]?.headers.get('authorization'), 'Bearer s3cr3t-token');
  t.equal(sent[3]?.url.searchParams.get('access_token'), 's3cr3t-token');
});

const everySecret = {
  authorization: 'Custom s3cr3t-header',
  cookie: 'session=s3cr3t-cookie',
  'proxy-authorization': 'Basic s3cr3t-proxy',
  dpop: 's3cr3t-proof',
  'x-trace': 'kept',
};

for (const mode of ['header', 'query', 'body'] as const) {
  for (const target of ['https://other.test/x', 'https://as.test:8443/x']) {
    t.test(`no secret is sent to ${target} if the token is in the ${mode}`, async (t) => {
      const { client, sent } = makeClient({}, redirectTo(target, 307), done);
      const token = AccessToken.fromHash(client, { access_token: 's3cr3t-token' }, { mode });
      const body = { client_secret: 's3cr3t-secret', client_assertion: 's3cr3t-assertion', kept: '1' };
      await token.post('/first', { headers: everySecret, body, query: { refresh_token: 's3cr3t-refresh' } });
      const crossed = sent[1];
      t.equal(crossed?.url.origin, new URL(target).origin);
      t.notMatch(JSON.stringify([crossed?.url.href, crossed?.body, [...(crossed?.headers ?? [])]]), /s3cr3t/);
      t.equal(crossed?.headers.get('x-trace'), 'kept');
      t.equal(crossed?.body, 'kept=1');
    });
  }
}

t.test('a token in a cross-origin Location is removed', async (t) => {
  const { client, sent } = makeClient(
    {},
    redirectTo('https://other.test/x?access_token=s3cr3t-token&a=1'),
    done,
  );
  await AccessToken.fromHash(client, { access_token: 's3cr3t-token' }, { mode: 'query' }).get('/first');
  t.equal(sent[1]?.url.search, '?a=1');
});

t.test('secrets in a JSON body are not sent cross-origin, at any depth', async (t) => {
  const { client, sent } = makeClient({}, redirectTo('https://other.test/x', 307), done);
  const headers = { 'content-type': 'application/json' };
  await client.request('POST', '/x', { headers, body: { a: 1, inner: { password: 's3cr3t' } } });
  t.same(JSON.parse(sent[1]?.body ?? ''), { a: 1, inner: {} });
});

for (const status of [302, 303, 307]) {
  t.test(`a token request is not sent to another origin by a ${status}`, async (t) => {
    const { client, sent } = makeClient({}, redirectTo('https://other.test/token', status), tokenAnswer());
    await t.rejects(client.clientCredentials.getToken(), {
      name: 'RedirectError',
      message: /https:\/\/other\.test/,
    });
    t.equal(sent.length, 1);
  });
}

t.test('a token request follows within its origin', async (t) => {
  const { client, sent } = makeClient({}, redirectTo('/v2/token', 307), tokenAnswer());
  await client.clientCredentials.getToken();
  t.equal(sent[1]?.url.pathname, '/v2/token');
  t.equal(sent[1]?.body, 'grant_type=client_credentials');
});

t.test('a downgrade from https is rejected', async (t) => {
  const { client, sent } = makeClient({}, redirectTo('http://as.test/x'), done);
  await t.rejects(client.request('GET', '/x'), { name: 'RedirectError', message: /leaves https/ });
  t.equal(sent.length, 1);
});

for (const location of ['ftp://as.test/x', 'javascript:alert(1)', 'https://']) {
  t.test(`a redirect to ${location} is rejected`, async (t) => {
    const { client } = makeClient({}, redirectTo(location), done);
    await t.rejects(client.request('GET', '/x'), { name: 'RedirectError' });
  });
}

t.test("redirect 'manual' returns the redirect, 'error' throws", async (t) => {
  const { client } = makeClient({}, redirectTo('/next'));
  t.equal((await client.request('GET', '/x', { redirect: 'manual' })).status, 302);
  await t.rejects(client.request('GET', '/x', { redirect: 'error' }), { name: 'RedirectError' });
});

t.test('a stream is not sent twice', async (t) => {
  const { client } = makeClient({}, redirectTo('/next', 307), done);
  const body = new ReadableStream({
    start: (controller) => {
      controller.enqueue(new TextEncoder().encode('x'));
      controller.close();
    },
  });
  await t.rejects(client.request('POST', '/x', { body }), { name: 'RedirectError', message: /stream/ });
});

t.test('token.fetch follows redirects like fetch, without the token across origins', async (t) => {
  const { token, sent } = makeClient({}, redirectTo('https://other.test/x', 308), done);
  const response = await token.fetch('/x', { method: 'PUT', body: 'data' });
  t.equal(response.status, 200);
  t.same([sent[1]?.method, sent[1]?.body, sent[1]?.headers.get('authorization')], ['PUT', 'data', null]);
});

t.test('the headers given are not changed by a redirect', async (t) => {
  const { client } = makeClient({}, redirectTo('https://other.test/x'), done);
  const headers = new Headers(everySecret);
  await client.request('GET', '/x', { headers });
  t.equal(headers.get('authorization'), everySecret.authorization);
});
