import { decodeJwt } from 'jose';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import {
  checkRequest,
  createMachine,
  machineToken,
  oauthServer,
  requestToken,
} from '../helpers/oauth-clients.ts';

t.test('a client gets a token, which the gateway accepts until the client is deleted', async (t) => {
  const server = await startAuthServer(t, { ...oauthServer, EXT_AUTHZ_MAX_STALENESS: '1m' });
  const client = await createMachine(server, { plan: 'pro', role: 'reporter', scopes: ['orders:read'] });
  const token = await machineToken(server, client);
  t.match(decodeJwt(token), {
    iss: 'http://localhost:9999',
    sub: client.client_id,
    client_id: client.client_id,
    scope: 'orders:read',
    jti: /^[\w-]{36}$/,
  });
  const allowed = await checkRequest(server, token);
  t.equal(allowed.status, 200, allowed.text);
  const named = (name: string) => allowed.headers.get(`x-auth-${name}`);
  t.match(['kind', 'client-id', 'plan', 'role', 'scope', 'issuer', 'user-id'].map(named), [
    'client',
    client.client_id,
    'pro',
    'reporter',
    'orders:read',
    'tollgate',
    null,
  ]);

  const { status } = await server.call('DELETE', `/admin/oauth/clients/${client.client_id}`, {
    token: adminToken(),
  });
  t.equal(status, 204);
  const refused = await checkRequest(server, token);
  t.equal(refused.status, 401);
  t.match(refused.text, /oauth_client_not_found/);
  t.match(await requestToken(server, { grant_type: 'client_credentials', ...client }), {
    status: 401,
    body: { error: 'invalid_client' },
  });
});
