import { awaitUntil } from '@tollgate/testkit/await-until';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { startEdge } from './support/edge.ts';
import { startFolderXds } from './support/folder-xds.ts';
import { startLoad } from './support/load.ts';
import { countedHits } from './support/redis-counters.ts';
import { startRedisLimiter } from './support/redis-limiter.ts';

t.setTimeout(120_000);

/** Requests answered between two events, so that each event happens amidst them. */
const someRequests = 100;

t.test('two limiters are restarted one after the other, and no request fails', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const xds = await startFolderXds(t, 10_000_000);
  // Envoy looks five times a second whether a limiter still serves: in 3 s it has surely seen that one is about to stop.
  const settings = { SHUTDOWN_DELAY: '3s' };
  const limiters = [
    await startRedisLimiter(t, { xds, redis }, settings),
    await startRedisLimiter(t, { xds, redis }, settings),
  ];
  const edge = await startEdge(t, {
    limiters: { ports: limiters.map(({ grpcPort }) => grpcPort), healthChecked: true },
    listeners: [{ name: 'ingress', failureModeDeny: true }],
  });
  const bothServe = () =>
    awaitUntil(async () => (await edge.healthyEndpoints('ratelimit')) === 2, {
      what: 'Envoy to take both limiters for healthy',
      timeoutMs: 20_000,
      everyMs: 50,
    });
  await bothServe();

  const load = startLoad({ url: edge.url('ingress'), headers: { 'x-tenant': 'a' } });
  t.teardown(load.stop);
  await load.goOn(someRequests);
  for (const limiter of limiters) {
    await limiter.stop();
    await load.goOn(someRequests);
    await limiter.restart();
    await bothServe();
    await load.goOn(someRequests);
  }
  await load.stop();

  t.same(load.answers(), { 200: load.answered() });
  t.equal(await countedHits(redis), load.answered(), 'each request was counted, and once');
  const { 'cluster.upstream.ratelimit.ok': ok, ...others } = await edge.stats(
    '^cluster\\.upstream\\.ratelimit\\.',
  );
  t.equal(ok, load.answered());
  t.equal(others['cluster.upstream.ratelimit.error'] ?? 0, 0);
});
