import t from 'tap';
import { AccessToken, Client, type ClientOptions, OAuthError, TokenResponseError } from '../../src/index.ts';
import { answer, recordingFetch, type SentRequest, tokenAnswer } from '../support/recording-fetch.ts';

const site = 'https://as.test';

function makeClient(options: ClientOptions<true> = {}, ...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  return { client: new Client({ clientId: 'id', clientSecret: 'secret', site, fetch, ...options }), sent };
}

function only(sent: readonly SentRequest[]): SentRequest {
  const [request] = sent;
  if (request === undefined || sent.length > 1) throw new Error(`${sent.length} requests were sent`);
  return request;
}
const form = ({ body }: SentRequest) => Object.fromEntries(new URLSearchParams(body));

t.test('a token request is a form with Basic credentials', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  const token = await client.getToken({ grant_type: 'custom', n: 1 });
  const request = only(sent);
  t.equal(token.token, 'at');
  t.equal(request.method, 'POST');
  t.equal(request.url.href, `${site}/oauth/token`);
  t.equal(request.headers.get('content-type'), 'application/x-www-form-urlencoded');
  t.equal(request.headers.get('authorization'), `Basic ${btoa('id:secret')}`);
  t.same(form(request), { grant_type: 'custom', n: '1' });
});

t.test('headers of the call are sent as headers, not parameters', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  await client.clientCredentials.getToken({}, { headers: { 'x-tenant': 'a' } });
  t.equal(only(sent).headers.get('x-tenant'), 'a');
  t.same(form(only(sent)), { grant_type: 'client_credentials' });
});

t.test('a JSON content type makes the body JSON, with types kept and credentials in it', async (t) => {
  const { client, sent } = makeClient({ clientAuth: 'client_secret_post' }, tokenAnswer());
  await client.getToken(
    { grant_type: 'x', n: 1, gone: null },
    { headers: { 'content-type': 'application/json' } },
  );
  t.same(JSON.parse(only(sent).body), { grant_type: 'x', n: 1, client_id: 'id', client_secret: 'secret' });
});

t.test("tokenMethod 'get' sends a GET with a query", async (t) => {
  const { client, sent } = makeClient({ tokenMethod: 'get' }, tokenAnswer());
  await client.clientCredentials.getToken({ scope: 'a b' });
  t.equal(only(sent).method, 'GET');
  t.equal(only(sent).url.search, '?grant_type=client_credentials&scope=a%20b');
});

t.test('the verb follows a tokenMethod given for one call', async (t) => {
  const { client, sent } = makeClient({ tokenMethod: 'get' }, tokenAnswer());
  await client.clientCredentials.getToken({}, { tokenMethod: 'post' });
  t.equal(only(sent).method, 'POST');
  t.same(form(only(sent)), { grant_type: 'client_credentials' });
});

t.test(
  'client_secret_post sends id and secret in the form, parameters of the caller take precedence',
  async (t) => {
    const { client, sent } = makeClient({ clientAuth: 'client_secret_post' }, tokenAnswer());
    await client.clientCredentials.getToken({ client_id: 'other' });
    t.same(form(only(sent)), {
      grant_type: 'client_credentials',
      client_id: 'other',
      client_secret: 'secret',
    });
    t.equal(only(sent).headers.get('authorization'), null);
  },
);

for (const clientAuth of ['tls_client_auth', 'none'] as const) {
  t.test(`${clientAuth} sends the client id and no secret`, async (t) => {
    const { client, sent } = makeClient({ clientAuth }, tokenAnswer());
    await client.clientCredentials.getToken();
    t.same(form(only(sent)), { grant_type: 'client_credentials', client_id: 'id' });
    t.equal(only(sent).headers.get('authorization'), null);
  });
}

t.test('a client without a secret is public', async (t) => {
  const { fetch, sent } = recordingFetch(tokenAnswer());
  await new Client({ clientId: 'id', site, fetch }).authCode.getToken('c');
  t.equal(only(sent).headers.get('authorization'), null);
  t.match(form(only(sent)), { client_id: 'id', code: 'c' });
});

t.test('a clientAuth function writes the credentials', async (t) => {
  const { client, sent } = makeClient(
    {
      clientAuth: async ({ headers, body }) => {
        headers.set('x-key', 'k');
        body.set('client_id', 'by-hand');
      },
    },
    tokenAnswer(),
  );
  await client.clientCredentials.getToken();
  t.equal(only(sent).headers.get('x-key'), 'k');
  t.equal(form(only(sent)).client_id, 'by-hand');
});

t.test('an Authorization header of the caller takes precedence', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  await client.clientCredentials.getToken({}, { headers: { Authorization: 'Custom x' } });
  t.equal(only(sent).headers.get('authorization'), 'Custom x');
});

t.test('a client without an id fails before anything is sent', async (t) => {
  const { fetch, sent } = recordingFetch(tokenAnswer());
  await t.rejects(new Client({ site, fetch }).clientCredentials.getToken(), {
    name: 'ConfigurationError',
    message: /clientId/,
  });
  t.equal(sent.length, 0);
});

t.test('a code is exchanged with the redirect URI of the client, or of the call', async (t) => {
  const { client, sent } = makeClient({ redirectUri: 'https://app.test/cb' }, tokenAnswer());
  await client.authCode.getToken('c');
  await client.authCode.getToken('c', { redirect_uri: 'https://app.test/other' });
  t.same(
    sent.map((request) => form(request).redirect_uri),
    ['https://app.test/cb', 'https://app.test/other'],
  );
});

t.test('the password grant sends username and password', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  await client.password.getToken('ada', 'pw', { scope: 's' });
  t.same(form(only(sent)), { grant_type: 'password', username: 'ada', password: 'pw', scope: 's' });
});

t.test('the grant type of client credentials cannot be overridden', async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  await client.clientCredentials.getToken({ grant_type: 'password' });
  t.equal(form(only(sent)).grant_type, 'client_credentials');
});

t.test('an assertion without a key names the missing option', async (t) => {
  const { client } = makeClient({}, tokenAnswer());
  await t.rejects(Reflect.apply(client.assertion.getToken, client.assertion, [{ iss: 'me' }]), {
    name: 'ConfigurationError',
    message: /algorithm, key/,
  });
});

t.test('options of the token take precedence over the response', async (t) => {
  const { client } = makeClient({}, tokenAnswer({ refresh_token: 'theirs' }));
  const token = await client.clientCredentials.getToken({}, { refreshToken: 'guppy', expiresLatency: 10 });
  t.equal(token.refreshToken, 'guppy');
  t.equal(token.expiresLatency, 10);
});

t.test("an error response throws the server's error", async (t) => {
  const { client } = makeClient({}, () =>
    Response.json(
      { error: 'invalid_scope', error_description: 'no such scope', error_uri: 'https://e.test' },
      { status: 400 },
    ),
  );
  const error = await client.clientCredentials.getToken().catch((thrown: unknown) => thrown);
  t.ok(error instanceof TokenResponseError);
  t.match(error, {
    kind: 'OAUTH_CLIENT_TOKEN_RESPONSE',
    code: 'invalid_scope',
    description: 'no such scope',
    uri: 'https://e.test',
    status: 400,
  });
  t.equal(error instanceof OAuthError && error.response.status, 400);
  t.match(String(error), /^TokenResponseError: invalid_scope: no such scope\n/);
});

t.test('with throwOnError false a refusal is returned, and never an empty token', async (t) => {
  const { client } = makeClient({}, () => Response.json({ error: 'invalid_client' }, { status: 401 }));
  const outcome = await client.clientCredentials.getToken({}, { throwOnError: false });
  t.equal(outcome.ok, false);
  t.equal(outcome.ok ? undefined : outcome.error.code, 'invalid_client');
});

t.test('throwOnError false of the client applies to token requests', async (t) => {
  const { fetch } = recordingFetch(() => Response.json({ error: 'invalid_client' }, { status: 401 }));
  const client = new Client({ clientId: 'id', site, fetch, throwOnError: false });
  t.equal((await client.clientCredentials.getToken()).ok, false);
});

const refusals: readonly [string, () => Response, RegExp][] = [
  ['malformed JSON', answer('{"access_token":', 'application/json'), /cannot be parsed/],
  ['an empty object', answer('{}', 'application/json'), /not an object of fields/],
  ['an array', answer('["at"]', 'application/json'), /not an object of fields/],
  ['a page', answer('<html>hello</html>', 'text/html'), /not an object of fields/],
  ['an object without a token', answer('{"a":1}', 'application/json'), /has no token/],
  ['a null token', answer('{"access_token":null}', 'application/json'), /has no token/],
];
for (const [name, response, message] of refusals) {
  t.test(`${name} with status 200 is an error with the response`, async (t) => {
    const { client } = makeClient({}, response);
    const error = await client.clientCredentials.getToken().catch((thrown: unknown) => thrown);
    t.ok(error instanceof TokenResponseError);
    t.match(error, { message });
    t.equal(error instanceof OAuthError && error.response.status, 200);
  });
}

t.test('malformed JSON gives its parse error as the cause', async (t) => {
  const { client } = makeClient({}, answer('{"access_token":"s3cr3t', 'application/json'));
  const error = await client.clientCredentials.getToken().catch((thrown: unknown) => thrown);
  t.match(error, { cause: { name: 'ParseError', cause: { name: 'SyntaxError' } } });
  t.notMatch(String(error), /s3cr3t/);
});

t.test('an error with status 200 is an error with its code', async (t) => {
  const codes: string[] = [];
  const { client } = makeClient(
    { onWarning: ({ code }) => codes.push(code) },
    answer('error=bad_verification_code', 'application/x-www-form-urlencoded'),
  );
  await t.rejects(client.authCode.getToken('c'), {
    name: 'TokenResponseError',
    code: 'bad_verification_code',
  });
  t.same(codes, ['error_with_success_status']);
});

const tolerated: readonly [string, () => Response, string[]][] = [
  ['a form', answer('access_token=at&token_type=bearer', 'application/x-www-form-urlencoded'), []],
  ['JSON called JavaScript', answer('{"access_token":"at","token_type":"bearer"}', 'text/javascript'), []],
  [
    'JSON called text',
    answer('{"access_token":"at","token_type":"bearer"}', 'text/plain'),
    ['content_type_mismatch'],
  ],
  [
    'a form called a page',
    answer('access_token=at&token_type=bearer', 'text/html'),
    ['content_type_mismatch'],
  ],
  ['no token_type', answer('{"access_token":"at"}', 'application/json'), ['token_type_missing']],
  [
    'a number as text',
    answer('{"access_token":"at","token_type":"bearer","expires_in":"60"}', 'application/json'),
    ['expires_in_string'],
  ],
  ['status 201', answer('{"access_token":"at","token_type":"bearer"}', 'application/json', 201), []],
  ['camelCase', answer('{"accessToken":"at","tokenType":"bearer"}', 'application/json'), []],
];
for (const [name, response, warnings] of tolerated) {
  t.test(`${name} is accepted as a token response`, async (t) => {
    const codes: string[] = [];
    const { client } = makeClient({ onWarning: ({ code }) => codes.push(code) }, response);
    t.equal((await client.clientCredentials.getToken()).token, 'at');
    t.same(codes, warnings);
  });
}

t.test('invalid_client suggests the other encoding if the two differ', async (t) => {
  const { client } = makeClient({ clientSecret: 'a/b+c' }, () =>
    Response.json({ error: 'invalid_client' }, { status: 401 }),
  );
  await t.rejects(client.clientCredentials.getToken(), { message: /basicEncoding: 'raw'/ });
});

t.test('accessTokenFactory makes the token', async (t) => {
  class MyToken extends AccessToken {}
  const { client } = makeClient(
    {
      accessTokenFactory: (client, { fields, options }) =>
        new MyToken(client, String(fields.access_token), options),
    },
    tokenAnswer(),
  );
  t.ok((await client.clientCredentials.getToken()) instanceof MyToken);
});

t.test("onRequest may change the request, and the caller's objects are not changed", async (t) => {
  const { client, sent } = makeClient({}, tokenAnswer());
  const params = Object.freeze({ scope: 'a' });
  const headers = Object.freeze({ 'x-a': '1' });
  const options = Object.freeze({
    headers,
    onRequest: (request: { headers: Headers }) => request.headers.set('x-b', '2'),
  });
  await client.clientCredentials.getToken(params, options);
  t.equal(only(sent).headers.get('x-a'), '1');
  t.equal(only(sent).headers.get('x-b'), '2');
});

t.test('parse and parsedFactory hold for the token response', async (t) => {
  const { client } = makeClient({}, answer('token is at', 'text/html'));
  const token = await client.clientCredentials.getToken(
    {},
    { parse: (body) => ({ access_token: body.slice(9) }) },
  );
  t.equal(token.token, 'at');
});

t.test('an ID token alone is no access token', async (t) => {
  const { client } = makeClient({}, answer('{"id_token":"a.b.c","token_type":"bearer"}', 'application/json'));
  await t.rejects(client.clientCredentials.getToken(), {
    ...{ name: 'TokenResponseError', message: /an ID token alone/ },
  });
  const named = await client.clientCredentials.getToken({}, { tokenName: 'id_token' });
  t.equal(named.token, 'a.b.c');
});
