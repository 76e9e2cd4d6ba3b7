import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { sendTcp } from '../src/tcp.ts';

t.test('server and client certificates carry their names and are signed by the authority', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const ca = new X509Certificate(certificates.ca.cert);
  const server = new X509Certificate(certificates.server.cert);
  const client = new X509Certificate(certificates.client.cert);

  t.equal(server.subjectAltName, 'DNS:localhost, IP Address:127.0.0.1');
  t.equal(client.subjectAltName, 'DNS:client.test, URI:spiffe://test/client');
  t.ok(server.verify(ca.publicKey));
  t.ok(client.verify(ca.publicKey));
  t.ok(ca.ca);
  t.notOk(server.ca);
});

t.test('a name issued again gets a new pair in the same files', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const renewed = certificates.issue({
    name: 'server',
    commonName: 'renewed',
    subjectAltNames: ['DNS:localhost'],
  });

  t.equal(renewed.certFile, certificates.server.certFile);
  t.not(renewed.cert, certificates.server.cert);
  t.equal(readFileSync(renewed.keyFile, 'utf8'), renewed.key);
  t.equal(new X509Certificate(renewed.cert).subject, 'CN=renewed');
});

t.test('a certificate valid for no days has expired', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const expired = new X509Certificate(certificates.issue({ name: 'expired', validDays: 0 }).cert);
  t.ok(expired.validToDate.getTime() <= Date.now());
});

t.test('all files are gone after remove', async (t) => {
  const certificates = makeCertificates();
  certificates.remove();
  t.notOk(existsSync(certificates.folder));
});

t.test('a Redis with TLS serves clients with a certificate of its authority', async (t) => {
  const { ca, server, client, remove } = makeCertificates();
  t.teardown(remove);
  const redis = await startRedis({
    tls: { certFile: server.certFile, keyFile: server.keyFile, caFile: ca.certFile },
  });
  t.teardown(redis.stop);
  const target = { host: redis.host, port: redis.port };

  t.equal(
    await sendTcp('PING\r\n', target, { ca: ca.cert, cert: client.cert, key: client.key }),
    '+PONG\r\n',
  );
  await t.rejects(sendTcp('PING\r\n', target, { ca: ca.cert }), 'without a certificate');
});
