import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { startEdge } from './support/edge.ts';
import { tlsTransportSocket } from './support/envoy-tls.ts';
import { startFolderXds } from './support/folder-xds.ts';
import { isWelcome } from './support/is-welcome.ts';
import { startLoad } from './support/load.ts';
import { countedHits } from './support/redis-counters.ts';
import { startRedisLimiter } from './support/redis-limiter.ts';
import { makeRotatingCertificates } from './support/rotating-certificates.ts';

t.setTimeout(120_000);

/** Requests answered between two steps. Each connection lives for ten, so that many begin with what the step left. */
const someRequests = 200;

/** How often Envoy has read a certificate or authorities that differ from those before. */
const updatesOfSecrets = 'cluster.ratelimit.client_ssl_socket_factory.ssl_context_update_by_sds';

t.test('certificates and their authority are replaced on both sides, and no request fails', async (t) => {
  const [old, next] = [authority(t), authority(t)];
  const serverFiles = makeRotatingCertificates(t, { own: old.server, authorities: [old.ca] });
  const clientFiles = makeRotatingCertificates(t, { own: old.client, authorities: [old.ca] });
  const redis = await startRedis();
  t.teardown(redis.stop);
  const xds = await startFolderXds(t, 10_000_000);
  const limiter = await startRedisLimiter(
    t,
    { xds, redis },
    {
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: serverFiles.certFile,
      GRPC_SERVER_TLS_KEY: serverFiles.keyFile,
      GRPC_CLIENT_TLS_CACERT: serverFiles.caFile,
      GRPC_CLIENT_TLS_SAN: 'client.test',
    },
  );
  const edge = await startEdge(t, {
    limiters: {
      ports: [limiter.grpcPort],
      maxRequestsPerConnection: 10,
      transportSocket: tlsTransportSocket(t, clientFiles),
    },
    listeners: [{ name: 'ingress', failureModeDeny: true }],
  });
  const limiterTakes = (authorities: Certificates, taken: boolean) =>
    awaitUntil(async () => (await isWelcome(limiter.grpcPort, authorities.client, servedBy())) === taken, {
      what: `the limiter ${taken ? 'to take' : 'to refuse'} a certificate`,
      timeoutMs: 20_000,
      everyMs: 50,
    });
  let serverAuthority = old;
  const servedBy = () => serverAuthority.ca;
  const envoyReads = async (replace: () => void) => {
    const before = await updates();
    replace();
    await awaitUntil(async () => (await updates()) > before, {
      what: 'Envoy to read its files',
      timeoutMs: 20_000,
      everyMs: 50,
    });
  };
  const updates = async () => (await edge.stats(updatesOfSecrets))[updatesOfSecrets] ?? 0;

  const load = startLoad({ url: edge.url('ingress'), headers: { 'x-tenant': 'a' } });
  t.teardown(load.stop);
  await load.goOn(someRequests);

  await t.test('both sides learn to trust the next authority', async (t) => {
    serverFiles.replace({ own: old.server, authorities: [old.ca, next.ca] });
    await limiterTakes(next, true);
    await envoyReads(() => clientFiles.replace({ own: old.client, authorities: [old.ca, next.ca] }));
    await load.goOn(someRequests);
    t.same(Object.keys(load.answers()), ['200']);
  });

  await t.test('both show certificates of the next authority', async (t) => {
    serverAuthority = next;
    serverFiles.replace({ own: next.server, authorities: [old.ca, next.ca] });
    await limiterTakes(next, true);
    await envoyReads(() => clientFiles.replace({ own: next.client, authorities: [old.ca, next.ca] }));
    await load.goOn(someRequests);
    t.same(Object.keys(load.answers()), ['200']);
  });

  await t.test('both forget the old authority', async (t) => {
    serverFiles.replace({ own: next.server, authorities: [next.ca] });
    await limiterTakes(old, false);
    await envoyReads(() => clientFiles.replace({ own: next.client, authorities: [next.ca] }));
    await load.goOn(someRequests);
    t.same(Object.keys(load.answers()), ['200']);
  });

  await load.stop();
  t.same(load.answers(), { 200: load.answered() });
  t.equal(await countedHits(redis), load.answered(), 'each request was counted, and once');
  const stats = await edge.stats('^cluster\\.(upstream\\.ratelimit\\.error|ratelimit\\.ssl\\.)');
  t.equal(stats['cluster.upstream.ratelimit.error'] ?? 0, 0);
  t.equal(stats['cluster.ratelimit.ssl.connection_error'], 0);
  t.equal(stats['cluster.ratelimit.ssl.fail_verify_error'], 0);
  t.ok((stats['cluster.ratelimit.ssl.handshake'] ?? 0) >= load.answered() / 10, JSON.stringify(stats));
});

function authority(t: Test): Certificates {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  return certificates;
}
