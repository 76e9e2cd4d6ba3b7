import { readFileSync } from 'node:fs';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import { type ManifestObject, readObject } from '../support/manifest-object.ts';
import { type PodSpec, podSpecOf } from './pod-spec.ts';
import { type PodSurroundings, podSurroundings } from './pod-surroundings.ts';
import { type PodNode, runPod, type StartedPod, startPod } from './start-pod.ts';

/** The one node of a cluster, as a namespace of it sees it. */
export interface NamespaceNode {
  /** The names of the Deployments there are. */
  readonly deployments: readonly string[];
  /** Makes a Pod of a Deployment, and starts it when the API server has taken it. */
  start(deployment: string): Promise<StartedPod>;
  /** Makes a Pod that ends by itself, and answers what it printed. @throws Error when it fails. */
  run(pod: ManifestObject): Promise<string>;
}

/** What a cluster has besides its API server. */
export interface NamespaceNodeOptions {
  readonly namespace: string;
  readonly imageOf: PodNode['imageOf'];
  /** Addresses by their names, of servers outside the cluster and of Services whose Pods are not started here. */
  readonly hosts?: Readonly<Record<string, string>>;
}

/**
 * Stands for the controllers and the kubelet of a cluster of one node: Pods are created at the API server with all its
 * checks, and what has become of them there, with all its defaults, is run on this machine. Every Service is on loopback.
 * What Pods need must be there already.
 */
export async function namespaceNode(
  t: Test,
  kube: KubeApiserver,
  { namespace, imageOf, hosts = {} }: NamespaceNodeOptions,
): Promise<NamespaceNode> {
  const kubectl = async (args: readonly string[], input?: string): Promise<string> => {
    const { code, stdout, stderr } = await kube.kubectl(args, input === undefined ? {} : { input });
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const here = `--namespace=${namespace}`;
  const objects = listed(await kubectl(['get', 'deployments,secrets,configmaps', here, '-o', 'json']));
  const services = listed(await kubectl(['get', 'services', '--all-namespaces', '-o', 'json']));
  const deployments = new Map(
    objects.filter(({ kind }) => kind === 'Deployment').map((object) => [object.metadata.name, object]),
  );
  const node: PodNode = {
    imageOf,
    hosts: { ...serviceHosts(services, namespace), ...hosts },
    environment: apiServerVariables(kube),
  };

  async function create(
    pod: ManifestObject,
  ): Promise<{ readonly spec: PodSpec; readonly surroundings: PodSurroundings }> {
    const created = await kubectl(['create', here, '-f', '-', '-o', 'json'], JSON.stringify(pod));
    const spec = podSpecOf(readObject(JSON.parse(created)));
    const { serviceAccountName = 'default', automountServiceAccountToken = true } = spec;
    const token = automountServiceAccountToken
      ? await kubectl(['create', 'token', serviceAccountName, here])
      : '';
    const { name } = pod.metadata;
    return {
      spec,
      surroundings: podSurroundings([...objects, rootAuthority(kube)], {
        name,
        namespace,
        token: token.trim(),
      }),
    };
  }

  return {
    deployments: [...deployments.keys()],
    async start(name) {
      const deployment = deployments.get(name);
      if (deployment === undefined) throw new Error(`${namespace} has no Deployment ${name}`);
      const { spec, surroundings } = await create(podOf(deployment));
      return startPod(t, spec, { node, surroundings });
    },
    async run(pod) {
      const { spec, surroundings } = await create(pod);
      return runPod(spec, { node, surroundings });
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

function listed(text: string): readonly ManifestObject[] {
  // Parsed boundary: a list, as kubectl writes it.
  const { items } = JSON.parse(text) as { readonly items: readonly unknown[] };
  return items.map(readObject);
}

/** The names of all Services, with and without what the search path of a namespace adds. */
function serviceHosts(services: readonly ManifestObject[], ownNamespace: string): Record<string, string> {
  return Object.fromEntries(
    services.flatMap(({ metadata: { name, namespace = '' } }) => {
      const full = [`.${namespace}`, `.${namespace}.svc`, `.${namespace}.svc.cluster.local`];
      const suffixes = namespace === ownNamespace ? ['', ...full] : full;
      return suffixes.map((suffix) => [`${name}${suffix}`, '127.0.0.1']);
    }),
  );
}

function apiServerVariables({ url }: KubeApiserver): Record<string, string> {
  const { hostname, port } = new URL(url);
  return { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
}

/** Which a controller puts into every namespace. */
function rootAuthority({ caFile }: KubeApiserver): ManifestObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kube-root-ca.crt' },
    data: { 'ca.crt': readFileSync(caFile, 'utf8') },
  };
}
