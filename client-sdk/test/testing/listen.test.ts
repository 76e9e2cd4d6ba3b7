import t from 'tap';
import { startAuthorizationServer } from '../../src/testing.ts';

t.test('the server answers over HTTP where its issuer says', async (t) => {
  const server = await startAuthorizationServer();
  t.teardown(() => server.close());
  const response = await fetch(server.endpoints.token, {
    method: 'POST',
    body: new URLSearchParams({
      ...{ grant_type: 'client_credentials', client_id: 'client', client_secret: 'secret' },
    }),
  });
  t.equal(response.status, 200);
  const { access_token: token } = (await response.json()) as { access_token: string };
  const api = await fetch(`${server.endpoints.resource}/a`, {
    headers: { authorization: `Bearer ${token}` },
  });
  t.match(await api.json(), { path: '/resource/a', sub: 'client' });
});

t.test('a refused request closes the connection', async (t) => {
  const server = await startAuthorizationServer();
  t.teardown(() => server.close());
  server.inject({ effect: 'refuse' });
  await t.rejects(fetch(server.endpoints.token, { method: 'POST' }), TypeError);
});
