import { copyFile, writeFile } from 'node:fs/promises';
import { ServerCredentials } from '@grpc/grpc-js';
import { startAdsServer } from '@tollgate/testkit/ads-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificate, type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { followServer, textsResponse } from './helpers/follow-server.ts';

function certificatesFor(t: Test): Certificates {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  return certificates;
}

/** A server with TLS that serves one text; `mutual` wants a certificate of its clients. */
async function startTlsServer(
  t: Test,
  { ca, server }: Certificates,
  { mutual = false, own = server, port = 0 }: { mutual?: boolean; own?: Certificate; port?: number } = {},
) {
  const pair = { private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.cert) };
  const credentials = ServerCredentials.createSsl(Buffer.from(ca.cert), [pair], mutual);
  const ads = await startAdsServer(t, { credentials, port });
  ads.send(textsResponse('v1', 'a'));
  return ads;
}

const tlsOf = ({ ca }: Certificates, client?: Certificate, serverName = '') => ({
  caFile: ca.certFile,
  certFile: client?.certFile ?? '',
  keyFile: client?.keyFile ?? '',
  serverName,
});

t.test('TLS: the authority and the name of the server are verified', async (t) => {
  const certificates = certificatesFor(t);
  const { url } = await startTlsServer(t, certificates);
  await followServer(t, url, { tls: tlsOf(certificates) }).inForce('a');

  const untrusted = followServer(t, url, { tls: tlsOf(certificatesFor(t)) });
  t.match(await untrusted.logged(/server unreachable/), { reason: /certificate/ });
  const plain = followServer(t, url);
  await plain.logged(/server unreachable/);
  t.same([...untrusted.sets, ...plain.sets], []);
});

t.test('the certificate must have the server name instead of the host', async (t) => {
  const certificates = certificatesFor(t);
  const own = certificates.issue({ name: 'xds', subjectAltNames: ['DNS:xds.tollgate.svc'] });
  const { url } = await startTlsServer(t, certificates, { own });
  const right = followServer(t, url, { tls: tlsOf(certificates, undefined, 'xds.tollgate.svc') });
  await right.inForce('a');

  for (const wrong of ['', 'other.tollgate.svc']) {
    const source = followServer(t, url, { tls: tlsOf(certificates, undefined, wrong) });
    t.match(await source.logged(/server unreachable/), { reason: /xds\.tollgate\.svc/ });
    t.same(source.sets, []);
  }
});

t.test('mutual TLS: the client certificate is sent', async (t) => {
  const certificates = certificatesFor(t);
  const { url } = await startTlsServer(t, certificates, { mutual: true });
  await followServer(t, url, { tls: tlsOf(certificates, certificates.client) }).inForce('a');
  const without = followServer(t, url, { tls: tlsOf(certificates) });
  await without.logged(/server unreachable|ended the stream/);
  t.same(without.sets, []);
});

t.test('changed files are used from the next stream on', async (t) => {
  const certificates = certificatesFor(t);
  const next = certificatesFor(t);
  const server = await startTlsServer(t, certificates);
  const source = followServer(t, server.url, { tls: tlsOf(certificates) });
  await source.inForce('a');

  await copyFile(next.ca.certFile, certificates.ca.certFile);
  await source.logged(/TLS files reloaded/);
  server.stop();
  const renewed = await startTlsServer(t, next, { port: server.port });
  renewed.send(textsResponse('v2', 'b'));
  await source.inForce('b');

  await writeFile(certificates.ca.certFile, 'no certificate');
  t.match(await source.logged(/new TLS files not used/), { level: 'error', problem: /holds no certificate/ });
  renewed.endStreams();
  await awaitUntil(() => renewed.headers.length > 1, { what: 'a stream with the files of before' });
});

t.test('invalid files are a start error that names them', async (t) => {
  const certificates = certificatesFor(t);
  const tls = { ...tlsOf(certificates, certificates.client), keyFile: certificates.server.keyFile };
  await t.rejects(followServer(t, 'localhost:1', { tls }).started, {
    message: /server\.key does not belong/,
  });
  const missing = { ...tlsOf(certificates), caFile: '/nowhere/ca.crt' };
  await t.rejects(followServer(t, 'localhost:1', { tls: missing }).started, {
    message: /\/nowhere\/ca\.crt/,
  });
});
