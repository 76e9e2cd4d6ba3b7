// Table C1-C15 of docs/coming-from-the-gem.md: one test or more for each, whose names the page
// quotes.
import { exportPKCS8, generateKeyPair } from 'jose';
import t from 'tap';
import { AccessToken, Client, type ClientOptions, OAuthError } from '../../../src/index.ts';
import { answer, recordingFetch, type SentRequest, tokenAnswer } from '../../support/recording-fetch.ts';

const site = 'https://as.test';

/** A client whose requests are answered in order with `answers` and kept in `sent`. */
function makeClient(options: ClientOptions<true>, ...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  return { client: new Client({ clientId: 'id', clientSecret: 'secret', site, fetch, ...options }), sent };
}

const form = ({ body }: SentRequest) => Object.fromEntries(new URLSearchParams(body));
const first = (sent: readonly SentRequest[]): SentRequest => {
  const [request] = sent;
  if (request === undefined) throw new Error('nothing was sent');
  return request;
};
const jwtHeader = (jwt: string | undefined) => JSON.parse(atob(jwt?.split('.')[0] ?? ''));

t.test('C1: an assertion takes claims and { algorithm, key, kid }', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = await exportPKCS8(privateKey);
  await client.assertion.getToken(
    { iss: 'me', aud: site, exp: 2_000_000_000 },
    { algorithm: 'ES256', key, kid: 'key-1' },
    { scope: 'read' },
  );
  const sentForm = form(first(sent));
  t.match(sentForm, { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', scope: 'read' });
  t.match(jwtHeader(sentForm.assertion), { alg: 'ES256', kid: 'key-1' });
});

t.test('C2: a body of an unknown content type is its string', async (t) => {
  const { client } = makeClient({}, answer('<p>hello</p>', 'text/html'));
  t.equal((await client.request('GET', '/page')).parsed, '<p>hello</p>');
});

t.test('C3: undefined and null are not sent, in query and in form', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  await client.clientCredentials.getToken({ scope: undefined, audience: null, resource: 'https://api.test' });
  t.same(form(first(sent)), { grant_type: 'client_credentials', resource: 'https://api.test' });
  t.equal(
    new URL(client.authCode.authorizationUrl({ scope: undefined, state: null })).search,
    '?client_id=id&response_type=code',
  );
});

t.test('C4: parsedFactory makes what a parsed object is', async (t) => {
  const { client } = makeClient({ parsedFactory: (parsed) => new Map(Object.entries(parsed)) }, () =>
    Response.json({ userName: 'ada' }),
  );
  const { parsed } = await client.request('GET', '/me');
  t.ok(parsed instanceof Map);
  t.equal(parsed instanceof Map ? parsed.get('user_name') : undefined, 'ada');
});

t.test('C5: with throwOnError false the response holds its error', async (t) => {
  const { client } = makeClient({}, () => Response.json({ error: 'access_denied' }, { status: 403 }));
  const response = await client.request('GET', '/me', { throwOnError: false });
  t.equal(response.status, 403);
  t.ok(response.error instanceof OAuthError);
  t.equal(response.error?.code, 'access_denied');
});

t.test('C6: past maxRedirects the last redirect itself is returned', async (t) => {
  const { client, sent } = makeClient(
    { maxRedirects: 2 },
    () => new Response(null, { status: 302, headers: { location: '/again' } }),
  );
  const response = await client.request('GET', '/loop');
  t.equal(response.status, 302);
  t.equal(sent.length, 3);
});

for (const type of ['application/vdn.api+json', 'application/vnd.api+json', 'application/anything+json']) {
  t.test(`C7: ${type} is JSON`, async (t) => {
    const { client } = makeClient({}, answer('{"userName":"ada"}', `${type}; charset=utf-8`));
    t.match((await client.request('GET', '/me')).parsed, { user_name: 'ada' });
  });
}

t.test('C8: a token is revoked in the body, not in the URL', async (t) => {
  const { client, sent } = makeClient({}, () => new Response());
  await client.revokeToken('at', { hint: 'access_token' });
  t.equal(first(sent).method, 'POST');
  t.equal(first(sent).url.href, `${site}/oauth/revoke`);
  t.same(form(first(sent)), { token: 'at', token_type_hint: 'access_token' });
});

t.test('C8: only tokenMethod post_query puts it into the URL', async (t) => {
  const { client, sent } = makeClient({ tokenMethod: 'post_query' }, () => new Response());
  await client.revokeToken('at');
  t.equal(first(sent).method, 'POST');
  t.equal(first(sent).url.search, '?token=at');
});

t.test('C9: mode is header, query or body, also per verb or as a function', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  const mode = { get: 'query', post: 'body' } as const;
  const byVerb = AccessToken.fromHash(client, { access_token: 'at' }, { mode });
  await byVerb.get('/me');
  await byVerb.post('/me', { body: { a: '1' } });
  await byVerb.put('/me');
  const byFunction = AccessToken.fromHash(client, { access_token: 'at' }, { mode: () => 'query' });
  await byFunction.get('/me');
  t.same(
    sent.map(({ url, body, headers }) => [url.search, body, headers.get('authorization')]),
    [
      ['?access_token=at', '', null],
      ['', 'a=1&access_token=at', null],
      ['', '', 'Bearer at'],
      ['?access_token=at', '', null],
    ],
  );
});

t.test('C10: Basic credentials are form-encoded', async (t) => {
  const { client, sent } = makeClient({ clientId: 'a:b', clientSecret: 'p&ss w%rd' }, tokenAnswer());
  await client.clientCredentials.getToken();
  const [scheme, credentials = ''] = first(sent).headers.get('authorization')?.split(' ') ?? [];
  t.equal(scheme, 'Basic');
  t.equal(atob(credentials), 'a%3Ab:p%26ss+w%25rd');
});

t.test('C10: basicEncoding raw sends them as they are', async (t) => {
  const { client, sent } = makeClient({ clientSecret: 'p&ss', basicEncoding: 'raw' }, tokenAnswer());
  await client.clientCredentials.getToken();
  t.equal(first(sent).headers.get('authorization'), `Basic ${btoa('id:p&ss')}`);
});

t.test('C11: private_key_jwt signs the assertion itself', async (t) => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = await exportPKCS8(privateKey);
  const { client, sent } = makeClient(
    { clientAuth: { method: 'private_key_jwt', algorithm: 'ES256', key, keyId: 'key-1' } },
    tokenAnswer(),
  );
  await client.clientCredentials.getToken();
  const sentForm = form(first(sent));
  t.equal(sentForm.client_assertion_type, 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
  t.match(jwtHeader(sentForm.client_assertion), { alg: 'ES256', kid: 'key-1' });
});

t.test('C12: keyCase preserve keeps keys, and tokens are found under the keys as they are', async (t) => {
  const { client } = makeClient({ keyCase: 'preserve' }, () =>
    Response.json({ accessToken: 'at', userName: 'ada' }),
  );
  const token = await client.getToken({ grant_type: 'client_credentials' });
  t.equal(token.token, 'at');
  t.equal(token.param('userName'), 'ada');
});

t.test('C13: patch is a verb of its own', async (t) => {
  const { client, sent } = makeClient({}, () => Response.json({}));
  await AccessToken.fromHash(client, { access_token: 'at' }).patch('/me', { body: { a: '1' } });
  t.equal(first(sent).method, 'PATCH');
});

t.test('C14: warnings are silent until asked for', async (t) => {
  const fields = { access_token: 'at', token: 'another' };
  const loud = t.capture(console, 'warn');
  const { client: silent } = makeClient({});
  AccessToken.fromHash(silent, fields);
  t.equal(loud().length, 0);
  const codes: string[] = [];
  const { client } = makeClient({ onWarning: ({ code }) => codes.push(code) });
  AccessToken.fromHash(client, fields);
  t.same(codes, ['extra_tokens']);
});

t.test('C15: keys of objects in arrays are converted, wherever the array stands', async (t) => {
  const { client } = makeClient({}, () =>
    Response.json([{ userName: 'ada', friendList: [{ userName: 'eve' }] }]),
  );
  const { parsed } = await client.request('GET', '/users');
  t.match(parsed, [{ user_name: 'ada', friend_list: [{ user_name: 'eve' }] }]);
});
