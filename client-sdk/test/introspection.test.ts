import t from 'tap';
import { Client } from '../src/client.ts';
import { introspectToken } from '../src/introspection.ts';
import { createAuthorizationServer } from '../src/testing/authorization-server.ts';

function makeClient(changes: { clientSecret?: string; throwOnError?: boolean } = {}) {
  const server = createAuthorizationServer({ now: () => 1_800_000_000 });
  const client = new Client({
    ...{ clientId: 'client', clientSecret: 'secret', ...changes },
    ...{ site: server.issuer, introspectionEndpoint: server.endpoints.introspection, fetch: server.fetch },
  });
  return { server, client };
}

t.test('introspection describes an active token and reports a revoked one as inactive', async (t) => {
  const { server, client } = makeClient();
  const { access_token: token } = await server.issueTokens({ scope: 'read', subject: 'u1' });
  const active = await introspectToken(client, token, { hint: 'access_token' });
  t.match(active, { active: true, sub: 'u1', scope: 'read', client_id: 'client', exp: 1_800_003_600 });
  t.match(server.requests.at(-1), { method: 'POST', body: `token=${token}&token_type_hint=access_token` });
  server.revoke(token);
  t.same(await introspectToken(client, token), { active: false });
});

t.test('other members of an inactive token are dropped', async (t) => {
  const { server, client } = makeClient();
  server.inject({ effect: () => Response.json({ active: false, sub: 'root' }) });
  t.same(await introspectToken(client, 't'), { active: false });
});

t.test('member names and values are not converted', async (t) => {
  const { server, client } = makeClient();
  server.inject({ effect: () => Response.json({ active: true, tenantId: 5, 'x-Y': [1] }) });
  t.same(await introspectToken(client, 't', { params: { custom: '1' } }), {
    active: true,
    tenantId: 5,
    'x-Y': [1],
  });
  t.equal(server.requests.at(-1)?.params.get('custom'), '1');
});

t.test('a response without active is an error', async (t) => {
  for (const body of ['{}', '{"active":"true"}', '[]', 'null', '{']) {
    const { server, client } = makeClient();
    const headers = { 'content-type': 'application/json' };
    server.inject({ effect: () => new Response(body, { headers }) });
    await t.rejects(introspectToken(client, 't'), { name: 'ParseError' }, body);
  }
});

t.test('an error response throws regardless of throwOnError', async (t) => {
  const { client } = makeClient({ clientSecret: 'wrong', throwOnError: false });
  await t.rejects(introspectToken(client, 't'), { name: 'OAuthError', code: 'invalid_client' });
});

t.test('without an endpoint nothing is sent', async (t) => {
  const { server } = makeClient();
  const client = new Client({ site: server.issuer, clientId: 'client', fetch: server.fetch });
  await t.rejects(introspectToken(client, 't'), {
    name: 'ConfigurationError',
    message: /introspectionEndpoint/,
  });
  t.equal(server.requests.length, 0);
});
