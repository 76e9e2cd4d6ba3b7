import t, { type Test } from 'tap';
import { clientName, makeMutualTls, replaceCertificates } from './support/certificates.ts';
import { type Edge, startEdge } from './support/edge.ts';
import { countedHits, startAuth, startAuthDatabase, startLimits } from './support/processes.ts';
import { type Load, startLoad } from './support/requests.ts';

const listeners = [{ name: 'ingress', failureModeDeny: true }];

/** So few that under load new connections are always opened. */
const maxRequestsPerConnection = 10;

t.test('no request fails while the certificates between Envoy and a limiter are replaced', async (t) => {
  const tls = makeMutualTls(t);
  const settings = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: tls.serverFiles.certFile,
    GRPC_SERVER_TLS_KEY: tls.serverFiles.keyFile,
    GRPC_CLIENT_TLS_CACERT: tls.serverFiles.caFile,
    GRPC_CLIENT_TLS_SAN: clientName,
  };
  const { redis, limiter } = await startLimits(t, { requestsPerYear: 10_000_000, settings });
  const { grpcPort: port } = limiter;
  const { transportSocket } = tls;
  const edge = await startEdge(t, {
    limiters: { ports: [port], maxRequestsPerConnection, transportSocket },
    listeners,
  });
  const load = startLoad({ url: edge.url('ingress'), headers: { 'x-tenant': 'a' } });
  t.teardown(load.stop);

  await replaceCertificates(t, tls, { port, cluster: 'ratelimit', edge, load });

  await load.stop();
  t.equal(await countedHits(redis), load.answered(), 'each request was counted, and once');
  await noHandshakeFailed(t, edge, { cluster: 'ratelimit', load });
});

t.test(
  'no request fails while the certificates between Envoy and the auth server are replaced',
  async (t) => {
    const tls = makeMutualTls(t);
    const settings = {
      SVC_EXT_AUTHZ_TLS_CERT: tls.serverFiles.certFile,
      SVC_EXT_AUTHZ_TLS_KEY: tls.serverFiles.keyFile,
      SVC_EXT_AUTHZ_TLS_CA: tls.serverFiles.caFile,
      SVC_EXT_AUTHZ_TLS_CLIENT_SAN: clientName,
    };
    const [auth, { limiter }] = await Promise.all([
      startAuth(t, await startAuthDatabase(t), settings),
      startLimits(t, { requestsPerYear: 10_000_000 }),
    ]);
    const { extAuthzPort: port } = auth;
    const { transportSocket } = tls;
    const edge = await startEdge(t, {
      limiters: { ports: [limiter.grpcPort] },
      extAuthz: { ports: [port], maxRequestsPerConnection, transportSocket },
      listeners,
    });
    const { accessToken } = await auth.signUp('ada@example.com');
    const load = startLoad({ url: edge.url('ingress'), headers: { authorization: `Bearer ${accessToken}` } });
    t.teardown(load.stop);

    await replaceCertificates(t, tls, { port, cluster: 'ext_authz', edge, load });

    await load.stop();
    await noHandshakeFailed(t, edge, { cluster: 'ext_authz', load });
  },
);

async function noHandshakeFailed(
  t: Test,
  edge: Edge,
  { cluster, load }: { readonly cluster: string; readonly load: Load },
): Promise<void> {
  t.same(load.answers(), { 200: load.answered() });
  const stats = await edge.stats(`^cluster\\.${cluster}\\.ssl\\.`);
  t.equal(stats[`cluster.${cluster}.ssl.connection_error`], 0);
  t.equal(stats[`cluster.${cluster}.ssl.fail_verify_error`], 0);
  const handshakes = stats[`cluster.${cluster}.ssl.handshake`] ?? 0;
  t.ok(handshakes >= load.answered() / maxRequestsPerConnection, `${handshakes} connections`);
}
