import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { connectNackingClient, manifest, programmed, statusWhen } from './support/limits.ts';
import { type LimiterProcess, startLimiter, startReplica } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');

kubeSuite(t, 'limiters with and without a class', async (t, kube) => {
  await kube.apply(await readFile(crdFile, 'utf8'));
  const xds = await startReplica(t, kube, 'replica-1');
  const start = (name: string, settings: Readonly<Record<string, string>> = {}) =>
    startLimiter(xds.address, {
      ...settings,
      CONFIG_GRPC_XDS_NODE_ID: name,
      CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    });
  const limiter = await start('limiter-1');
  t.teardown(limiter.stop);
  const dev = await start('limiter-dev', { CONFIG_GRPC_XDS_LIMITER_CLASS: 'dev' });
  t.teardown(dev.stop);
  await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 2 } }));
  const ofDev = { name: 'shop-dev', domain: 'shop', limits: { tenant: 3 } };
  await kube.apply(manifest({ ...ofDev, limiterClassName: 'dev' }));

  await t.test('objects of a class are enforced by its limiters only', async (t) => {
    await statusWhen(kube, 'shop', programmed);
    await statusWhen(kube, 'shop-dev', programmed);
    await enforced(dev, 'tenant', 3);
    await enforced(dev, 'user', 2);
    await enforced(limiter, 'user', 2);
    t.equal((await limiter.decide('shop', { tenant: 'a' })).requestsPerUnit, undefined);
  });

  await t.test('limiter of a class that rejects everything holds up only objects of its class', async (t) => {
    const metadata = { 'tollgate.dev/limiter-class': 'dev' };
    const refusing = connectNackingClient(xds.address, 'limiter-bad', 'shop: no such luck', metadata);
    t.teardown(refusing.close);
    const refused = await statusWhen(kube, 'shop-dev', (now) => now.programmed?.reason === 'Nacked');
    t.match(refused.programmed?.message, /limiter-bad: shop: no such luck/);
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 7 } }));
    await statusWhen(kube, 'shop', (now) => programmed(now) && now.observedGeneration === 2);
    await enforced(limiter, 'user', 7);
  });
});

function enforced(limiter: LimiterProcess, key: string, requestsPerUnit: number): Promise<unknown> {
  return awaitUntil(
    async () => (await limiter.decide('shop', { [key]: 'a' })).requestsPerUnit === requestsPerUnit,
    { what: `${requestsPerUnit} for ${key}` },
  );
}
