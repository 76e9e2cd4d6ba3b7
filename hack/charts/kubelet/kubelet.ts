import { setTimeout as delay } from 'node:timers/promises';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import type { ManifestObject } from '../support/manifests.ts';
import { containerEnvironment } from './container.ts';
import { kubectl, listObjects, type NamespaceOptions, readPodNamespace } from './node.ts';
import { type PreparedPod, runPod, type StartedPod, startPod } from './pod.ts';

/** Starts a substitute for a third-party image, with the variables of its container. */
type StandIn = (
  variables: Readonly<Record<string, string>>,
) => Promise<{ readonly stop: () => Promise<void> }>;

export interface KubeletOptions extends NamespaceOptions {
  /** By the names of images, without tags. Their probes are not run. */
  readonly standIns?: Readonly<Record<string, StandIn>>;
  /** Number of volumes of one gigabyte. Default 0. */
  readonly volumes?: number;
}

interface Pod extends ManifestObject {
  readonly metadata: ManifestObject['metadata'] & { readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName?: string; readonly restartPolicy?: string };
}

const nodeName = 'node-1';

const everyMs = 300;

/**
 * Adds a node to a cluster, and runs the Pods of a namespace that are scheduled to it until the
 * test ends.
 */
export async function startKubelet(t: Test, kube: KubeApiserver, options: KubeletOptions): Promise<Kubelet> {
  await addNode(kube);
  await addVolumes(kube, options.volumes ?? 0);
  const kubelet = new Kubelet(t, kube, options);
  kubelet.start();
  t.teardown(() => kubelet.close());
  return kubelet;
}

class Kubelet {
  readonly #t: Test;
  readonly #kube: KubeApiserver;
  readonly #options: KubeletOptions;
  /** By name of the Pod, so that each is started and ended once. */
  readonly #runs = new Map<string, Promise<void>>();
  readonly #ends = new Map<string, Promise<void>>();
  readonly #pods = new Map<string, StartedPod>();
  readonly #standIns = new Map<string, Awaited<ReturnType<StandIn>>>();
  readonly #problems: string[] = [];
  readonly #stopped = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(t: Test, kube: KubeApiserver, options: KubeletOptions) {
    this.#t = t;
    this.#kube = kube;
    this.#options = options;
  }

  /** Pods of ours that run and are ready, by name. */
  get pods(): ReadonlyMap<string, StartedPod> {
    return this.#pods;
  }

  get problems(): readonly string[] {
    return this.#problems;
  }

  start(): void {
    this.#loop = this.#watch();
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#loop;
    await Promise.all([...this.#runs.values(), ...this.#ends.values()]);
  }

  async #watch(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#sync().catch((error: unknown) => this.#note(nodeName, error));
      await delay(everyMs);
    }
  }

  async #sync(): Promise<void> {
    const path = `/api/v1/namespaces/${this.#options.namespace}/pods`;
    // Parsed boundary: Pods of the API server.
    const pods = (await listObjects(this.#kube, path)) as readonly Pod[];
    for (const pod of pods.filter(({ spec }) => spec.nodeName === nodeName)) {
      const { name, deletionTimestamp } = pod.metadata;
      const isDeleted = deletionTimestamp !== undefined;
      const jobs = isDeleted ? this.#ends : this.#runs;
      if (jobs.has(name)) continue;
      const job = isDeleted ? this.#end(name) : this.#run(pod);
      jobs.set(
        name,
        job.catch((error: unknown) => this.#note(name, error)),
      );
    }
  }

  async #run(pod: Pod): Promise<void> {
    const { name } = pod.metadata;
    const namespace = await readPodNamespace(this.#kube, this.#options);
    const prepared = await namespace.prepare({ ...pod, metadata: { name } });
    if (pod.spec.restartPolicy === 'Never') return this.#runToCompletion(name, prepared);
    const [container] = prepared.spec.containers;
    const standIn = this.#options.standIns?.[container?.image.replace(/:[^/]*$/, '') ?? ''];
    if (container !== undefined && standIn !== undefined)
      this.#standIns.set(name, await standIn(containerEnvironment(container, prepared.surroundings)));
    else this.#pods.set(name, await startPod(this.#t, prepared));
    await this.#patchStatus(name, runningStatus(prepared));
  }

  async #runToCompletion(name: string, prepared: PreparedPod): Promise<void> {
    try {
      await runPod(prepared);
      await this.#patchStatus(name, { phase: 'Succeeded' });
    } catch (error) {
      await this.#patchStatus(name, { phase: 'Failed' });
      throw error;
    }
  }

  /** A Pod that is still starting is ended once it has started. */
  async #end(name: string): Promise<void> {
    await this.#runs.get(name);
    await this.#pods.get(name)?.stop();
    await this.#standIns.get(name)?.stop();
    this.#pods.delete(name);
    this.#standIns.delete(name);
    const flags = ['--grace-period=0', '--force', '--ignore-not-found'];
    await kubectl(this.#kube, ['delete', 'pod', name, this.#namespaceFlag, ...flags]);
  }

  #patchStatus(name: string, status: object): Promise<string> {
    const flags = [this.#namespaceFlag, '--subresource=status', '--type=merge'];
    return kubectl(this.#kube, ['patch', 'pod', name, ...flags, '-p', JSON.stringify({ status })]);
  }

  #note(what: string, error: unknown): void {
    this.#problems.push(`${what}: ${String(error)}`);
  }

  get #namespaceFlag(): string {
    return `--namespace=${this.#options.namespace}`;
  }
}

/** The status of a Pod whose probes have all succeeded. */
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

/** Large enough for all Pods. The node controller, which would remove its taint, does not run. */
async function addNode(kube: KubeApiserver): Promise<void> {
  const labels = { 'kubernetes.io/hostname': nodeName, 'topology.kubernetes.io/zone': 'zone-1' };
  await kubectl(
    kube,
    ['create', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, labels } }),
  );
  const capacity = { cpu: '64', memory: '64Gi', pods: '100' };
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message: '',
    lastHeartbeatTime: new Date().toISOString(),
  };
  const status = { capacity, allocatable: capacity, conditions: [ready] };
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

/**
 * As an administrator makes them where nothing makes them by itself. They belong to whichever claim
 * is first.
 */
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
