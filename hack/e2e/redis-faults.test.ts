import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Redis, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import { type Edge, startEdge } from './support/edge.ts';
import { silence, startLimits } from './support/processes.ts';
import { statuses } from './support/requests.ts';

const listeners = [
  { name: 'denying', failureModeDeny: true },
  { name: 'allowing', failureModeDeny: false },
];

t.test('without Redis requests are rejected or allowed as Envoy is configured, without delay', async (t) => {
  const { redis, edge } = await startPlatform(t, '10s');
  t.same(await statuses(edge.url('denying'), 'a', 2), [200, 200]);

  await redis.kill();
  t.same(await statuses(edge.url('denying'), 'a', 5), [500, 500, 500, 500, 500], 'failure_mode_deny: true');
  t.same(await statuses(edge.url('allowing'), 'a', 5), [200, 200, 200, 200, 200], 'failure_mode_deny: false');
  const counts = await edge.stats('^cluster\\.upstream\\.ratelimit\\.');
  t.equal(counts['cluster.upstream.ratelimit.error'], 10, 'Envoy counts both as errors');
  t.equal(counts['cluster.upstream.ratelimit.failure_mode_allowed'], 5);
  await noTimeouts(t, edge);

  const again = await startRedis({ port: redis.port });
  t.teardown(again.stop);
  await countsAgain(edge, 'b');
  t.same(await statuses(edge.url('allowing'), 'c', 5), [200, 200, 200, 429, 429], 'with counters from 0');
});

t.test('requests wait for a hanging Redis no longer than KVSTORE_TIMEOUT', async (t) => {
  // Well below the 20 s that Envoy waits for an answer.
  const { redis, edge } = await startPlatform(t, '2s');
  await countsAgain(edge, 'a');

  // Longer than this test.
  await silence(redis, 600_000);
  t.same(await statuses(edge.url('denying'), 'a', 2), [500, 500]);
  t.same(await statuses(edge.url('allowing'), 'a', 1), [200]);
  const many = Array.from({ length: 40 }, (_, i) => statuses(edge.url('denying'), `many-${i}`, 1));
  t.same(
    new Set((await Promise.all(many)).flat()),
    new Set([500]),
    'many at once do not wait for each other',
  );
  await noTimeouts(t, edge);

  await redis.kill();
  const again = await startRedis({ port: redis.port });
  t.teardown(again.stop);
  await countsAgain(edge, 'b');
});

async function startPlatform(t: Test, kvstoreTimeout: string): Promise<{ redis: Redis; edge: Edge }> {
  const settings = { KVSTORE_TIMEOUT: kvstoreTimeout };
  const { redis, limiter } = await startLimits(t, { requestsPerYear: 3, settings });
  const edge = await startEdge(t, { limiters: { ports: [limiter.grpcPort] }, listeners });
  return { redis, edge };
}

/**
 * Whether Envoy has given up waiting for a limiter, or lost one: what it had were answers, however
 * bad.
 */
async function noTimeouts(t: Test, edge: Edge): Promise<void> {
  const stats = await edge.stats(
    '^cluster\\.ratelimit\\.upstream_(rq_timeout|rq_per_try_timeout|rq_rx_reset|cx_destroy)$',
  );
  t.same(
    Object.values(stats),
    Object.values(stats).map(() => 0),
    JSON.stringify(stats),
  );
  t.ok(Object.keys(stats).length > 0);
}

async function countsAgain(edge: Edge, tenant: string): Promise<void> {
  await awaitUntil(async () => (await statuses(edge.url('denying'), tenant, 1))[0] === 200, {
    what: 'decisions with the new Redis',
    everyMs: 100,
  });
}
