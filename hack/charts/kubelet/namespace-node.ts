import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import { type ManifestObject, readObject } from '../support/manifest-object.ts';
import { kubectl, type NamespaceOptions, readPodNamespace } from './pod-namespace.ts';
import { runPod, type StartedPod, startPod } from './start-pod.ts';

/** The one node of a cluster, as a namespace of it sees it. */
export interface NamespaceNode {
  /** The names of the Deployments there are. */
  readonly deployments: readonly string[];
  /** Makes a Pod of a Deployment, and starts it when the API server has taken it. */
  start(deployment: string): Promise<StartedPod>;
  /** Makes a Pod that ends by itself, and answers what it printed. @throws Error when it fails. */
  run(pod: ManifestObject): Promise<string>;
}

/**
 * Stands for the controllers and the kubelet of a cluster of one node: Pods are created at the API server with all its
 * checks, and what has become of them there, with all its defaults, is run on this machine. Every Service is on loopback.
 * What Pods need must be there already.
 */
export async function namespaceNode(
  t: Test,
  kube: KubeApiserver,
  options: NamespaceOptions,
): Promise<NamespaceNode> {
  const namespace = await readPodNamespace(kube, options);
  const deployments = new Map(namespace.deployments.map((object) => [object.metadata.name, object]));

  async function create(pod: ManifestObject): Promise<ManifestObject> {
    const args = ['create', `--namespace=${options.namespace}`, '-f', '-', '-o', 'json'];
    return readObject(JSON.parse(await kubectl(kube, args, JSON.stringify(pod))));
  }

  return {
    deployments: [...deployments.keys()],
    async start(name) {
      const deployment = deployments.get(name);
      if (deployment === undefined) throw new Error(`${options.namespace} has no Deployment ${name}`);
      return startPod(t, await namespace.prepare(await create(podOf(deployment))));
    },
    async run(pod) {
      return runPod(await namespace.prepare(await create(pod)));
    },
  };
}

/** As the controllers of Deployments and ReplicaSets name and make them. */
function podOf({ metadata, spec }: ManifestObject): ManifestObject {
  // Parsed boundary: the API server has checked it.
  const { template } = spec as { readonly template: { readonly metadata: object; readonly spec: unknown } };
  const name = `${metadata.name}-5d8f9c7b6-x2x4z`;
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...template.metadata, name }, spec: template.spec };
}
