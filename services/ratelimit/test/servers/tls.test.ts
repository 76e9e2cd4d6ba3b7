import { copyFile, writeFile } from 'node:fs/promises';
import { connect as connectTls } from 'node:tls';
import { credentials, status } from '@grpc/grpc-js';
import { HealthCheckResponse_ServingStatus as Serving } from '@tollgate/proto/grpc/health/v1/health';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificate, type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { formatFamily, serviceMetrics } from '../../src/metrics/prometheus-format.ts';
import type { StatsRegistry } from '../../src/metrics/registry.ts';
import { connect } from '../support/grpc-client.ts';
import { startApp } from '../support/start-app.ts';

function certificatesFor(t: Test): Certificates {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  return certificates;
}

function tlsEnv({ server }: Certificates): Record<string, string> {
  return {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: server.certFile,
    GRPC_SERVER_TLS_KEY: server.keyFile,
  };
}

/** The statistics as they are pulled. */
function metricText(stats: StatsRegistry): string {
  const families = [...serviceMetrics(stats, { responseTimeAsMilliseconds: false })];
  return families.flatMap((family) => [...formatFamily(family)]).join('');
}

function channel({ ca }: Certificates, client?: Certificate) {
  return client === undefined
    ? credentials.createSsl(Buffer.from(ca.cert))
    : credentials.createSsl(Buffer.from(ca.cert), Buffer.from(client.key), Buffer.from(client.cert));
}

/** Serial number of the certificate that new connections get. */
function servedSerial(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls(
      { port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] },
      () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      },
    );
    socket.on('error', reject);
  });
}

t.test('serves TLS, and nothing without it', async (t) => {
  const certificates = certificatesFor(t);
  const { ports } = await startApp(t, { env: tlsEnv(certificates) });
  const address = `localhost:${ports.grpc}`;
  t.equal(await connect(t, address, channel(certificates)).check('ratelimit'), Serving.SERVING);
  await t.rejects(connect(t, address).check('ratelimit'), { code: status.UNAVAILABLE });
});

t.test('an expired certificate is logged and in the metrics, and the service continues', async (t) => {
  const certificates = certificatesFor(t);
  const expired = certificates.issue({
    name: 'expired',
    subjectAltNames: ['DNS:localhost'],
    validDays: 0,
  });
  const { stats, logLines } = await startApp(t, {
    env: tlsEnv({ ...certificates, server: expired }),
    nowMs: () => Date.now() + 60_000,
  });
  t.match(
    logLines.find(({ level }) => level === 'error'),
    { '@message': 'TLS certificate has expired, peers will refuse it', notAfter: String },
  );
  const [, expiry = ''] = /certificate_expiry_timestamp_seconds\{.*\} (\d+)$/m.exec(metricText(stats)) ?? [];
  t.ok(Number(expiry) * 1000 < Date.now() + 60_000);
});

t.test('a renewed certificate is used for new connections, an invalid pair is not', async (t) => {
  const certificates = certificatesFor(t);
  const { ports, logLines } = await startApp(t, { env: tlsEnv(certificates) });
  const standing = connect(t, `localhost:${ports.grpc}`, channel(certificates));
  await standing.check('ratelimit');
  const before = await servedSerial(ports.grpc);

  await writeFile(certificates.server.keyFile, certificates.client.key);
  await awaitUntil(
    () => logLines.some((line) => line['@message'] === 'new TLS files not used, keeping the last good ones'),
    {
      what: 'the bad pair to be noticed',
    },
  );
  t.equal(await servedSerial(ports.grpc), before);

  const next = certificates.issue({ name: 'next', subjectAltNames: ['DNS:localhost'] });
  await copyFile(next.keyFile, certificates.server.keyFile);
  await copyFile(next.certFile, certificates.server.certFile);
  await awaitUntil(async () => (await servedSerial(ports.grpc)) !== before, { what: 'the new certificate' });
  t.equal(await standing.check('ratelimit'), Serving.SERVING, 'connections that stand go on');
});

t.test('mutual TLS: clients need a certificate of the authority', async (t) => {
  const certificates = certificatesFor(t);
  const otherCa = certificatesFor(t);
  const { ports, stats } = await startApp(t, {
    env: { ...tlsEnv(certificates), GRPC_CLIENT_TLS_CACERT: certificates.ca.certFile },
  });
  const metrics = () => metricText(stats);
  t.match(metrics(), 'tollgate_tls_handshake_failures_total{listener="grpc"} 0\n');
  t.match(
    metrics(),
    /^tollgate_tls_certificate_expiry_timestamp_seconds\{certificate="grpc_server"\} \d{10}$/m,
  );
  const address = `localhost:${ports.grpc}`;
  t.equal(await connect(t, address, channel(certificates, certificates.client)).check(''), Serving.SERVING);
  await t.rejects(connect(t, address, channel(certificates)).check(''), { code: status.UNAVAILABLE });
  await t.rejects(connect(t, address, channel(certificates, otherCa.client)).check(''), {
    code: status.UNAVAILABLE,
  });
  t.match(metrics(), /^tollgate_tls_handshake_failures_total\{listener="grpc"\} [1-9]/m);
});

t.test('GRPC_CLIENT_TLS_SAN: the client certificate must have the DNS name', async (t) => {
  const certificates = certificatesFor(t);
  const { ports } = await startApp(t, {
    env: {
      ...tlsEnv(certificates),
      GRPC_CLIENT_TLS_CACERT: certificates.ca.certFile,
      GRPC_CLIENT_TLS_SAN: 'client.test',
    },
  });
  const address = `localhost:${ports.grpc}`;
  const other = certificates.issue({ name: 'other', subjectAltNames: ['DNS:other.test'] });
  const right = connect(t, address, channel(certificates, certificates.client));
  const wrong = connect(t, address, channel(certificates, other));
  t.equal(await right.check('ratelimit'), Serving.SERVING);
  const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
  const refused = { code: status.UNAUTHENTICATED, details: /client.test/ };
  await t.rejects(wrong.check('ratelimit'), refused);
  await t.rejects(wrong.raw(path, Uint8Array.of()), refused);
  await t.rejects(
    wrong.watch('ratelimit', () => undefined),
    refused,
  );
});

t.test('a key and a certificate that do not match are a start error', async (t) => {
  const certificates = certificatesFor(t);
  const env = { ...tlsEnv(certificates), GRPC_SERVER_TLS_KEY: certificates.client.keyFile };
  await t.rejects(startApp(t, { env }), {
    message: /the key in .*client\.key does not belong to the certificate/,
  });
  await t.rejects(startApp(t, { env: { GRPC_SERVER_USE_TLS: 'true' } }), { message: /GRPC_SERVER_TLS_CERT/ });
});
