import t from 'tap';
import {
  AccessToken,
  Client,
  type ClientOptions,
  type StoredToken,
  TokenUnavailableError,
} from '../../src/index.ts';
import { recordingFetch, tokenAnswer } from '../support/recording-fetch.ts';

const site = 'https://as.test';
const now = 1_800_000_000;

function makeClient(options: ClientOptions<true> = {}, ...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  const codes: string[] = [];
  const client = new Client({
    clientId: 'id',
    clientSecret: 'secret',
    site,
    fetch,
    now: () => now,
    onWarning: ({ code }) => codes.push(code),
    ...options,
  });
  return { client, sent, codes };
}

const expiries: readonly [string, Record<string, unknown>, number | undefined][] = [
  ['expires_in counts from now', { expires_in: 600 }, now + 600],
  ['expires_in may be text', { expires_in: '600' }, now + 600],
  ['expires_in 0 never expires', { expires_in: 0 }, undefined],
  ['a negative expires_in has expired', { expires_in: -1 }, now - 1],
  ['expires_at wins', { expires_in: 600, expires_at: 1 }, 1],
  ['expires_at may be text', { expires_at: '1361396829' }, 1361396829],
  ['expires_at may be an ISO time', { expires_at: '2030-01-01T00:00:00Z' }, 1893456000],
  ['an expires_at that is none is long past', { expires_at: 'soon' }, 0],
  ['expires is an old name of expires_in', { expires: '60' }, now + 60],
  ['a latency is taken off', { expires_in: 600, expires_latency: 10 }, now + 590],
  ['a latency is taken off a given expires_at too', { expires_at: now, expires_latency: '10' }, now - 10],
  ['a latency without an expiry does nothing', { expires_latency: 10 }, undefined],
];
for (const [name, fields, expiresAt] of expiries) {
  t.test(name, async (t) => {
    const token = AccessToken.fromHash(makeClient().client, { access_token: 'at', ...fields });
    t.equal(token.expiresAt, expiresAt);
    t.equal(token.expires, expiresAt !== undefined);
  });
}

t.test('a token has expired at the second of its expiry', async (t) => {
  const token = new AccessToken(makeClient().client, 'at', { expiresAt: now + 10 });
  t.same([token.expired(now + 9.9), token.expired(now + 10), token.expired()], [false, true, false]);
  t.same([token.expiresWithin(9), token.expiresWithin(10)], [false, true]);
});

t.test('tokens are found under three names, in this order, and an ID token is none', async (t) => {
  const { client, codes } = makeClient();
  const fields = { idToken: '5', accessToken: '4', token: '3', id_token: '2', access_token: '1' };
  const token = AccessToken.fromHash(client, fields);
  t.equal(token.token, '1');
  t.equal(token.param('id_token'), '2');
  t.equal(token.idToken, '2');
  t.same(codes, ['extra_tokens']);
  t.equal(AccessToken.fromHash(client, { accessToken: '4', idToken: '5' }).token, '4');
  t.throws(() => AccessToken.fromHash(client, { id_token: '2' }), { name: 'TokenUnavailableError' });
  t.equal(AccessToken.fromHash(client, { id_token: '2' }, { tokenName: 'id_token' }).token, '2');
});

t.test('tokenName takes exactly that field, without a fallback', async (t) => {
  const { client, codes } = makeClient();
  t.equal(AccessToken.fromHash(client, { access_token: 'a', other: 'b' }, { tokenName: 'other' }).token, 'b');
  t.throws(
    () => AccessToken.fromHash(client, { access_token: 'a' }, { tokenName: 'other' }),
    TokenUnavailableError,
  );
  t.same(codes, ['token_name_missing', 'no_token']);
});

t.test('a refresh token alone makes a token that can only be refreshed', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  const token = AccessToken.fromHash(client, { refresh_token: 'rt' });
  await t.rejects(token.get('/x'), { name: 'TokenUnavailableError', message: /refresh/ });
  t.equal((await token.refresh()).token, 'at');
  t.equal(sent.length, 1);
});

t.test('missing tokens are an error that shows no values', async (t) => {
  t.throws(() => AccessToken.fromHash(makeClient().client, { custom: 's3cr3t' }), {
    kind: 'OAUTH_CLIENT_TOKEN_UNAVAILABLE',
    message: /^AccessToken has no token: .{1,60}$/,
  });
});

t.test('the given object is copied', async (t) => {
  const fields = Object.freeze({ access_token: 'at', refresh_token: 'rt', extra: 1 });
  const token = AccessToken.fromHash(makeClient().client, fields);
  t.equal(token.param('extra'), 1);
  t.throws(() => Object.assign(token.params, { extra: 2 }), TypeError);
});

t.test('further fields are params, with type, scope and ID token by name', async (t) => {
  const fields = {
    access_token: 'at',
    token_type: 'bearer',
    scope: 'a  b',
    id_token: 'it',
    tenant: { id: 1 },
  };
  const token = AccessToken.fromHash(makeClient().client, fields);
  t.equal(token.tokenType, 'bearer');
  t.same(token.scope, ['a', 'b']);
  t.equal(token.idToken, 'it');
  t.same(token.param('tenant'), { id: 1 });
  t.equal(token.param('__proto__'), undefined);
  t.equal(token.param('constructor'), undefined);
});

t.test('__proto__ in a token response is an ordinary field', async (t) => {
  const { client } = makeClient(
    {},
    () =>
      new Response('{"access_token":"at","__proto__":{"polluted":1}}', {
        headers: { 'content-type': 'application/json' },
      }),
  );
  const token = await client.clientCredentials.getToken();
  t.same(token.param('__proto__'), { polluted: 1 });
  t.equal(Reflect.get({}, 'polluted'), undefined);
  t.same(AccessToken.fromHash(client, token.toStored()).param('__proto__'), { polluted: 1 });
});

for (const [form, token] of [
  ['#access_token=a+b%2B&expires_in=60', 'a b+'],
  ['?access_token=at', 'at'],
  ['access_token=at&state', 'at'],
  [new URLSearchParams({ access_token: 'at' }), 'at'],
  [new URL('https://app.test/cb#access_token=at'), 'at'],
  [new URL('https://app.test/cb?access_token=at'), 'at'],
] as const) {
  t.test(`fromForm reads ${form}`, async (t) => {
    t.equal(AccessToken.fromForm(makeClient().client, form).token, token);
  });
}

t.test('fromForm ignores mode and token name of a callback', async (t) => {
  const token = AccessToken.fromForm(makeClient().client, 'access_token=at&mode=query&param_name=x&a=1&a=2');
  t.equal(token.mode, 'header');
  t.same(token.param('a'), ['1', '2']);
  t.equal(token.param('mode'), 'query');
});

t.test('a token response cannot decide where its token is sent', async (t) => {
  const { client } = makeClient({}, tokenAnswer({ mode: 'query', param_name: 'x' }));
  const token = await client.clientCredentials.getToken();
  t.equal(token.mode, 'header');
  t.equal(token.param('mode'), 'query');
});

const stored: StoredToken = {
  access_token: 'at',
  refresh_token: 'rt',
  expires_at: now + 600,
  expires_in: 600,
  scope: 'a',
  mode: { get: 'query' },
  param_name: 'key',
};

t.test('fromHash restores the result of toStored', async (t) => {
  const token = AccessToken.fromHash(makeClient().client, stored);
  t.same(token.toStored(), stored);
  t.same(JSON.parse(JSON.stringify(token.toStored())), stored);
  t.same(token.mode, { get: 'query' });
});

t.test('a token with a tokenName can be stored', async (t) => {
  const { client } = makeClient();
  const token = AccessToken.fromHash(client, { weird: 'at' }, { tokenName: 'weird' });
  t.same(token.toStored(), { weird: 'at', token_name: 'weird' });
  t.equal(AccessToken.fromHash(client, token.toStored()).token, 'at');
});

t.test('functions and the latency are not stored', async (t) => {
  const token = new AccessToken(makeClient().client, 'at', {
    expiresIn: 60,
    expiresLatency: 5,
    mode: () => 'query',
  });
  t.same(token.toStored(), { access_token: 'at', expires_at: now + 55, expires_in: 55 });
});

t.test('modes place the token for verbs in either case', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  const token = new AccessToken(client, 'at', {
    mode: (verb) => (verb === 'get' ? 'query' : 'header'),
    paramName: 'key',
  });
  await token.request('GET', '/x?key=old&a=1');
  await token.post('/x');
  t.same(
    sent.map(({ url, headers }) => [url.search, headers.get('authorization')]),
    [
      ['?a=1&key=at', null],
      ['', 'Bearer at'],
    ],
  );
});

t.test('mode body adds the token to every kind of form', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  const token = new AccessToken(client, 'a&t', { mode: 'body' });
  for (const body of [undefined, { a: 1 }, 'a=1', '', new URLSearchParams('a=1')])
    await token.post('/x', { body });
  t.same(
    sent.map(({ body }) => body),
    [
      'access_token=a%26t',
      'a=1&access_token=a%26t',
      'a=1&access_token=a%26t',
      'access_token=a%26t',
      'a=1&access_token=a%26t',
    ],
  );
  await t.rejects(token.post('/x', { body: new FormData() }), {
    name: 'ConfigurationError',
    message: /mode 'header'/,
  });
});

t.test('an invalid mode is rejected at the request', async (t) => {
  const token = Reflect.construct(AccessToken, [makeClient().client, 'at', { mode: 'cookie' }]);
  await t.rejects(token.get('/x'), {
    name: 'ConfigurationError',
    message: /'header', 'query' or 'body'.*cookie/,
  });
});

t.test('the token takes precedence over an Authorization header, which is not changed', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  const headers = Object.freeze({ Authorization: 'mine', 'x-a': '1' });
  await new AccessToken(client, 'at').get('/x', { headers });
  t.equal(sent[0]?.headers.get('authorization'), 'Bearer at');
  t.equal(sent[0]?.headers.get('x-a'), '1');
});

t.test('scheme and format of the header are options; DPoP tokens have their own', async (t) => {
  const { client } = makeClient();
  const authorization = (options: object) => new AccessToken(client, 'at', options).headers().authorization;
  t.same(
    [
      authorization({ authorizationScheme: 'OAuth' }),
      authorization({ formatHeader: (token: string) => `MAC id="${token}"` }),
      authorization({ params: { token_type: 'dpop' } }),
    ],
    ['OAuth at', 'MAC id="at"', 'DPoP at'],
  );
});

t.test('refresh sends the refresh token and keeps the options', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer({ access_token: 'new', expires_in: 60 }));
  const old = new AccessToken(client, 'old', {
    refreshToken: 'rt',
    mode: 'query',
    paramName: 'key',
    expiresLatency: 5,
    expiresAt: 1,
    params: { a: 1 },
  });
  const token = await old.refresh({ scope: 'less' });
  t.same(Object.fromEntries(new URLSearchParams(sent[0]?.body)), {
    grant_type: 'refresh_token',
    refresh_token: 'rt',
    scope: 'less',
  });
  t.match(token, { token: 'new', refreshToken: 'rt', mode: 'query', expiresAt: now + 55, expiresLatency: 5 });
  t.equal(token.param('a'), undefined);
  t.equal(old.token, 'old');
});

t.test('a rotated refresh token replaces the old one', async (t) => {
  const events: unknown[] = [];
  const { client } = makeClient(
    { hooks: { onRefresh: (event) => void events.push(event) } },
    tokenAnswer({ refresh_token: 'rt2' }),
  );
  t.equal((await new AccessToken(client, 'old', { refreshToken: 'rt1' }).refresh()).refreshToken, 'rt2');
  t.same(events, [{ expiresAt: now + 3600, rotated: true }]);
});

t.test('a failed refresh does not change the old token', async (t) => {
  const { client } = makeClient({}, () => Response.json({ error: 'invalid_grant' }, { status: 400 }));
  const token = new AccessToken(client, 'old', { refreshToken: 'rt' });
  await t.rejects(token.refresh(), { name: 'TokenResponseError', code: 'invalid_grant' });
  const outcome = await token.refresh({}, { throwOnError: false });
  t.equal(outcome.ok, false);
  t.equal(token.refreshToken, 'rt');
});

t.test('a refresh throws by default even if the client does not', async (t) => {
  const { fetch } = recordingFetch(() => Response.json({ error: 'invalid_grant' }, { status: 400 }));
  const client = new Client({ clientId: 'id', site, fetch, throwOnError: false });
  await t.rejects(new AccessToken(client, 'old', { refreshToken: 'rt' }).refresh(), {
    code: 'invalid_grant',
  });
});

t.test('refresh without a refresh token fails and sends nothing', async (t) => {
  const { client, sent } = makeClient();
  await t.rejects(new AccessToken(client, 'at').refresh(), {
    name: 'TokenUnavailableError',
    message: /refresh_token is not available/,
  });
  t.equal(sent.length, 0);
});

t.test('revoke sends the token and its hint', async (t) => {
  const { client, sent } = makeClient({}, () => new Response());
  const token = new AccessToken(client, 'at', { refreshToken: 'rt' });
  await token.revoke();
  await token.revoke({ tokenTypeHint: 'refresh_token', params: { extra: '1' } });
  await new AccessToken(client, '', { refreshToken: 'rt' }).revoke();
  t.same(
    sent.map(({ url, body }) => [url.pathname, body]),
    [
      ['/oauth/revoke', 'token=at&token_type_hint=access_token'],
      ['/oauth/revoke', 'token=rt&token_type_hint=refresh_token&extra=1'],
      ['/oauth/revoke', 'token=rt&token_type_hint=refresh_token'],
    ],
  );
});

t.test('revoke rejects other hints and missing tokens', async (t) => {
  const token = new AccessToken(makeClient().client, 'at');
  await t.rejects(Reflect.apply(token.revoke, token, [{ tokenTypeHint: 'id_token' }]), {
    message: /tokenTypeHint` must be one of/,
  });
  await t.rejects(token.revoke({ tokenTypeHint: 'refresh_token' }), {
    message: 'refresh_token is not available for revoking',
  });
});

t.test('a refused revocation is a RevocationError: the token is alive', async (t) => {
  const { client } = makeClient({}, () => new Response('', { status: 503, headers: { 'retry-after': '5' } }));
  await t.rejects(new AccessToken(client, 'at').revoke(), {
    name: 'RevocationError',
    status: 503,
    retryAfterMs: 5000,
  });
});

t.test('an API that refuses the token is a ProtectedResourceError with its challenges', async (t) => {
  const challenge =
    'Basic realm="a, b", Bearer realm="x", error="invalid_token", error_description="it \\"expired\\""';
  const { client } = makeClient(
    {},
    () => new Response('', { status: 401, headers: { 'www-authenticate': challenge } }),
  );
  const error = await new AccessToken(client, 'at').get('/x').catch((thrown: unknown) => thrown);
  t.match(error, {
    name: 'ProtectedResourceError',
    wwwAuthenticate: [
      { scheme: 'basic', parameters: { realm: 'a, b' } },
      {
        scheme: 'bearer',
        parameters: { realm: 'x', error: 'invalid_token', error_description: 'it "expired"' },
      },
    ],
  });
});

t.test('fetch returns a standard response of any status, and changes neither init nor Request', async (t) => {
  const { client, sent } = makeClient({}, () => new Response('gone', { status: 404 }));
  const token = new AccessToken(client, 'at');
  const init = Object.freeze({ method: 'POST', body: 'data', headers: Object.freeze({ 'x-a': '1' }) });
  const response = await token.fetch('/x', init);
  t.ok(response instanceof Response);
  t.equal(await response.text(), 'gone');
  const request = new Request('https://as.test/y', { method: 'PUT', body: 'data', headers: { 'x-b': '2' } });
  await token.fetch(request);
  t.equal(request.headers.get('authorization'), null);
  t.same(
    sent.map(({ method, url, body, headers }) => [
      method,
      url.pathname,
      body,
      headers.get('authorization'),
      headers.get('x-a') ?? headers.get('x-b'),
    ]),
    [
      ['POST', '/x', 'data', 'Bearer at', '1'],
      ['PUT', '/y', 'data', 'Bearer at', '2'],
    ],
  );
});

t.test(
  'in browsers, which cannot upload streams everywhere, the body of a Request is read first',
  async (t) => {
    t.teardown(() => Reflect.deleteProperty(globalThis, 'isSecureContext'));
    Object.assign(globalThis, { isSecureContext: true });
    const bodies: unknown[] = [];
    const client = new Client({
      clientId: 'id',
      site,
      fetch: async (_url, init) => {
        bodies.push(init.body);
        return new Response();
      },
    });
    const token = new AccessToken(client, 'at');
    const request = new Request(`${site}/x`, { method: 'POST', body: 'data' });
    await token.fetch(request);
    t.notOk(request.bodyUsed, 'the Request is left as it was');
    await token.fetch(new Request(`${site}/x`));
    t.same(bodies, [new TextEncoder().encode('data').buffer, null]);
  },
);
