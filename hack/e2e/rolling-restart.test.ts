import { awaitUntil } from '@tollgate/testkit/await-until';
import type { ServiceProcess } from '@tollgate/testkit/services';
import t from 'tap';
import { type Edge, startEdge } from './support/edge.ts';
import {
  countedHits,
  startAuth,
  startAuthDatabase,
  startLimits,
  startRedisLimiter,
} from './support/processes.ts';
import { type Load, startLoad } from './support/requests.ts';

const listeners = [{ name: 'ingress', failureModeDeny: true }];

/**
 * Between failing the health check and refusing requests. Envoy looks five times a second whether a
 * server still serves, so by then it has surely seen that this one is about to stop.
 */
const shutdownDelay = '3s';

/** Requests answered between two events, so that each event happens under load. */
const someRequests = 100;

t.test('two limiters are restarted one after the other, and no request fails', async (t) => {
  const settings = { SHUTDOWN_DELAY: shutdownDelay };
  const { redis, xds, limiter } = await startLimits(t, { requestsPerYear: 10_000_000, settings });
  const limiters = [limiter, await startRedisLimiter(t, { xds, redis }, settings)];
  const edge = await startEdge(t, {
    limiters: { ports: limiters.map(({ grpcPort }) => grpcPort), healthChecked: true },
    listeners,
  });
  const load = startLoad({ url: edge.url('ingress'), headers: { 'x-tenant': 'a' } });
  t.teardown(load.stop);

  await restartInTurn(limiters, { edge, load, cluster: 'ratelimit' });

  t.same(load.answers(), { 200: load.answered() });
  t.equal(await countedHits(redis), load.answered(), 'each request was counted, and once');
  const stats = await edge.stats('^cluster\\.upstream\\.ratelimit\\.');
  t.equal(stats['cluster.upstream.ratelimit.ok'], load.answered());
  t.equal(stats['cluster.upstream.ratelimit.error'] ?? 0, 0);
});

t.test('two auth servers are restarted one after the other, and no request fails', async (t) => {
  const databaseUrl = await startAuthDatabase(t);
  const settings = { SVC_SHUTDOWN_DELAY: shutdownDelay };
  const [auth, { limiter }] = await Promise.all([
    startAuth(t, databaseUrl, settings),
    startLimits(t, { requestsPerYear: 10_000_000 }),
  ]);
  // After the first one has migrated the database.
  const servers = [auth, await startAuth(t, databaseUrl, settings)];
  const edge = await startEdge(t, {
    limiters: { ports: [limiter.grpcPort] },
    extAuthz: { ports: servers.map(({ extAuthzPort }) => extAuthzPort), healthChecked: true },
    listeners,
  });
  const { accessToken } = await auth.signUp('ada@example.com');
  const load = startLoad({ url: edge.url('ingress'), headers: { authorization: `Bearer ${accessToken}` } });
  t.teardown(load.stop);

  await restartInTurn(servers, { edge, load, cluster: 'ext_authz' });

  t.same(load.answers(), { 200: load.answered() });
  const stats = await edge.stats('^cluster\\.upstream\\.ext_authz\\.');
  t.equal(stats['cluster.upstream.ext_authz.ok'], load.answered());
  t.equal(stats['cluster.upstream.ext_authz.error'] ?? 0, 0);
});

/** Restarts one after the other under load; the next one once Envoy uses both again. */
async function restartInTurn(
  servers: readonly ServiceProcess[],
  { edge, load, cluster }: { readonly edge: Edge; readonly load: Load; readonly cluster: string },
): Promise<void> {
  await bothServe(edge, cluster);
  await load.goOn(someRequests);
  for (const server of servers) {
    await server.stop();
    await load.goOn(someRequests);
    await server.restart();
    await bothServe(edge, cluster);
    await load.goOn(someRequests);
  }
  await load.stop();
  // There is no more load, so a graceful shutdown would only take time.
  for (const server of servers) await server.kill();
}

function bothServe(edge: Edge, cluster: string): Promise<unknown> {
  return awaitUntil(async () => (await edge.healthyEndpoints(cluster)) === 2, {
    what: 'Envoy to take both servers for healthy',
    everyMs: 50,
  });
}
