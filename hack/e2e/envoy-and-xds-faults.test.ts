import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { type Edge, startEdge } from './support/edge.ts';
import { type Limits, startLimits } from './support/processes.ts';
import { startLoad, statuses } from './support/requests.ts';

t.test('counters survive a crash of Envoy during requests', async (t) => {
  const { limiter, edge } = await startPlatform(t);
  t.same(await statuses(edge.url('ingress'), 'a', 2), [200, 200]);
  const load = startLoad({ url: edge.url('ingress'), headers: { 'x-tenant': 'load' } });
  t.teardown(load.stop);
  await load.goOn(50);

  await edge.kill();
  await load.stop();
  await edge.restart();

  t.same(await statuses(edge.url('ingress'), 'a', 3), [200, 429, 429], 'three a year, two of them before');
  t.ok(limiter.isRunning());
  t.equal(limiter.logs(), '', 'a client that is gone is nothing to report');
});

t.test('limits survive an outage of the xDS server, and edits are enforced after it', async (t) => {
  const { xds, limiter, edge } = await startPlatform(t);
  t.same(await statuses(edge.url('ingress'), 'a', 4), [200, 200, 200, 429]);

  await xds.kill();
  t.same(await statuses(edge.url('ingress'), 'b', 4), [200, 200, 200, 429]);
  // A limiter that restarts without an xDS server has no limits and does not serve; this
  // one has.
  xds.allow(5);
  t.same(await statuses(edge.url('ingress'), 'c', 4), [200, 200, 200, 429]);

  await xds.restart();
  await awaitUntil(async () => (await limiter.rules()).some((rule) => rule.includes('5')), {
    what: 'the edited rule in the limiter',
    everyMs: 50,
  });
  t.same(await statuses(edge.url('ingress'), 'd', 6), [200, 200, 200, 200, 200, 429]);
  t.equal((await statuses(edge.url('ingress'), 'a', 1))[0], 200, 'what was counted before is the fifth now');
});

async function startPlatform(t: Test): Promise<Limits & { readonly edge: Edge }> {
  const limits = await startLimits(t, { requestsPerYear: 3 });
  const edge = await startEdge(t, {
    limiters: { ports: [limits.limiter.grpcPort] },
    listeners: [{ name: 'ingress', failureModeDeny: true }],
  });
  return { ...limits, edge };
}
