import { type Certificate, makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { ConnectionError } from '../../../src/index.ts';
import { nodeTransport } from '../../../src/node.ts';
import { clientOf } from './support/client-of.ts';
import { serviceClient } from './support/clients.ts';
import { startProvider } from './support/start-provider.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);

const { client_secret: _secret, ...withoutSecret } = serviceClient;
const certifiedClient = {
  ...withoutSecret,
  token_endpoint_auth_method: 'tls_client_auth' as const,
  tls_client_auth_san_dns: 'client.test',
  tls_client_certificate_bound_access_tokens: true,
};

async function startWithCertificate(t: Test, certificate?: Pick<Certificate, 'cert' | 'key'>) {
  const { ca, server } = certificates;
  const provider = await startProvider({
    clients: [certifiedClient],
    tls: { cert: server.cert, key: server.key, ca: ca.cert },
  });
  t.teardown(provider.stop);
  const transport = nodeTransport({
    ca: ca.cert,
    ...(certificate === undefined ? {} : { cert: certificate.cert, key: certificate.key }),
  });
  t.teardown(transport.close);
  return clientOf(provider, certifiedClient, { clientAuth: 'tls_client_auth', fetch: transport });
}

t.test('a client certificate is the credential, and the token is bound to it', async (t) => {
  const client = await startWithCertificate(t, certificates.client);
  const token = await client.clientCredentials.getToken();
  t.ok(token.token);
});

t.test('a certificate of another name is rejected as invalid_client', async (t) => {
  const other = certificates.issue({ name: 'other', subjectAltNames: ['DNS:other.test'] });
  const client = await startWithCertificate(t, other);
  await t.rejects(client.clientCredentials.getToken(), { code: 'invalid_client' });
});

t.test('a client without a certificate is rejected', async (t) => {
  const client = await startWithCertificate(t);
  await t.rejects(client.clientCredentials.getToken(), { code: 'invalid_client' });
});

t.test('a server with an untrusted certificate gets no request', async (t) => {
  const { server, ca, client: certificate } = certificates;
  const provider = await startProvider({
    clients: [certifiedClient],
    tls: { cert: server.cert, key: server.key, ca: ca.cert },
  });
  t.teardown(provider.stop);
  const transport = nodeTransport({ cert: certificate.cert, key: certificate.key });
  t.teardown(transport.close);
  const client = clientOf(provider, certifiedClient, { clientAuth: 'tls_client_auth', fetch: transport });
  await t.rejects(client.clientCredentials.getToken(), ConnectionError);
});
