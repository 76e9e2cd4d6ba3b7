import { copyFileSync, writeFileSync } from 'node:fs';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { credentials, status } from '@grpc/grpc-js';
import { HealthCheckResponse_ServingStatus as Serving } from '@tollgate/proto/grpc/health/v1/health';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificate, type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz } from '../helpers/authz-client.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';

function certificatesFor(t: Test): Certificates {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  return certificates;
}

const tls = ({ server }: Certificates) => ({
  EXT_AUTHZ_TLS_CERT: server.certFile,
  EXT_AUTHZ_TLS_KEY: server.keyFile,
});

const mutualTls = (certificates: Certificates) => ({
  ...tls(certificates),
  EXT_AUTHZ_TLS_CA: certificates.ca.certFile,
  EXT_AUTHZ_TLS_CLIENT_SAN: 'client.test',
});

/**
 * Sends a request without a token over TLS; answers the first line and the serial number of the
 * certificate, or the reason why not.
 */
function ask(
  port: number,
  { ca }: Certificates,
  client?: Certificate,
): Promise<{ line: string; serial: string }> {
  const options: ConnectionOptions = { port, host: 'localhost', ca: ca.cert, ...client };
  return new Promise((resolve, reject) => {
    const socket = connectTls(options, () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
    socket.setEncoding('utf8').on('error', reject);
    socket.on('close', () => reject(new Error('closed without an answer')));
    socket.once('data', (text: string) => {
      resolve({ line: text.split('\r\n', 1)[0] ?? '', serial: socket.getPeerCertificate().serialNumber });
      socket.destroy();
    });
  });
}

function channel({ ca }: Certificates, client?: Certificate) {
  return client === undefined
    ? credentials.createSsl(Buffer.from(ca.cert))
    : credentials.createSsl(Buffer.from(ca.cert), Buffer.from(client.key), Buffer.from(client.cert));
}

t.test('both servers require TLS', async (t) => {
  const certificates = certificatesFor(t);
  const { extAuthz } = await startAuthServer(t, tls(certificates));
  t.equal(await connectAuthz(t, extAuthz.grpc, channel(certificates)).health('ext_authz'), Serving.SERVING);
  await t.rejects(connectAuthz(t, extAuthz.grpc).health('ext_authz'), { code: status.UNAVAILABLE });
  t.match(await ask(extAuthz.http, certificates), { line: 'HTTP/1.1 401 Unauthorized' });
  await t.rejects(fetch(`http://127.0.0.1:${extAuthz.http}/`));
});

t.test('new connections use reloaded certificates; a mismatched pair is ignored', async (t) => {
  const certificates = certificatesFor(t);
  const { server: files } = certificates;
  const server = await startAuthServer(t, tls(certificates));
  const standing = connectAuthz(t, server.extAuthz.grpc, channel(certificates));
  await standing.health('');
  const { serial } = await ask(server.extAuthz.http, certificates);

  writeFileSync(files.keyFile, certificates.client.key);
  await awaitUntil(() => server.logs().includes('new TLS files not used'), {
    what: 'the bad pair to be seen',
  });
  t.match(await ask(server.extAuthz.http, certificates), { serial });

  const next = certificates.issue({ name: 'next', subjectAltNames: ['DNS:localhost'] });
  copyFileSync(next.keyFile, files.keyFile);
  copyFileSync(next.certFile, files.certFile);
  await awaitUntil(async () => (await ask(server.extAuthz.http, certificates)).serial !== serial, {
    what: 'the new certificate',
  });
  const fresh = connectAuthz(t, server.extAuthz.grpc, channel(certificates));
  t.equal(await fresh.health(''), Serving.SERVING);
  t.equal(await standing.health(''), Serving.SERVING, 'connections that stand go on');
});

t.test('clients need a certificate of the CA with the configured name', async (t) => {
  const certificates = certificatesFor(t);
  const untrusted = certificatesFor(t);
  const other = certificates.issue({ name: 'other', subjectAltNames: ['DNS:other.test'] });
  const { extAuthz, logs } = await startAuthServer(t, {
    ...mutualTls(certificates),
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'prometheus',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
  });
  const metrics = async () => (await fetch(/"url":"([^"]+)"/.exec(logs())?.[1] ?? '')).text();
  t.match(await metrics(), 'tollgate_tls_handshake_failures_total{listener="ext_authz_grpc"} 0\n');
  t.match(await metrics(), 'tollgate_tls_handshake_failures_total{listener="ext_authz_http"} 0\n');
  t.match(
    await metrics(),
    /^tollgate_tls_certificate_expiry_timestamp_seconds\{certificate="ext_authz_server"\} \d{10}$/m,
  );
  const grpc = (client?: Certificate) =>
    connectAuthz(t, extAuthz.grpc, channel(certificates, client)).health('');
  t.equal(await grpc(certificates.client), Serving.SERVING);
  await t.rejects(grpc(), { code: status.UNAVAILABLE });
  await t.rejects(grpc(untrusted.client), { code: status.UNAVAILABLE });
  await t.rejects(grpc(other), { code: status.UNAUTHENTICATED, details: /client\.test/ });
  t.match(await ask(extAuthz.http, certificates, certificates.client), { line: 'HTTP/1.1 401 Unauthorized' });
  for (const client of [undefined, untrusted.client, other])
    await t.rejects(ask(extAuthz.http, certificates, client));
  t.match(await metrics(), /^tollgate_tls_handshake_failures_total\{listener="ext_authz_grpc"\} [1-9]/m);
  t.match(await metrics(), /^tollgate_tls_handshake_failures_total\{listener="ext_authz_http"\} [1-9]/m);
});

for (const variant of ['grpc', 'http'] as const)
  t.test(`Envoy uses its certificate over ${variant}, and denies requests without`, async (t) => {
    const certificates = certificatesFor(t);
    const server = await startAuthServer(t, mutualTls(certificates));
    const { accessToken } = await signUp(server);
    const headers = { authorization: `Bearer ${accessToken}` };
    const { ca, client } = certificates;
    const port = server.extAuthz[variant];
    const known = await startAuthzEnvoy(t, { variant, port, tls: { caFile: ca.certFile, ...client } });
    t.equal((await fetch(known.url, { headers })).status, 200);
    t.equal((await fetch(known.url)).status, 401);
    const unknown = await startAuthzEnvoy(t, { variant, port, tls: { caFile: ca.certFile } });
    t.equal((await fetch(unknown.url, { headers })).status, 503);
    t.equal(unknown.upstream.requests.length, 0);
  });

t.test('mismatched files are a startup error that names them', async (t) => {
  const certificates = certificatesFor(t);
  const mixed = { ...tls(certificates), EXT_AUTHZ_TLS_KEY: certificates.client.keyFile };
  await t.rejects(startAuthServer(t, mixed), {
    message: /the key in .*client\.key does not belong to the certificate/,
  });
});
