import t from 'tap';
import { createAuthorizationServer } from '../../src/testing.ts';
import { makeClient, makeManager, startGrant } from './make-manager.ts';

t.test('a 401 that rejects the token renews it and repeats the request once', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  server.revoke(token.token);
  const response = await manager.fetch('/resource/a', { method: 'POST', body: 'again' });
  t.match(await response.json(), { method: 'POST', path: '/resource/a' });
  t.same(
    server.requests.filter(({ endpoint }) => endpoint === 'resource').map(({ body }) => body),
    ['again', 'again'],
  );
  t.equal(server.count('token'), 2);
});

t.test('many calls with a revoked token cause one refresh', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  server.revoke(token.token);
  const responses = await Promise.all(Array.from({ length: 20 }, () => manager.fetch('/resource/a')));
  t.same(new Set(responses.map(({ status }) => status)), new Set([200]));
  t.equal(server.count('token'), 2);
});

t.test('a second 401 is returned', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  server.inject({ endpoint: 'resource', times: 2, effect: () => new Response(null, { status: 401 }) });
  t.equal((await manager.fetch('/resource/a')).status, 401);
  t.equal(server.count('resource'), 2);
  t.equal(server.count('token'), 2);
});

t.test('a 401 for another reason is returned immediately', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  const challenge = { 'www-authenticate': 'Bearer error="insufficient_user_authentication"' };
  server.inject({
    endpoint: 'resource',
    effect: () => new Response(null, { status: 401, headers: challenge }),
  });
  t.equal((await manager.fetch('/resource/a')).status, 401);
  t.equal(server.count('token'), 1);
});

t.test('a 401 is returned if the token cannot be renewed', async (t) => {
  const server = createAuthorizationServer();
  const client = makeClient(server);
  const token = await client.clientCredentials.getToken();
  await using manager = makeManager({ client, token });
  server.revoke(token.token);
  t.equal((await manager.fetch('/resource/a')).status, 401);
});

t.test('a failed renewal after a 401 is thrown', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  server.revoke(token.refreshToken ?? '');
  await t.rejects(manager.fetch('/resource/a'), { name: 'TokenResponseError', code: 'invalid_grant' });
});

t.test('a body that is a function is called for each attempt; a stream cannot be sent twice', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  const stream = () => new Blob(['streamed']).stream();
  server.revoke(token.token);
  t.equal((await manager.fetch('/resource/a', { method: 'PUT', body: stream })).status, 200);
  t.same(
    server.requests.filter(({ endpoint }) => endpoint === 'resource').map(({ body }) => body),
    ['streamed', 'streamed'],
  );
  server.revoke((await manager.getToken()).token);
  await t.rejects(manager.fetch('/resource/a', { method: 'PUT', body: stream() }), {
    name: 'ConfigurationError',
    message: /stream.*function/,
  });
  t.equal((await manager.fetch('/resource/a', { method: 'PUT', body: stream() })).status, 200, 'call again');
});

t.test('a Request without a body is repeated, one with a body is not', async (t) => {
  const { server, client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  const url = `${server.endpoints.resource}/a`;
  server.revoke(token.token);
  t.equal((await manager.fetch(new Request(url))).status, 200);
  server.revoke((await manager.getToken()).token);
  await t.rejects(manager.fetch(new Request(url, { method: 'POST', body: 'x' })), {
    name: 'ConfigurationError',
  });
});

t.test('tokens go to allowed origins only', async (t) => {
  const { client, token } = await startGrant();
  await using manager = makeManager({ client, token });
  await t.rejects(manager.fetch('https://elsewhere.test/'), { name: 'ConfigurationError' });
});
