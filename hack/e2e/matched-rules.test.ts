import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import t from 'tap';
import { manifest, statusWhen } from './support/limits.ts';
import { startLimiter, startReplica } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');

kubeSuite(t, 'rules that never match are named in the status', async (t, kube) => {
  await kube.apply(await readFile(crdFile, 'utf8'));
  const settings = { XDS_UNMATCHED_AFTER: '2s' };
  const leader = await startReplica(t, kube, 'replica-1', settings);
  await awaitUntil(() => kube.get('/apis/coordination.k8s.io/v1/namespaces/default/leases/tollgate-xds'), {
    what: 'the Lease',
  });
  const other = await startReplica(t, kube, 'replica-2', settings);
  const start = (address: string, id: string) =>
    startLimiter(address, {
      CONFIG_GRPC_XDS_NODE_ID: id,
      CONFIG_GRPC_XDS_MATCH_REPORT_INTERVAL: '500ms',
      CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    });
  const [one, two] = [await start(leader.address, 'limiter-1'), await start(other.address, 'limiter-2')];
  for (const limiter of [one, two]) t.teardown(limiter.stop);
  await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 9, ip: 9, usr: 9 } }));
  for (const limiter of [one, two])
    await awaitUntil(async () => (await limiter.decide('shop', { user: 'a' })).requestsPerUnit === 9, {
      what: 'the rules',
    });

  const named = await statusWhen(kube, 'shop', (now) => now.matched?.status === 'False');
  t.match(named.matched, { reason: 'NeverMatched', message: /^never matched since 20.*:\nip\nusr$/ });
  t.equal(named.programmed?.status, 'True', 'it is in force all the same');

  await two.decide('shop', { ip: 'b' });
  await statusWhen(kube, 'shop', (now) => /:\nusr$/.test(now.matched?.message ?? ''));

  await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 9, ip: 9, role: 9 } }));
  await awaitUntil(async () => (await one.decide('shop', { role: 'a' })).requestsPerUnit === 9, {
    what: 'the corrected rule',
  });
  await statusWhen(kube, 'shop', (now) => now.observedGeneration === 2 && now.matched?.status === 'True');
});
