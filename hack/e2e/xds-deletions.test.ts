import { rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { startXdsServer, type XdsServer } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { manifest, programmed, statusWhen } from './support/limits.ts';
import { type LimiterProcess, startLimiter, startReplica } from './support/processes.ts';

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');
const domains = Array.from({ length: 30 }, (_, i) => `domain-${i}`);
const manifests = domains.map((domain) => manifest({ name: domain, domain, limits: { user: 5 } }));

kubeSuite(t, 'a deleted CRD lifts no limit', async (t, kube) => {
  const crd = await readFile(crdFile, 'utf8');
  await kube.apply(crd);
  await kube.apply(manifests.join('\n---\n'));
  const first = await startReplica(t, kube, 'replica-1');
  const second = await startReplica(t, kube, 'replica-2');
  const limiter = await startLimiterFor(t, first);
  await enforces(limiter, domains.length);

  await t.test('all limits stay in force, and replicas and limiters that start get them', async (t) => {
    await kube.kubectl(['delete', 'crd', 'ratelimitconfigs.ratelimit.tollgate.dev']);
    for (const replica of [first, second]) await holds(replica, domains.length);
    await enforces(limiter, domains.length);
    await awaitUntil(async () => (await readHold(kube)).includes('"objects":'), { what: 'the ConfigMap' });
    for (const replica of [first, second]) {
      await replica.kill();
      await replica.restart();
      await holds(replica, domains.length);
    }
    await enforces(limiter, domains.length);
    await enforces(await startLimiterFor(t, second), domains.length);
    const text = await (await fetch(first.adminUrl)).text();
    t.match(text, 'kubectl -n default annotate configmap tollgate-xds-held');
  });

  await t.test('objects that exist again end the hold', async () => {
    await kube.apply(crd);
    await kube.apply(manifests.join('\n---\n'));
    for (const replica of [first, second]) await holds(replica, 0);
    await enforces(limiter, domains.length);
    await awaitUntil(async () => (await readHold(kube)) === '', { what: 'the ConfigMap to be deleted' });
    await statusWhen(kube, 'domain-0', programmed);
  });

  await t.test('an operator lets deletions through with the command of the log', async (t) => {
    await kube.kubectl(['delete', 'rlc', ...domains.slice(0, 20)]);
    for (const replica of [first, second]) await holds(replica, 20);
    const findCommand = async () => {
      const { stdout } = await kube.kubectl(['get', 'events']);
      return /domains vanished within 30 s; to let deletions through, run: kubectl (.*=true)/.exec(
        stdout,
      )?.[1];
    };
    const command = (await awaitUntil(findCommand, { what: 'an event with the command' })) ?? '';
    await enforces(limiter, domains.length);
    await awaitUntil(async () => (await readHold(kube)) !== '', { what: 'the ConfigMap' });
    const { code, stderr } = await kube.kubectl(command.split(' '));
    t.equal(code, 0, stderr);
    for (const replica of [first, second]) await holds(replica, 0);
    await enforces(limiter, 10);
  });
});

t.test('an empty folder lifts no limit, also after a restart, until a file allows it', async (t) => {
  const [folder, data] = [makeTextFolder(t), makeTextFolder(t)];
  folder.write('all.yaml', manifests.join('\n---\n'));
  const settings = { XDS_SOURCE: 'folder', XDS_FOLDER: folder.path, XDS_DATA_FOLDER: data.path };
  const xds = await startXdsServer(settings);
  t.teardown(xds.stop);
  const limiter = await startLimiterFor(t, xds);
  await enforces(limiter, domains.length);
  rmSync(join(folder.path, 'all.yaml'));
  await holds(xds, domains.length);
  await xds.kill();
  await xds.restart();
  await holds(xds, domains.length);
  await enforces(limiter, domains.length);
  folder.write('.allow-deletions', '');
  await holds(xds, 0);
  await enforces(limiter, 0);
});

async function startLimiterFor(t: Test, xds: XdsServer): Promise<LimiterProcess> {
  const limiter = await startLimiter(xds.address, {
    CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '100ms',
    XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
  });
  t.teardown(limiter.stop);
  return limiter;
}

/** Waits until a limiter has a limit for so many domains. */
function enforces(limiter: LimiterProcess, count: number): Promise<unknown> {
  const isEnforced = async () => {
    const { length } = await limiter.rules();
    if (length !== count) throw new Error(`it has ${length}`);
    return true;
  };
  return awaitUntil(isEnforced, { what: `the limits of ${count} domains` });
}

/** Waits until a replica holds the deletion of so many domains back. */
function holds({ adminUrl }: XdsServer, count: number): Promise<unknown> {
  const isHeld = async () => {
    const text = await (await fetch(`${adminUrl}/metrics`)).text();
    const [, held] = /^tollgate_xds_held_domains (\d+)$/m.exec(text) ?? [];
    if (held !== String(count)) throw new Error(`it holds ${held}`);
    return true;
  };
  return awaitUntil(isHeld, { what: `${count} domains to be held` });
}

async function readHold(kube: KubeApiserver): Promise<string> {
  const args = ['get', 'cm', 'tollgate-xds-held', '--ignore-not-found', '-o', 'json'];
  return (await kube.kubectl(args)).stdout.replaceAll(' ', '').trim();
}
