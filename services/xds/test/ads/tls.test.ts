import { copyFile } from 'node:fs/promises';
import { connect as connectTls } from 'node:tls';
import { credentials, status } from '@grpc/grpc-js';
import { watchServerCredentials } from '@tollgate/kit/grpc/credentials';
import { createSanGuard } from '@tollgate/kit/grpc/peer';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificate, makeCertificates } from '@tollgate/testkit/certificates';
import t, { type Test } from 'tap';
import { readSettings, toAdsListenOptions } from '../../src/config/settings.ts';
import { connectAds, type SotwTestStream } from '../support/ads-client.ts';
import { startAdsServer } from '../support/start-ads-server.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

/** A server with TLS, mutual or not, and limiters of it. */
async function startTls(
  t: Test,
  {
    mutual,
    san,
    maxStreamsPerPeer = 0,
  }: { mutual: boolean; san?: readonly string[]; maxStreamsPerPeer?: number },
) {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server } = certificates;
  const files = {
    certFile: server.certFile,
    keyFile: server.keyFile,
    clientCaFile: mutual ? ca.certFile : '',
  };
  const watched = await watchServerCredentials(files, {
    logger: createLogger({ level: 'fatal', format: 'json' }),
    onAttempt: () => undefined,
  });
  t.teardown(() => watched.close());
  const { port } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
    credentials: watched.credentials,
    maxStreamsPerPeer,
    ...(san === undefined ? {} : { guard: createSanGuard(san) }),
  });
  return {
    certificates,
    port,
    open(client?: Certificate): SotwTestStream {
      const root = Buffer.from(ca.cert);
      const channel =
        client === undefined
          ? credentials.createSsl(root)
          : credentials.createSsl(root, Buffer.from(client.key), Buffer.from(client.cert));
      const stream = connectAds(t, `localhost:${port}`, channel).sotw();
      stream.send();
      return stream;
    },
  };
}

/** Serial number of the certificate that new connections get. */
function servedSerial(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] };
    const socket = connectTls(options, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

t.test('rule 16: streams are served over TLS, and not without it', async (t) => {
  const { open, port } = await startTls(t, { mutual: false });
  t.ok(await open().next());
  t.match(await connectAds(t, `localhost:${port}`).sotw().ended, { code: status.UNAVAILABLE });
});

t.test('rule 16: mutual TLS requires a certificate of the authority', async (t) => {
  const { open, certificates } = await startTls(t, { mutual: true });
  t.ok(await open(certificates.client).next());
  t.match(await open().ended, { code: status.UNAVAILABLE });
});

t.test('rule 16: a certificate without the required name is refused', async (t) => {
  const { open, certificates } = await startTls(t, { mutual: true, san: ['auth.test', 'client.test'] });
  t.ok(await open(certificates.client).next());
  const auth = certificates.issue({ name: 'auth', subjectAltNames: ['DNS:auth.test'] });
  t.ok(await open(auth).next());
  t.match(await open(certificates.server).ended, {
    code: status.UNAUTHENTICATED,
    details: /auth\.test or client\.test/,
  });
});

t.test('rule 16: new connections use a new certificate, and streams continue', async (t) => {
  const { open, certificates, port } = await startTls(t, { mutual: false });
  const standing = open();
  const first = await standing.next();
  const before = await servedSerial(port);
  const next = certificates.issue({ name: 'next', subjectAltNames: ['DNS:localhost'] });
  await copyFile(next.keyFile, certificates.server.keyFile);
  await copyFile(next.certFile, certificates.server.certFile);
  await awaitUntil(async () => (await servedSerial(port)) !== before, { what: 'the new certificate' });
  standing.ack(first, { resourceNames: ['none'] });
  t.same((await standing.next()).resources, []);
});

t.test('limiters with certificates behind one address connect by the default settings', async (t) => {
  const settings = readSettings({
    XDS_FOLDER: '/m',
    XDS_GRPC_TLS_CERT: '/c',
    XDS_GRPC_TLS_KEY: '/k',
    XDS_GRPC_CLIENT_CACERT: '/ca',
  });
  if (!settings.ok) throw new Error('invalid settings');
  const { maxStreamsPerPeer = 0 } = toAdsListenOptions(settings.settings);
  const { open, certificates } = await startTls(t, { mutual: true, maxStreamsPerPeer });
  const limiters = Array.from({ length: 150 }, () => open(certificates.client));
  for (const limiter of limiters) t.ok(await limiter.next());
});
