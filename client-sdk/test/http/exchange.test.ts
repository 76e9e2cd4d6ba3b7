import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import {
  AbortError,
  Client,
  type ClientOptions,
  ConnectionError,
  OAuthError,
  TimeoutError,
} from '../../src/index.ts';
import { answer, recordingFetch } from '../support/recording-fetch.ts';

const site = 'https://api.test';

function makeClient(options: ClientOptions<true>, ...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  return { client: new Client({ clientId: 'id', site, fetch, ...options }), sent };
}

/** A fetch that never answers, and heeds its signal or not. */
const silentFetch = (heeds: boolean) => (_url: string, init: RequestInit) =>
  new Promise<Response>((_resolve, reject) => {
    if (heeds) init.signal?.addEventListener('abort', () => reject(init.signal?.reason));
  });

t.test('a plain object is sent as a form, or as JSON if the headers say so', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  const body = Object.freeze({ a: 1, gone: null, list: [1, 2] });
  await client.request('POST', '/x', { body });
  await client.request('POST', '/x', { body, headers: { 'Content-Type': 'application/json' } });
  await client.request('POST', '/x', { body: 'text', headers: { 'content-type': 'text/plain' } });
  t.same(
    sent.map(({ body, headers }) => [body, headers.get('content-type')]),
    [
      ['a=1&list%5B%5D=1&list%5B%5D=2', 'application/x-www-form-urlencoded'],
      ['{"a":1,"gone":null,"list":[1,2]}', 'application/json'],
      ['text', 'text/plain'],
    ],
  );
});

t.test('a query is added to the URL', async (t) => {
  const { client, sent } = makeClient({ arrayFormat: 'repeat' }, () => Response.json({}));
  await client.request('get', '/x?a=1', { query: { b: ['2', '3'] } });
  t.equal(sent[0]?.url.href, `${site}/x?a=1&b=2&b=3`);
  t.equal(sent[0]?.method, 'GET');
});

t.test('a GET with a body is rejected with an alternative', async (t) => {
  const { client } = makeClient({});
  await t.rejects(client.request('GET', '/x', { body: { a: '1' } }), {
    name: 'ConfigurationError',
    message: /use `query`/,
  });
});

t.test("request options take precedence over the client's requestInit", async (t) => {
  const { client, sent } = makeClient(
    { requestInit: { headers: { 'x-a': 'client', 'x-b': 'client' } } },
    () => Response.json({}),
  );
  await client.request('GET', '/x', { headers: { 'x-b': 'call' } });
  t.equal(sent[0]?.headers.get('x-a'), 'client');
  t.equal(sent[0]?.headers.get('x-b'), 'call');
});

t.test('the error of a 429 has the Retry-After, from seconds or a date', async (t) => {
  const now = 1_800_000_000;
  const date = new Date((now + 90) * 1000).toUTCString();
  for (const [retryAfter, ms] of [
    ['120', 120_000],
    [date, 90_000],
    ['soon', undefined],
  ] as const) {
    const { client } = makeClient(
      { now: () => now },
      () => new Response('', { status: 429, headers: { 'retry-after': retryAfter } }),
    );
    const error = await client.request('GET', '/x').catch((thrown: unknown) => thrown);
    t.match(error, { retryAfterMs: ms, retryable: true, status: 429 });
  }
});

t.test('a status outside of 200 to 599 is an error even with throwOnError false', async (t) => {
  const odd = Object.defineProperty(new Response('x'), 'status', { value: 600 });
  const { client } = makeClient({}, () => odd);
  await t.rejects(client.request('GET', '/x', { throwOnError: false }), {
    message: /^Unhandled status code value of 600/,
  });
});

t.test('an error body that is not JSON is still an OAuthError, with the parse error as cause', async (t) => {
  const { client } = makeClient({}, answer('{oops', 'application/json', 500));
  const error = await client.request('GET', '/x').catch((thrown: unknown) => thrown);
  t.ok(error instanceof OAuthError);
  t.match(error, { status: 500, code: undefined, cause: { name: 'ParseError' } });
});

t.test('with throwOnError false a malformed body fails when it is parsed, not before', async (t) => {
  const { client } = makeClient({}, answer('{oops', 'application/json'));
  const response = await client.request('GET', '/x', { throwOnError: false });
  t.equal(response.body, '{oops');
  t.throws(() => response.parsed, { name: 'ParseError', kind: 'OAUTH_CLIENT_PARSE' });
});

t.test('an error keeps its code when the caller asked for text', async (t) => {
  const { client } = makeClient({}, answer('{"error":"nope"}', 'application/json', 400));
  await t.rejects(client.request('GET', '/x', { parse: false }), { code: 'nope' });
});

for (const heeds of [true, false]) {
  t.test(
    `a server that never answers ends in a TimeoutError, with a fetch that ${heeds ? 'heeds' : 'ignores'} its signal`,
    async (t) => {
      const client = new Client({ site, fetch: silentFetch(heeds), timeoutMs: 5 });
      const error = await client.request('GET', '/x').catch((thrown: unknown) => thrown);
      t.ok(error instanceof TimeoutError);
      t.match(error, { kind: 'OAUTH_CLIENT_TIMEOUT', retryable: true, message: /within 5 ms/ });
    },
  );

  t.test(
    `an aborted call ends in an AbortError, with a fetch that ${heeds ? 'heeds' : 'ignores'} its signal`,
    async (t) => {
      const client = new Client({ site, fetch: silentFetch(heeds) });
      const controller = new AbortController();
      const call = client
        .request('GET', '/x', { signal: controller.signal })
        .catch((thrown: unknown) => thrown);
      const reason = new Error('changed my mind');
      controller.abort(reason);
      const error = await call;
      t.ok(error instanceof AbortError);
      t.match(error, { kind: 'OAUTH_CLIENT_ABORTED', cause: reason, retryable: false });
    },
  );
}

t.test('a signal aborted beforehand sends nothing', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  await t.rejects(client.request('GET', '/x', { signal: AbortSignal.abort() }), { name: 'AbortError' });
  t.equal(sent.length, 0);
});

t.test('a body that stalls ends in a TimeoutError', async (t) => {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"a"')),
  });
  const { client } = makeClient({ timeoutMs: 5 }, () => new Response(body));
  await t.rejects(client.request('GET', '/x'), { name: 'TimeoutError' });
});

t.test('an unreachable host is a ConnectionError with the reason', async (t) => {
  const error = await new Client({ site: 'http://127.0.0.1:1' })
    .request('GET', '/x')
    .catch((thrown: unknown) => thrown);
  t.ok(error instanceof ConnectionError);
  t.match(error, {
    kind: 'OAUTH_CLIENT_CONNECTION',
    retryable: true,
    message: /could not be reached/,
    cause: TypeError,
  });
});

for (const [name, headers] of [
  ['declared', { 'content-length': '2000' }],
  ['streamed', {}],
  ['declared too small, compressed', { 'content-length': '2', 'content-encoding': 'gzip' }],
] as const) {
  t.test(`a huge body, ${name}, is not read to its end`, async (t) => {
    let pulled = 0;
    const body = new ReadableStream({
      pull: (controller) => {
        pulled += 1;
        controller.enqueue(new Uint8Array(100));
      },
    });
    const { client } = makeClient({ maxBodyBytes: 1000 }, () => new Response(body, { headers }));
    await t.rejects(client.request('GET', '/x'), { name: 'ParseError', message: /maxBodyBytes/ });
    t.ok(pulled < 20, `${pulled} chunks`);
  });
}

t.test('hooks see a call from its request to its response, without secrets', async (t) => {
  const seen: unknown[] = [];
  const record = (kind: string) => (event: unknown) => void seen.push([kind, event]);
  const hooks = { onRequest: record('request'), onResponse: record('response'), onError: record('error') };
  const { client } = makeClient({ clientSecret: 's3cr3t-x', hooks }, () =>
    Response.json({ error: 'e' }, { status: 400 }),
  );
  await client.password.getToken('ada', 's3cr3t-pw', {}, { throwOnError: false });
  t.match(seen, [
    [
      'request',
      {
        attempt: 1,
        context: {
          operation: 'token',
          grantType: 'password',
          clientAuth: 'client_secret_basic',
          method: 'POST',
          url: `${site}/oauth/token`,
        },
      },
    ],
    ['response', { attempt: 1, status: 400, code: 'e', durationMs: Number }],
  ]);
  t.notMatch(JSON.stringify(seen), /s3cr3t/);
});

t.test('a retry policy sees each attempt, and each authenticates again', async (t) => {
  let signed = 0;
  const { client, sent } = makeClient(
    {
      clientAuth: ({ body }) => body.set('client_assertion', `jwt-${++signed}`),
      retry: async (_context, attempt) => {
        const first = await attempt(1);
        return first.status === 503 ? await attempt(2) : first;
      },
    },
    () => new Response('', { status: 503 }),
    () => Response.json({ access_token: 'at' }),
  );
  t.equal((await client.clientCredentials.getToken()).token, 'at');
  t.same(
    sent.map(({ body }) => new URLSearchParams(body).get('client_assertion')),
    ['jwt-1', 'jwt-2'],
  );
});

t.test('credentials are not sent over plain http, except to loopback', async (t) => {
  const { fetch, sent } = recordingFetch(() => Response.json({ access_token: 'at' }));
  const get = (origin: string, allowInsecure: boolean) =>
    new Client({
      clientId: 'id',
      clientSecret: 's',
      site: origin,
      fetch,
      allowInsecure,
    }).clientCredentials.getToken();
  await t.rejects(get('http://as.test', false), { name: 'ConfigurationError', message: /allowInsecure/ });
  await t.rejects(get('http://127.0.0.1.evil.test', false), { name: 'ConfigurationError' });
  t.equal(sent.length, 0);
  for (const origin of ['http://localhost:1', 'http://127.0.0.1:1', 'http://[::1]:1'])
    await get(origin, false);
  await get('http://as.test', true);
  t.equal(sent.length, 4);
});

t.test('the default fetch is looked up at each call', async (t) => {
  const before = globalThis.fetch;
  t.teardown(() => {
    globalThis.fetch = before;
  });
  const client = new Client({ site });
  globalThis.fetch = async () => Response.json({ a: 1 });
  t.match((await client.request('GET', '/x')).parsed, { a: 1 });
});

t.test('a call leaves no timer behind', async (t) => {
  const { client } = makeClient({ timeoutMs: 60_000 }, () => Response.json({}));
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  await client.request('GET', '/x');
  const left = await awaitUntil(() => timers() <= before, { what: 'the timers of the call to be gone' });
  t.equal(left, true);
});
