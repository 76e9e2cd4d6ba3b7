import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { startXdsServer, type XdsServer } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { manifest, programmed, statusWhen } from './support/limits.ts';
import { startLimiter } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');

kubeSuite(t, 'after an outage of the control plane, with default settings', async (t, kube) => {
  await kube.apply(await readFile(crdFile, 'utf8'));
  const first = await startXds(t, kube, 'replica-1');
  const limiter = await startLimiter(first.address, {
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
  });
  t.teardown(limiter.stop);
  let limit = 0;
  /** Resolves to how long the status took. */
  const edit = async (): Promise<number> => {
    limit += 1;
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: limit } }));
    const startedMs = performance.now();
    await statusWhen(kube, 'shop', (now) => programmed(now) && now.observedGeneration === limit);
    return performance.now() - startedMs;
  };
  t.comment(`status of an edit without an outage: ${await edit()} ms`);

  await t.test('a replica that is killed takes over its own Lease', async (t) => {
    const before = await lease(kube);
    await first.kill();
    const killedMs = performance.now();
    await first.restart();
    await awaitUntil(async () => (await lease(kube)).holderIdentity !== before.holderIdentity, {
      what: 'the Lease to be taken over',
    });
    t.comment(`start and takeover: ${performance.now() - killedMs} ms`);
    const after = await lease(kube);
    t.match(after, { holderIdentity: /^replica-1_/, leaseTransitions: before.leaseTransitions + 1 });
    await edit();
    t.comment(`status after SIGKILL of the only replica: ${performance.now() - killedMs} ms`);
  });

  await t.test('an edit reaches limiters soon after the API server has returned', async (t) => {
    await kube.killApiserver();
    // Delays grow with each failure, up to half a minute.
    await awaitUntil(async () => (await failures(first)) >= 4, { what: 'four failures' });
    await kube.startApiserver();
    const returnedMs = performance.now();
    limit += 1;
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: limit } }));
    await awaitUntil(async () => (await limiter.decide('shop', { user: 'a' })).requestsPerUnit === limit, {
      what: 'the limit',
    });
    t.comment(`limit enforced after the return of the API server: ${performance.now() - returnedMs} ms`);
    await statusWhen(kube, 'shop', (now) => programmed(now) && now.observedGeneration === limit);
    t.comment(`status after the return of the API server: ${performance.now() - returnedMs} ms`);
  });

  await t.test('statuses are current when the leader was killed', async (t) => {
    const second = await startXds(t, kube, 'replica-2');
    const elsewhere = await startLimiter(second.address);
    t.teardown(elsewhere.stop);
    await awaitUntil(
      async () =>
        (await (await fetch(second.adminUrl)).text()).includes('1 connected and 1 at other replicas'),
      { what: 'both limiters' },
    );
    await first.kill();
    const ms = await edit();
    t.comment(`status of an edit after SIGKILL of the leader: ${ms} ms`);
    t.match(await lease(kube), { holderIdentity: /^replica-2_/ });
  });
});

function startXds(t: Test, kube: KubeApiserver, name: string): Promise<XdsServer> {
  const started = startXdsServer({
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFile,
    POD_NAME: name,
    XDS_ANY_DOMAIN_NAMESPACES: '*',
    XDS_LEASE_NAMESPACE: 'default',
  });
  t.teardown(async () => (await started).stop());
  return started;
}

interface LeaseSpec {
  readonly holderIdentity: string;
  readonly leaseTransitions: number;
}

async function lease(kube: KubeApiserver): Promise<LeaseSpec> {
  const { stdout } = await kube.kubectl(['get', 'lease', 'tollgate-xds', '-o', 'jsonpath={.spec}']);
  return JSON.parse(stdout);
}

/** Failed lists and watches of the source. */
async function failures({ adminUrl }: XdsServer): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const counts = [...text.matchAll(/^tollgate_xds_source_errors_total\{[^}]*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}
