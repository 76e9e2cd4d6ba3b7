// The token endpoint: authentication, errors, scopes and resources.
import { decodeJwt } from 'jose';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type Answer, type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { createMachine, machineToken, oauthServer, requestToken } from '../helpers/oauth-clients.ts';

const grant = { grant_type: 'client_credentials' } as const;

function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  return startAuthServer(t, { ...oauthServer, ...variables });
}

function basic(id: string, secret: string): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}

t.test('the secret is accepted in the header and in the body, of forms and JSON', async (t) => {
  const server = await start(t);
  const { client_id: id, client_secret: secret } = await createMachine(server);
  const credentials = { client_id: id, client_secret: secret };
  const answers: Readonly<Record<string, Answer>> = {
    header: await requestToken(server, grant, basic(id, secret)),
    'header and client_id': await requestToken(server, { ...grant, client_id: id }, basic(id, secret)),
    'encoded header': await requestToken(server, grant, basic(id.replaceAll('-', '%2D'), secret)),
    form: await requestToken(server, { ...grant, ...credentials }),
    JSON: await server.call('POST', '/oauth/token', { body: { ...grant, ...credentials } }),
  };
  for (const [name, { status, body, headers }] of Object.entries(answers)) {
    t.equal(status, 200, name);
    t.match(body, { token_type: 'Bearer', expires_in: 900, access_token: String }, name);
    t.notOk('refresh_token' in body);
    t.equal(headers.get('cache-control'), 'no-store', name);
  }
});

t.test('requests that do not authenticate get the same error, in the format of OAuth 2.0', async (t) => {
  const server = await start(t);
  const client = await createMachine(server);
  const { client_id: id, client_secret: secret } = client;
  const disabled = await createMachine(server);
  const one = `/admin/oauth/clients/${disabled.client_id}`;
  await server.call('PUT', one, { token: adminToken(), body: { disabled: true } });
  const unknown = '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d';
  const failed = { error: 'invalid_client', error_description: 'Client authentication failed' };
  const cases: Readonly<Record<string, readonly [form: object, headers?: object]>> = {
    'no client': [{}],
    'a wrong secret': [{ client_id: id, client_secret: 'wrong' }],
    'no secret': [{ client_id: id }],
    'the stored digest': [{ client_id: id, client_secret: '' }],
    'an unknown client': [{ client_id: unknown, client_secret: secret }],
    'an id that is no UUID': [{ client_id: 'shop', client_secret: secret }],
    'a disabled client': [{ client_id: disabled.client_id, client_secret: disabled.client_secret }],
    'a wrong secret in the header': [{}, basic(id, 'wrong')],
    'a header without a colon': [{}, { authorization: `Basic ${Buffer.from(id).toString('base64')}` }],
    'a header with a malformed escape': [{}, basic(id, '%zz')],
    'another scheme': [{}, { authorization: `Bearer ${adminToken()}` }],
    'a header that is not base64': [{}, { authorization: 'Basic ***' }],
  };
  for (const [name, [form, headers = {}]] of Object.entries(cases)) {
    const answer = await requestToken(server, { ...grant, ...form }, { ...headers });
    t.equal(answer.status, 401, name);
    t.same(answer.body, failed, name);
    const challenge = 'authorization' in headers ? /^Basic realm=/ : null;
    t.match(answer.headers.get('www-authenticate'), challenge, name);
    t.equal(answer.headers.get('cache-control'), 'no-store', name);
  }
});

t.test('malformed requests are invalid_request', async (t) => {
  const server = await start(t);
  const client = await createMachine(server);
  const { client_id: id, client_secret: secret } = client;
  const assertion = { client_assertion: 'a.b.c', client_assertion_type: 'jwt' };
  const invalid = (answer: Answer, error = 'invalid_request', status = 400) =>
    t.match(answer, { status, body: { error, error_description: String } }, answer.text);
  invalid(await requestToken(server, { client_id: id, client_secret: secret }));
  invalid(await requestToken(server, { ...grant, client_secret: secret, client_id: id }, basic(id, secret)));
  invalid(await requestToken(server, { ...grant, client_id: 'other' }, basic(id, secret)));
  invalid(await requestToken(server, { ...grant, client_id: id, ...assertion }));
  invalid(await requestToken(server, { ...grant, client_id: id, client_secret: secret, ...assertion }));
  const twice = [
    ...Object.entries({ ...grant, client_id: id, client_secret: secret }),
    ['scope', 'a'],
    ['scope', 'b'],
  ];
  invalid(await requestToken(server, twice as [string, string][]));
  invalid(await server.call('POST', '/oauth/token', { body: '{"grant_type":' }));
  invalid(await server.call('POST', '/oauth/token', { body: { grant_type: ['client_credentials'] } }));
  invalid(await server.call('POST', '/oauth/token', { body: '[1]' }));
  const large = { ...grant, client_id: id, client_secret: 'x'.repeat(40_000) };
  invalid(await requestToken(server, large), 'invalid_request', 413);
  invalid(await requestToken(server, { grant_type: 'password' }), 'unsupported_grant_type');
  const app = await createMachine(server, {
    grant_types: ['authorization_code'],
    redirect_uris: ['https://a.example/cb'],
  });
  invalid(await requestToken(server, { ...grant, ...secretOf(app) }), 'unauthorized_client');
});

function secretOf({
  client_id,
  client_secret,
}: {
  readonly client_id: string;
  readonly client_secret: string;
}) {
  return { client_id, client_secret };
}

t.test('a token has the requested scopes, or all of the client', async (t) => {
  const server = await start(t);
  const client = await createMachine(server, { scopes: ['orders:read', 'orders:write', 'stock'] });
  const scopeOf = async (scope?: string) =>
    decodeJwt(await machineToken(server, client, scope === undefined ? {} : { scope })).scope;
  t.equal(await scopeOf(), 'orders:read orders:write stock');
  t.equal(await scopeOf('stock orders:read stock'), 'stock orders:read');
  for (const scope of ['admin', 'stock admin', 'stock "', `stock ${'x'.repeat(5_000)}`]) {
    const answer = await requestToken(server, { ...grant, ...secretOf(client), scope });
    t.match(answer, { status: 400, body: { error: 'invalid_scope' } }, scope.slice(0, 20));
  }
});

t.test('a token is for the requested resources, or all of the client', async (t) => {
  const server = await start(t);
  const [orders, stock] = ['https://orders.example/', 'https://stock.example/v1?x=1'];
  const client = await createMachine(server, { audiences: [orders, stock] });
  const fields = Object.entries({ ...grant, ...secretOf(client) });
  const request = (...resources: string[]) =>
    requestToken(server, [
      ...fields,
      ...resources.map((resource) => ['resource', resource] as [string, string]),
    ]);
  const audienceOf = ({ body }: Answer) => decodeJwt(String(body.access_token)).aud;
  t.same(audienceOf(await request()), [orders, stock]);
  t.equal(audienceOf(await request(stock)), stock);
  t.same(audienceOf(await request(stock, orders)), [stock, orders]);
  for (const resource of ['https://billing.example', 'orders', 'https://orders.example/#x', ''])
    t.match(await request(orders, resource), { status: 400, body: { error: 'invalid_target' } }, resource);
  const json = { ...grant, ...secretOf(client), resource: [orders] };
  t.equal(audienceOf(await server.call('POST', '/oauth/token', { body: json })), orders);
  const without = await createMachine(server);
  t.equal(decodeJwt(await machineToken(server, without)).aud, undefined);
});

t.test('with required issuer and audience, tokens of clients have both', async (t) => {
  const server = await start(t, {
    JWT_ISSUER_REQUIRED: 'true',
    JWT_AUDIENCE_REQUIRED: 'true',
    OAUTH_SERVER_CLIENT_TOKEN_TTL: '5m',
  });
  const token = adminToken({ iss: 'http://localhost:9999', aud: 'authenticated' });
  const body = { grant_types: ['client_credentials'] };
  const created = await server.call('POST', '/admin/oauth/clients', { token, body });
  const form = {
    ...grant,
    client_id: String(created.body.client_id),
    client_secret: String(created.body.client_secret),
  };
  const answer = await requestToken(server, form);
  const claims = decodeJwt(String(answer.body.access_token));
  t.match(claims, { iss: 'http://localhost:9999', aud: 'authenticated' });
  t.equal(Number(claims.exp) - Number(claims.iat), 300);
  t.equal(answer.body.expires_in, 300);
});

t.test('requests are limited by client, and by address', async (t) => {
  const server = await start(t, {
    RATE_LIMIT_OAUTH_CLIENT: '2',
    RATE_LIMIT_OAUTH_TOKEN: '5',
    RATE_LIMIT_HEADER: 'x-client',
  });
  const [one, other] = [await createMachine(server), await createMachine(server)];
  const statusOf = (client: typeof one, secret = client.client_secret, from = '192.0.2.1') =>
    requestToken(
      server,
      { ...grant, client_id: client.client_id, client_secret: secret },
      { 'x-client': from },
    );
  t.equal((await statusOf(one, 'wrong')).status, 401, 'does not count for the client');
  t.equal((await statusOf(one)).status, 200);
  t.equal((await statusOf(one)).status, 200);
  const limited = await statusOf(one);
  t.match(limited, { status: 429, body: { error: 'temporarily_unavailable' } });
  t.match(limited.headers.get('retry-after'), /^\d+$/);
  t.equal((await statusOf(other)).status, 200, 'another client has a limit of its own');
  t.match(await statusOf(other), { status: 429, body: { error: 'temporarily_unavailable' } }, 'the address');
  t.equal((await statusOf(other, undefined, '192.0.2.2')).status, 200, 'from another address');
});

t.test('a token of a client is none of a user, nor of an administrator', async (t) => {
  const server = await start(t);
  const client = await createMachine(server, { role: 'authenticated' });
  const token = await machineToken(server, client);
  t.match(await server.call('GET', '/user', { token }), {
    status: 403,
    body: { error_code: 'bad_jwt', msg: /sub is a client/ },
  });
  // An administrator may create a user with any id.
  const user = `/admin/users/${client.client_id}`;
  await server.call('POST', user, { token: adminToken(), body: { email: 'ada@example.com' } });
  t.equal((await server.call('GET', '/user', { token })).status, 403);
  t.equal((await server.call('GET', '/admin/users', { token })).status, 403);
});

t.test('requests are counted by result', async (t) => {
  const server = await start(t, {
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
  });
  const client = await createMachine(server);
  await machineToken(server, client);
  await requestToken(server, { ...grant, ...secretOf(client), client_secret: 'wrong' });
  await requestToken(server, { ...grant, ...secretOf(client), scope: 'admin' });
  await server.call('POST', '/oauth/token', { body: '{' });
  const url = /"url":"(http:\/\/127\.0\.0\.1:\d+\/)"/.exec(server.logs())?.[1] ?? '';
  const text = await (await fetch(url)).text();
  const counts = {
    ...{ issued: 1, invalid_client: 1, invalid_scope: 1, invalid_request: 1, invalid_target: 0 },
    ...{ unauthorized_client: 0, unsupported_grant_type: 0, temporarily_unavailable: 0, failed: 0 },
  };
  for (const [result, count] of Object.entries(counts))
    t.ok(text.includes(`auth_oauth_tokens_total{result="${result}"} ${count}\n`), result);
});

t.test('secrets and tokens are not in the log', async (t) => {
  const server = await start(t);
  const client = await createMachine(server);
  const token = await machineToken(server, client);
  await requestToken(server, grant, basic(client.client_id, client.client_secret));
  await requestToken(server, { ...grant, client_id: client.client_id, client_secret: 'wrong-secret' });
  for (const text of [client.client_secret, token, 'wrong-secret']) t.notOk(logHas(server, text));
});

function logHas(server: AuthServer, text: string): boolean {
  return server.logs().includes(text) || server.logs().includes(encodeURIComponent(text));
}
