import { readFileSync } from 'node:fs';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import { type ManifestObject, readObject } from '../support/manifests.ts';
import { type PodNode, type PreparedPod, type StartedPod, startPod } from './pod.ts';
import { getPodSpec, type PodSpec, podSurroundings } from './pod-spec.ts';

export interface NamespaceOptions {
  readonly namespace: string;
  readonly findImage: PodNode['findImage'];
  /**
   * Addresses by their names, of servers outside the cluster and of Services whose Pods are not
   * started here.
   */
  readonly hosts?: PodNode['hosts'];
}

/** A snapshot of a namespace. Every Service is on loopback. */
export interface PodNamespace {
  readonly deployments: readonly ManifestObject[];
  /** Resolves everything that a Pod needs to run. */
  prepare(pod: ManifestObject): Promise<PreparedPod>;
}

export async function readPodNamespace(
  kube: KubeApiserver,
  { namespace, findImage, hosts = {} }: NamespaceOptions,
): Promise<PodNamespace> {
  const core = `/api/v1/namespaces/${namespace}`;
  const deployments = await listObjects(kube, `/apis/apps/v1/namespaces/${namespace}/deployments`);
  const services = await listObjects(kube, '/api/v1/services');
  const node: PodNode = {
    findImage,
    hosts: { ...serviceHosts(services, namespace), ...hosts },
    environment: apiServerVariables(kube),
    compileCache: process.env.NODE_COMPILE_CACHE,
  };
  return {
    deployments,
    async prepare(pod) {
      const spec = getPodSpec(pod);
      const { serviceAccountName = 'default', automountServiceAccountToken = true } = spec;
      const token = automountServiceAccountToken
        ? await kubectl(kube, ['create', 'token', serviceAccountName, `--namespace=${namespace}`])
        : '';
      const { name } = pod.metadata;
      let objects: readonly ManifestObject[] = [];
      await awaitUntil(
        async () => {
          const lists = ['secrets', 'configmaps'].map((kind) => listObjects(kube, `${core}/${kind}`));
          objects = (await Promise.all(lists)).flat();
          return hasKeys(spec, objects);
        },
        { what: `the keys of Secrets that ${name} mounts`, timeoutMs: secretTimeoutMs },
      );
      const surroundings = podSurroundings([...objects, rootAuthority(kube)], {
        name,
        namespace,
        token: token.trim(),
      });
      return { spec, node, surroundings };
    },
  };
}

/** Another Pod may have to start before a Secret has all that a Pod mounts of it. */
const secretTimeoutMs = 60_000;

/** Whether every Secret has the keys that a Pod mounts by their names: a kubelet waits for them. */
function hasKeys({ volumes = [] }: PodSpec, objects: readonly ManifestObject[]): boolean {
  return volumes.every(({ secret }) => {
    const found = objects.find(
      ({ kind, metadata }) => kind === 'Secret' && metadata.name === secret?.secretName,
    );
    return secret?.items?.every(({ key }) => Object.hasOwn(found?.data ?? {}, key)) ?? true;
  });
}

export async function kubectl(kube: KubeApiserver, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await kube.kubectl(args, input === undefined ? {} : { input });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The objects of a path. In a list of the API server they have no kind of their own. */
export async function listObjects(kube: KubeApiserver, path: string): Promise<readonly ManifestObject[]> {
  // Parsed boundary: a list of the API server.
  const { apiVersion, kind, items } = (await kube.get(path)) as {
    readonly apiVersion: string;
    readonly kind: string;
    readonly items: readonly object[];
  };
  return items.map((item) => readObject({ apiVersion, kind: kind.replace(/List$/, ''), ...item }));
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

/** A controller creates it in every namespace. */
function rootAuthority({ caFile }: KubeApiserver): ManifestObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kube-root-ca.crt' },
    data: { 'ca.crt': readFileSync(caFile, 'utf8') },
  };
}

/** The single node of a cluster, limited to one namespace. */
export interface NamespaceNode {
  readonly deployments: readonly string[];
  /** Creates a Pod of a Deployment at the API server and starts it. */
  start(deployment: string): Promise<StartedPod>;
}

/**
 * Stands for the controllers and the kubelet of a cluster of one node: Pods are created at the API
 * server with all its checks, and what has become of them there, with all its defaults, is run on
 * this machine. Every Service is on loopback. What Pods need must be there already.
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
      return startPod(t, await namespace.prepare(await create(toPod(deployment))));
    },
  };
}

/** As the controllers of Deployments and ReplicaSets name and make them. */
function toPod({ metadata, spec }: ManifestObject): ManifestObject {
  // Parsed boundary: the API server has checked it.
  const { template } = spec as { readonly template: { readonly metadata: object; readonly spec: unknown } };
  const name = `${metadata.name}-5d8f9c7b6-x2x4z`;
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...template.metadata, name }, spec: template.spec };
}
