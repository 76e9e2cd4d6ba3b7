import { setTimeout as delay } from 'node:timers/promises';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import type { ManifestObject } from '../support/manifests.ts';
import { containerEnvironment } from './container.ts';
import { kubectl, listed, type NamespaceOptions, readPodNamespace } from './node.ts';
import { type PreparedPod, runPod, type StartedPod, startPod } from './pod.ts';

/** Starts what stands for an image of others, with the variables of its container. */
type StandIn = (
  variables: Readonly<Record<string, string>>,
) => Promise<{ readonly stop: () => Promise<void> }>;

/** What a kubelet runs. */
export interface KubeletOptions extends NamespaceOptions {
  /** By the names of images, without tags. Their probes are not asked. */
  readonly standIns?: Readonly<Record<string, StandIn>>;
  /** Room for data: claims of up to a gigabyte each. Default none. */
  readonly volumes?: number;
}

/** The kubelet of the one node of a cluster. */
export interface Kubelet {
  /** Pods of ours that run, ready, by their names. */
  readonly pods: ReadonlyMap<string, StartedPod>;
  /** Why Pods did not start. */
  readonly problems: readonly string[];
}

/** A Pod as the API server has it. */
interface Pod extends ManifestObject {
  readonly metadata: ManifestObject['metadata'] & { readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string; readonly restartPolicy?: string };
}

const nodeName = 'node-1';

/** Between two looks at the Pods. */
const everyMs = 300;

/** Adds a node to a cluster, and runs what is scheduled to it of a namespace until the test ends. */
export async function startKubelet(t: Test, kube: KubeApiserver, options: KubeletOptions): Promise<Kubelet> {
  const { standIns = {}, volumes = 0 } = options;
  await addNode(kube);
  await addVolumes(kube, volumes);
  const here = `--namespace=${options.namespace}`;
  /** Of every Pod that there ever was: it is started once. */
  const runs = new Map<string, Promise<void>>();
  const ends = new Map<string, Promise<void>>();
  const pods = new Map<string, StartedPod>();
  /** What stands for Pods of others. */
  const others = new Map<string, Awaited<ReturnType<StandIn>>>();
  const problems: string[] = [];
  const note = (what: string) => (error: unknown) => {
    problems.push(`${what}: ${String(error)}`);
  };
  const tell = (name: string, status: object) =>
    kubectl(kube, [
      'patch',
      'pod',
      name,
      here,
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({ status }),
    ]);

  async function run({ metadata: { name }, ...rest }: Pod): Promise<void> {
    const namespace = await readPodNamespace(kube, options);
    const prepared = await namespace.prepare({ metadata: { name }, ...rest });
    const [container] = prepared.spec.containers;
    const standIn = standIns[container?.image.replace(/:[^/]*$/, '') ?? ''];
    if (rest.spec.restartPolicy === 'Never') await runToItsEnd(name, prepared);
    else if (container !== undefined && standIn !== undefined) {
      others.set(name, await standIn(containerEnvironment(container, prepared.surroundings)));
      await tell(name, runningStatus(prepared));
    } else {
      pods.set(name, await startPod(t, prepared));
      await tell(name, runningStatus(prepared));
    }
  }

  async function runToItsEnd(name: string, prepared: PreparedPod): Promise<void> {
    try {
      await runPod(prepared);
      await tell(name, { phase: 'Succeeded' });
    } catch (error) {
      await tell(name, { phase: 'Failed' });
      throw error;
    }
  }

  /** One that is still starting is ended when it has started. */
  async function end(name: string): Promise<void> {
    await runs.get(name);
    await pods.get(name)?.stop();
    await others.get(name)?.stop();
    pods.delete(name);
    others.delete(name);
    await kubectl(kube, ['delete', 'pod', name, here, '--grace-period=0', '--force', '--ignore-not-found']);
  }

  async function look(): Promise<void> {
    // What the API server has, as this kubelet looks at it.
    const all = listed(await kubectl(kube, ['get', 'pods', here, '-o', 'json'])) as readonly Pod[];
    for (const pod of all.filter(({ spec }) => spec.nodeName === nodeName)) {
      const { name, deletionTimestamp } = pod.metadata;
      const todo = deletionTimestamp === undefined ? runs : ends;
      if (!todo.has(name)) todo.set(name, (todo === runs ? run(pod) : end(name)).catch(note(name)));
    }
  }

  const stopped = new AbortController();
  const looking = (async () => {
    while (!stopped.signal.aborted) {
      await look().catch(note(nodeName));
      await delay(everyMs);
    }
  })();
  t.teardown(async () => {
    stopped.abort();
    await looking;
    await Promise.all([...runs.values(), ...ends.values()]);
  });
  return { pods, problems };
}

/** What a kubelet says of a Pod whose probes have all succeeded. */
function runningStatus({ spec }: PreparedPod): object {
  const startedAt = new Date().toISOString();
  return {
    phase: 'Running',
    podIP: '127.0.0.1',
    podIPs: [{ ip: '127.0.0.1' }],
    startTime: startedAt,
    conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: startedAt,
    })),
    containerStatuses: spec.containers.map(({ name, image }) => ({
      name,
      image,
      imageID: image,
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt } },
    })),
  };
}

/** With room for all. Its taint is for the controller of nodes to take away, which is not there. */
async function addNode(kube: KubeApiserver): Promise<void> {
  const labels = { 'kubernetes.io/hostname': nodeName, 'topology.kubernetes.io/zone': 'zone-1' };
  await kubectl(
    kube,
    ['create', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, labels } }),
  );
  const room = { cpu: '64', memory: '64Gi', pods: '100' };
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message: '',
    lastHeartbeatTime: new Date().toISOString(),
  };
  const status = { capacity: room, allocatable: room, conditions: [ready] };
  await kubectl(kube, [
    'patch',
    'node',
    nodeName,
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify({ status }),
  ]);
  await kubectl(kube, ['taint', 'node', nodeName, 'node.kubernetes.io/not-ready-']);
}

/** As an administrator makes them where nothing makes them by itself. They belong to whichever claim is first. */
async function addVolumes(kube: KubeApiserver, count: number): Promise<void> {
  if (count === 0) return;
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `${nodeName}-${index}` },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: `/data/${index}` },
    },
  }));
  await kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}
