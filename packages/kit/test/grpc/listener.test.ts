import { once } from 'node:events';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { Registry } from 'prom-client';
import t, { type Test } from 'tap';
import { watchServerCredentials } from '../../src/grpc/credentials.ts';
import { unaryMethod } from '../../src/grpc/library.ts';
import { GrpcListener } from '../../src/grpc/listener.ts';
import { TlsMetrics } from '../../src/metrics.ts';
import { recordingLogger } from '../helpers/recording-logger.ts';

const path = '/test.Silence/Keep';
const silent = createLogger({ level: 'fatal', format: 'json' });

/** A server with a call in flight that is never answered. */
async function startSilence(t: Test) {
  const server = new Server();
  const arrived = Promise.withResolvers<void>();
  server.addService({ Keep: unaryMethod(path) }, { Keep: () => arrived.resolve() });
  const listener = new GrpcListener(server, silent);
  const port = await listener.listen('127.0.0.1:0', ServerCredentials.createInsecure());
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.teardown(() => client.close());
  const { requestSerialize, responseDeserialize } = unaryMethod(path);
  const ended = new Promise<unknown>((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, new Uint8Array(), resolve);
  });
  await arrived.promise;
  return { listener, port, ended };
}

t.test('a call in flight is cut off when the signal aborts', async (t) => {
  const { listener, ended } = await startSilence(t);
  const deadline = new AbortController();
  const stopped = listener.shutDown(deadline.signal, () => deadline.abort());
  await Promise.all([stopped, t.resolves(ended)]);
});

t.test('a call in flight is cut off at once when the signal has aborted', async (t) => {
  const { listener, ended } = await startSilence(t);
  await listener.shutDown(AbortSignal.abort(), () => undefined);
  t.match(await ended, { code: Number });
});

t.test('an address in use rejects', async (t) => {
  const { listener, port } = await startSilence(t);
  t.teardown(() => listener.shutDown(AbortSignal.abort(), () => undefined));
  const second = new GrpcListener(new Server(), silent);
  await t.rejects(second.listen(`127.0.0.1:${port}`, ServerCredentials.createInsecure()));
});

t.test('failed TLS handshakes are counted and logged, silent probes are not', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server: pair, client } = certificates;
  const others = makeCertificates();
  t.teardown(others.remove);
  const registry = new Registry();
  const { logger, lines } = recordingLogger();
  const listener = new GrpcListener(new Server(), silent);
  t.teardown(() => listener.shutDown(AbortSignal.abort(), () => undefined));
  const files = { certFile: pair.certFile, keyFile: pair.keyFile, clientCaFile: ca.certFile };
  const tls = await watchServerCredentials(files, { logger, onAttempt: () => undefined });
  t.teardown(() => tls.close());
  const port = await listener.listen('127.0.0.1:0', tls.credentials, {
    logger,
    listener: 'test',
    onFailure: new TlsMetrics(registry).handshakeFailures('test'),
  });
  const count = async () => {
    const metric = await registry.getSingleMetric('tollgate_tls_handshake_failures_total')?.get();
    return metric?.values[0]?.value;
  };
  t.equal(await count(), 0, 'the series exists from the start');

  const probe = connect(port, '127.0.0.1');
  await once(probe, 'connect');
  probe.end();
  await once(probe, 'close');

  const trusted = { port, host: '127.0.0.1', ca: ca.cert, ALPNProtocols: ['h2'] };
  const good = connectTls({ ...trusted, cert: client.cert, key: client.key });
  await once(good, 'data');
  good.destroy();

  const plaintext = connect(port, '127.0.0.1', () => plaintext.write('GET / HTTP/1.1\r\n\r\n'));
  plaintext.on('error', () => undefined);
  await awaitUntil(async () => (await count()) === 1, { what: 'the plaintext client' });
  const anonymous = connectTls(trusted);
  anonymous.on('error', () => undefined);
  await awaitUntil(async () => (await count()) === 2, { what: 'the client without a certificate' });
  const foreign = connectTls({ ...trusted, cert: others.client.cert, key: others.client.key });
  foreign.on('error', () => undefined);
  await awaitUntil(async () => (await count()) === 3, { what: 'the client with a foreign certificate' });
  const failure = {
    level: 'warning',
    '@message': 'TLS handshake failed',
    listener: 'test',
    peer: '127.0.0.1',
  };
  t.match(lines, [failure, failure, { ...failure, certificateError: String }]);
});
