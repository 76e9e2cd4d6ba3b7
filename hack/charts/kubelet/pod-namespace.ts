import { readFileSync } from 'node:fs';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { type ManifestObject, readObject } from '../support/manifest-object.ts';
import { type PodSpec, podSpecOf } from './pod-spec.ts';
import { podSurroundings } from './pod-surroundings.ts';
import type { PodNode, PreparedPod } from './start-pod.ts';

/** What a cluster has besides its API server. */
export interface NamespaceOptions {
  readonly namespace: string;
  readonly imageOf: PodNode['imageOf'];
  /** Addresses by their names, of servers outside the cluster and of Services whose Pods are not started here. */
  readonly hosts?: Readonly<Record<string, string>>;
}

/** What is there for the Pods of a namespace, at one moment. Every Service is on loopback. */
export interface PodNamespace {
  readonly deployments: readonly ManifestObject[];
  /** What a Pod that the API server has is run with. */
  prepare(pod: ManifestObject): Promise<PreparedPod>;
}

/** Asks the API server for it. */
export async function readPodNamespace(
  kube: KubeApiserver,
  { namespace, imageOf, hosts = {} }: NamespaceOptions,
): Promise<PodNamespace> {
  const get = async (...args: string[]) => listed(await kubectl(kube, ['get', ...args, '-o', 'json']));
  const here = `--namespace=${namespace}`;
  const deployments = await get('deployments', here);
  const services = await get('services', '--all-namespaces');
  const node: PodNode = {
    imageOf,
    hosts: { ...serviceHosts(services, namespace), ...hosts },
    environment: apiServerVariables(kube),
  };
  return {
    deployments,
    async prepare(pod) {
      const spec = podSpecOf(pod);
      const { serviceAccountName = 'default', automountServiceAccountToken = true } = spec;
      const token = automountServiceAccountToken
        ? await kubectl(kube, ['create', 'token', serviceAccountName, here])
        : '';
      const { name } = pod.metadata;
      let objects: readonly ManifestObject[] = [];
      await awaitUntil(
        async () => {
          objects = await get('secrets,configmaps', here);
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

/** What kubectl prints. @throws Error with its words when it fails. */
export async function kubectl(kube: KubeApiserver, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await kube.kubectl(args, input === undefined ? {} : { input });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The objects of a list of kubectl. */
export function listed(text: string): readonly ManifestObject[] {
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
