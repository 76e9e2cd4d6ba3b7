import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { ApiClient, collectionPath, objectPath } from '../../src/kube/client.ts';
import { loadKubeConfig } from '../../src/kube/config.ts';
import { rateLimitConfigs } from '../../src/kube/resources.ts';

const root = join(import.meta.dirname, '../../../..');

/** The CRD as people apply it. */
const crdFile = join(root, 'crds/ratelimitconfigs.yaml');

/** The CRD of AccessPolicy. */
export const policyCrdFile = join(root, 'crds/accesspolicies.yaml');

/** A file of services/xds/deploy. */
export function deployFile(name: string): string {
  return readFileSync(join(root, 'services/xds/deploy', name), 'utf8');
}

/** Installs the CRD and makes namespaces. */
export async function prepareCluster(kube: KubeApiserver, namespaces: readonly string[]): Promise<void> {
  await kube.apply(readFileSync(crdFile, 'utf8'));
  const manifests = namespaces.map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  }));
  await kube.apply(manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));
}

/** A client with the permissions of a user, by default the administrator. */
export async function connectApi(kube: KubeApiserver, user = 'admin'): Promise<ApiClient> {
  const kubeconfig = kube.kubeconfigFor(user);
  return new ApiClient(await loadKubeConfig({ kubeconfig, kubernetesServiceHost: '' }));
}

/** Edits RateLimitConfigs as people and their tools do. */
export interface Editor {
  create(namespace: string, name: string, requestsPerUnit?: number): Promise<unknown>;
  edit(namespace: string, name: string, requestsPerUnit: number): Promise<unknown>;
  delete(namespace: string, name: string): Promise<unknown>;
  get(namespace: string, name: string): Promise<LiveObject>;
}

/** Object as the tests read it. */
interface LiveObject {
  readonly metadata: {
    readonly uid: string;
    readonly generation: number;
    readonly resourceVersion: string;
    readonly managedFields: readonly Record<string, unknown>[];
  };
  readonly status?: Record<string, unknown>;
}

/** Makes an editor with the rights of the client. */
export function createEditor(kube: KubeApiserver, api: ApiClient): Editor {
  const spec = (name: string, requestsPerUnit: number) => ({
    domain: name,
    descriptors: [{ key: 'user', rateLimit: { unit: 'Minute', requestsPerUnit } }],
  });
  return {
    create: (namespace, name, requestsPerUnit = 1) =>
      api.send({
        method: 'POST',
        path: collectionPath(rateLimitConfigs, namespace),
        body: {
          apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
          kind: 'RateLimitConfig',
          metadata: { namespace, name },
          spec: spec(name, requestsPerUnit),
        },
      }),
    edit: (namespace, name, requestsPerUnit) =>
      api.send({
        method: 'PATCH',
        path: objectPath(rateLimitConfigs, { namespace, name }),
        contentType: 'application/merge-patch+json',
        body: { spec: spec(name, requestsPerUnit) },
      }),
    delete: (namespace, name) => kube.kubectl(['delete', 'rlc', '-n', namespace, name]),
    // The API server answers a GET of one object; the fields that tests read are always there.
    get: async (namespace, name) =>
      (await api.send({
        method: 'GET',
        path: objectPath(rateLimitConfigs, { namespace, name }),
      })) as LiveObject,
  };
}
