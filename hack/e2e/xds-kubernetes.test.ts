import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import type { XdsServer } from '@tollgate/testkit/services';
import t from 'tap';
import { connectNackingClient, manifest, programmed, statusWhen } from './support/limits.ts';
import { type LimiterProcess, startLimiter, startReplica } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');

kubeSuite(t, 'RateLimitConfigs of a cluster reach a running limiter', async (t, kube) => {
  await kube.apply(await readFile(crdFile, 'utf8'));
  const xds = await startReplica(t, kube, 'replica-1');
  const limiter = await startLimiter(xds.address, {
    CONFIG_GRPC_XDS_NODE_ID: 'limiter-1',
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
  });
  t.teardown(limiter.stop);

  await t.test('applied, edited and deleted objects are enforced, and kubectl shows it', async (t) => {
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 2 } }));
    await enforced(limiter, 'shop', 'user', 2);
    await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 5 } }));
    await enforced(limiter, 'shop', 'user', 5);
    const status = await statusWhen(kube, 'shop', (now) => programmed(now) && now.observedGeneration === 2);
    t.match(status, {
      rules: 1,
      accepted: { status: 'True', reason: 'Accepted' },
      programmed: { status: 'True', reason: 'Acknowledged' },
    });
    const { stdout } = await kube.kubectl(['get', 'rlc', 'shop']);
    t.match(stdout, /^NAME\s+DOMAIN\s+RULES\s+ACCEPTED\s+PROGRAMMED\s+AGE\s+shop\s+shop\s+1\s+True\s+True\s/);
    await kube.apply(manifest({ name: 'shop-trial', domain: 'shop', limits: { user: 1 }, trial: true }));
    const onTrial = await statusWhen(kube, 'shop-trial', programmed);
    t.match(onTrial, { rules: 1, accepted: { status: 'True', reason: 'OnTrial' } });
    t.same(await limiter.decide('shop', { user: 'a' }), { code: 'OK', requestsPerUnit: 5 });
    await kube.kubectl(['delete', 'rlc', 'shop', 'shop-trial']);
    await enforced(limiter, 'shop', 'user', undefined);
  });

  await t.test(
    'an invalid object has a status, keeps its last valid rules, and does not affect others',
    async (t) => {
      await kube.apply(manifest({ name: 'edited', domain: 'edited', limits: { user: 3 } }));
      await enforced(limiter, 'edited', 'user', 3);
      await kube.apply(badManifest('bad', 'bad'));
      await kube.apply(badManifest('edited', 'edited'));
      await kube.apply(manifest({ name: 'good', domain: 'good', limits: { user: 4 } }));
      await enforced(limiter, 'good', 'user', 4);
      const bad = await statusWhen(kube, 'bad', ({ accepted }) => accepted?.status === 'False');
      t.equal(bad.accepted?.reason, 'Invalid');
      t.match(
        bad.accepted?.message,
        /spec\.descriptors\[0\]\.rateLimit\.replaces.*replaces should not contain name/,
      );
      t.match(bad.programmed, { status: 'False', reason: 'NotAccepted' });
      const described = async () => (await kube.kubectl(['describe', 'rlc', 'bad'])).stdout;
      await awaitUntil(
        async () => /Warning\s+Invalid\s.*replaces should not contain name/s.test(await described()),
        { what: 'the event' },
      );
      const waited = await kube.kubectl(['wait', 'rlc', 'good', '--for=condition=Ready', '--timeout=30s']);
      t.equal(waited.code, 0, waited.stderr);
      const edited = await statusWhen(kube, 'edited', ({ accepted }) => accepted?.status === 'False');
      t.match(edited.accepted?.message, /generation 1 /);
      t.equal(edited.observedGeneration, 2);
      t.equal((await limiter.decide('edited', { user: 'a' })).requestsPerUnit, 3);
      await kube.kubectl(['delete', 'rlc', 'bad', 'edited', 'good']);
    },
  );

  await t.test('of two conflicting objects the older one wins until it is deleted', async (t) => {
    await kube.kubectl(['create', 'namespace', 'other']);
    await kube.apply(manifest({ name: 'first', domain: 'taken', limits: { user: 6 } }));
    await enforced(limiter, 'taken', 'user', 6);
    // Ages are whole seconds.
    const nowSeconds = () => Math.floor(Date.now() / 1000);
    const created = nowSeconds();
    await awaitUntil(() => nowSeconds() > created, { what: 'the next second' });
    await kube.apply(manifest({ name: 'second', domain: 'taken', limits: { user: 7, tenant: 8 } }));
    await kube.apply(manifest({ name: 'third', namespace: 'other', domain: 'taken', limits: { user: 9 } }));
    const second = await statusWhen(kube, 'second', ({ accepted }) => accepted?.status === 'False');
    t.match(second.accepted, { reason: 'DuplicateKey', message: /default\/first/ });
    const third = await statusWhen(kube, 'third', ({ accepted }) => accepted?.status === 'False', 'other');
    t.match(third.accepted, { reason: 'DomainConflict', message: /default/ });
    t.equal((await limiter.decide('taken', { user: 'a' })).requestsPerUnit, 6);
    await kube.kubectl(['delete', 'rlc', 'first', 'second', '--wait=false']);
    await statusWhen(kube, 'third', (now) => /kept for it until/.test(now.accepted?.message ?? ''), 'other');
    t.equal((await limiter.decide('taken', { user: 'a' })).requestsPerUnit, undefined);
    await enforced(limiter, 'taken', 'user', 9);
    await kube.kubectl(['delete', 'rlc', 'third', '-n', 'other']);
  });

  await t.test('limits survive an outage of the API server, and follow it afterwards', async (t) => {
    await kube.apply(manifest({ name: 'lasting', domain: 'lasting', limits: { user: 10 } }));
    await enforced(limiter, 'lasting', 'user', 10);
    await kube.killApiserver();
    t.equal((await limiter.decide('lasting', { user: 'a' })).requestsPerUnit, 10);
    await kube.startApiserver();
    await kube.apply(manifest({ name: 'lasting', domain: 'lasting', limits: { user: 11 } }));
    await enforced(limiter, 'lasting', 'user', 11);
  });

  await t.test('limits survive an outage of the xDS server, and follow it afterwards', async (t) => {
    await xds.kill();
    await kube.apply(manifest({ name: 'lasting', domain: 'lasting', limits: { user: 12 } }));
    t.equal((await limiter.decide('lasting', { user: 'a' })).requestsPerUnit, 11);
    await xds.restart();
    await enforced(limiter, 'lasting', 'user', 12);
  });

  await t.test('two replicas serve the same version, and one of them writes', async (t) => {
    const other = await startReplica(t, kube, 'replica-2');
    t.equal(await servedVersion(other), await servedVersion(xds));
    const metrics = await Promise.all([xds, other].map(leaderGauge));
    t.ok(metrics.filter((value) => value === 1).length <= 1, 'never two');
    await awaitUntil(async () => (await Promise.all([xds, other].map(leaderGauge))).includes(1), {
      what: 'one of them to lead',
    });
    await other.stop();
  });

  await t.test(
    'what a limiter refuses is in the status, in its own words, and is not sent again',
    async (t) => {
      const refusing = connectNackingClient(xds.address, 'limiter-2', 'lasting: no such luck');
      t.teardown(refusing.close);
      const status = await statusWhen(kube, 'lasting', (now) => now.programmed?.reason === 'Nacked');
      t.equal(status.programmed?.status, 'False');
      t.match(status.programmed?.message, /limiter-2.*no such luck/);
      t.equal(refusing.received, 1);
      await kube.apply(manifest({ name: 'lasting', domain: 'lasting', limits: { user: 13 } }));
      await awaitUntil(() => refusing.received === 2, { what: 'the new content' });
      refusing.close();
      await statusWhen(kube, 'lasting', programmed);
    },
  );
});

/** Valid for the API server, and invalid for the loader. */
function badManifest(name: string, domain: string): string {
  const rateLimit = { unit: 'Hour', requestsPerUnit: 1, name: 'self', replaces: [{ name: 'self' }] };
  return JSON.stringify({
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { name, namespace: 'default' },
    spec: { domain, descriptors: [{ key: 'user', rateLimit }] },
  });
}

async function enforced(
  limiter: LimiterProcess,
  domain: string,
  key: string,
  requestsPerUnit: number | undefined,
): Promise<void> {
  await awaitUntil(
    async () => (await limiter.decide(domain, { [key]: 'a' })).requestsPerUnit === requestsPerUnit,
    { what: `the limit of ${domain} for ${key} to be ${requestsPerUnit} in the limiter` },
  );
}

async function servedVersion({ adminUrl }: XdsServer): Promise<string> {
  // Parsed boundary: one field of the service's own JSON.
  const snapshot = (await (await fetch(`${adminUrl}/snapshot`)).json()) as { version: string };
  return snapshot.version;
}

async function leaderGauge({ adminUrl }: XdsServer): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^tollgate_xds_leader (\d)$/m.exec(text)?.[1]);
}
