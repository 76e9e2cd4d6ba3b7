import { makeCertificates } from '@tollgate/testkit/certificates';
import t from 'tap';
import { Client } from '../../src/index.ts';
import { nodeTransport } from '../../src/node.ts';
import { startAuthorizationServer } from '../../src/testing.ts';

t.test('tls_client_auth uses the certificate at the token endpoint and the API', async (t) => {
  const certificates = makeCertificates();
  t.teardown(() => certificates.remove());
  const { server: own, client: mine, ca } = certificates;
  const server = await startAuthorizationServer({
    clients: [{ clientId: 'app' }],
    tls: { cert: own.cert, key: own.key, ca: ca.cert, requestCert: true, rejectUnauthorized: true },
  });
  t.teardown(() => server.close());
  const fetch = nodeTransport({ cert: mine.cert, key: mine.key, ca: ca.cert });
  t.teardown(() => fetch.close());
  const options = { site: server.issuer, clientId: 'app', clientAuth: 'tls_client_auth' } as const;
  const client = new Client({ ...options, fetch });
  const token = await client.password.getToken('user', 'password');
  t.match((await token.get('/resource/me')).parsed, { sub: 'user' });
  t.match(server.requests[0]?.params.toString(), /client_id=app/);

  const bare = nodeTransport({ ca: ca.cert });
  t.teardown(() => bare.close());
  const untrusting = new Client({ ...options, fetch: bare });
  await t.rejects(untrusting.password.getToken('user', 'password'), { name: 'ConnectionError' });
});

t.test('an unreachable server, a time-out and an aborted signal are typed errors', async (t) => {
  const server = await startAuthorizationServer();
  t.teardown(() => server.close());
  const fetch = nodeTransport();
  t.teardown(() => fetch.close());
  const client = new Client({ site: server.issuer, clientId: 'client', clientSecret: 'secret', fetch });
  server.inject({ effect: 'hang', times: 2 });
  await t.rejects(client.clientCredentials.getToken({}, { timeoutMs: 50 }), { name: 'TimeoutError' });
  const giveUp = new AbortController();
  const pending = client.clientCredentials.getToken({}, { signal: giveUp.signal });
  giveUp.abort(new Error('enough'));
  await t.rejects(pending, { name: 'AbortError', cause: { message: 'enough' } });
  await server.close();
  await t.rejects(client.clientCredentials.getToken(), { name: 'ConnectionError' });
});
