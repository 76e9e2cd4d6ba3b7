import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import type { XdsServer } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { connectNackingClient, manifest, programmed, statusWhen } from './support/limits.ts';
import { type LimiterProcess, startLimiter, startReplica } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');

kubeSuite(t, 'two replicas of the xDS server, with a limiter each', async (t, kube) => {
  await kube.apply(await readFile(crdFile, 'utf8'));
  const leader = await startReplica(t, kube, 'replica-1');
  await awaitUntil(() => kube.get('/apis/coordination.k8s.io/v1/namespaces/default/leases/tollgate-xds'), {
    what: 'the Lease',
  });
  const other = await startReplica(t, kube, 'replica-2');
  await startLimiterFor(t, leader, 'limiter-1');
  await startLimiterFor(t, other, 'limiter-2');
  for (const replica of [leader, other]) await limitersSeen(replica, '1 connected and 1 at other replicas');

  await t.test(
    'limiters of both replicas acknowledge an object, and the ConfigMap counts them',
    async (t) => {
      await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 2 } }));
      const status = await statusWhen(kube, 'shop', programmed);
      t.match(status.programmed, {
        reason: 'Acknowledged',
        message: 'acknowledged by all connected limiters',
      });
      await awaitUntil(
        async () =>
          [...(await reports(kube)).values()].every((text) =>
            text.includes('"limiters":{"connected":1,"current":1,"rejecting":0}'),
          ),
        { what: 'the reports of both' },
      );
    },
  );

  await t.test('a rejection at the replica that does not write is in the status', async (t) => {
    const refusing = connectNackingClient(other.address, 'limiter-3', 'shop: no such luck');
    t.teardown(refusing.close);
    const status = await statusWhen(kube, 'shop', (now) => now.programmed?.reason === 'Nacked');
    t.equal(status.programmed?.message, 'refused by limiter-3 at replica-2: shop: no such luck');
    refusing.close();
    await statusWhen(kube, 'shop', programmed);
  });

  await t.test('nothing is written when the leader is restarted', async (t) => {
    const before = await readStored(kube);
    await leader.stop();
    await awaitUntil(() => isLeader(other), { what: 'the other replica to lead' });
    await leader.restart();
    await limitersSeen(other, '1 connected and 1 at other replicas');
    await limitersSeen(leader, '1 connected and 1 at other replicas');
    t.same(await readStored(kube), before);
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 3 } }));
    await statusWhen(kube, 'shop', (now) => programmed(now) && now.observedGeneration === 2);
  });

  await t.test('a replica that stops deletes its report', async (t) => {
    t.equal((await reports(kube)).size, 2);
    await leader.stop();
    t.match([...(await reports(kube)).keys()], [/^replica-2_/]);
  });
});

async function startLimiterFor(t: Test, xds: XdsServer, name: string): Promise<LimiterProcess> {
  const limiter = await startLimiter(xds.address, {
    CONFIG_GRPC_XDS_NODE_ID: name,
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
  });
  t.teardown(limiter.stop);
  return limiter;
}

async function isLeader({ adminUrl }: XdsServer): Promise<boolean> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return /^tollgate_xds_leader 1$/m.test(text);
}

function limitersSeen({ adminUrl }: XdsServer, text: string): Promise<unknown> {
  const isSeen = async (): Promise<boolean> => {
    const page = await (await fetch(adminUrl)).text();
    if (page.includes(text)) return true;
    throw new Error(`it has ${/\d+ connected[^<]*/.exec(page)?.[0] ?? page}`);
  };
  return awaitUntil(isSeen, { what: `'${text}' on ${adminUrl}` });
}

/** The object, whose resourceVersion changes with each write, including its status. */
async function readStored(kube: KubeApiserver): Promise<unknown> {
  const { stdout } = await kube.kubectl(['get', 'rlc', 'shop', '-o', 'json', '--show-managed-fields']);
  return JSON.parse(stdout);
}

/** The reports of the replicas, by identity. */
async function reports(kube: KubeApiserver): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await kube.kubectl(['get', 'cm', 'tollgate-xds-limiters', '-o', 'json']);
  // Parsed boundary: a ConfigMap.
  return new Map(Object.entries((JSON.parse(stdout) as { data?: Record<string, string> }).data ?? {}));
}
