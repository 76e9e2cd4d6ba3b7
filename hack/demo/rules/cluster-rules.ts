import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { load } from 'js-yaml';
import { settingsSpec } from '../../../services/xds/src/config/settings.ts';
import { ApiClient } from '../../../services/xds/src/kube/client.ts';
import { loadKubeConfig } from '../../../services/xds/src/kube/config.ts';
import { hasStatus } from '../../../services/xds/src/kube/errors.ts';
import { editText } from './edit-text.ts';
import { readManifests } from './manifests.ts';
import type { RuleStore } from './rule-store.ts';

const crdFile = resolve(import.meta.dirname, '../../../crds/ratelimitconfigs.yaml');
const crdPath =
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ratelimitconfigs.ratelimit.tollgate.dev';
const apiPath = '/apis/ratelimit.tollgate.dev/v1alpha1';

/** A new CustomResourceDefinition is served within a second; of a busy cluster a little later. */
const servedTimeoutMs = 30_000;

/** Environment variables: `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Keeps the manifests in the cluster that `KUBECONFIG` leads to, in a namespace of their own. Nothing is written before
 * `write`.
 *
 * @throws Error that says what is wrong with the kubeconfig, ApiError when the cluster refuses to be read.
 */
export async function clusterRules(environment: Environment): Promise<RuleStore> {
  const kubeconfig = environment[settingsSpec.kubeconfig.env] ?? '';
  const client = new ApiClient(await loadKubeConfig({ kubeconfig, kubernetesServiceHost: '' }));
  const makesDefinition = !(await exists(client, crdPath));
  const namespace = `tollgate-demo-${crypto.randomUUID().slice(0, 8)}`;
  const namespacePath = `/api/v1/namespaces/${namespace}`;
  const objectsPath = `${apiPath}/namespaces/${namespace}/ratelimitconfigs`;
  const made = makesDefinition
    ? `the namespace ${namespace} and the CustomResourceDefinition of RateLimitConfigs`
    : `the namespace ${namespace}`;
  let prepared = false;

  async function prepare(): Promise<void> {
    prepared = true;
    if (makesDefinition) await apply(client, crdPath, await readFile(crdFile, 'utf8'));
    const metadata = { name: namespace };
    await apply(client, namespacePath, JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }));
    await awaitUntil(() => client.send({ method: 'GET', path: objectsPath }), {
      what: 'the CustomResourceDefinition to be served',
      timeoutMs: servedTimeoutMs,
    });
  }

  async function removeAll(): Promise<void> {
    await remove(client, objectsPath);
    await remove(client, namespacePath);
    // Somebody else may have begun to use it.
    if (makesDefinition && (await isUnused(client))) await remove(client, crdPath);
  }

  const applyManifest = (file: string, text: string) =>
    apply(client, `${objectsPath}/${objectName(file)}`, text);

  return {
    notice: `KUBECONFIG is set, so the rules are kept in the cluster ${client.server}. The demo makes ${made} there, and removes what it has made at its end`,
    placeOf: (file) => `kubectl edit -n ${namespace} rlc/${objectName(file)}`,
    edited: 'the API server took it',
    xdsEnvironment: {
      ...forCredentials(environment),
      XDS_SOURCE: 'kubernetes',
      XDS_NAMESPACES: namespace,
      XDS_LEASE_NAMESPACE: namespace,
    },
    async write() {
      if (!prepared) await prepare();
      for (const [file, text] of await readManifests()) await applyManifest(file, text);
    },
    async edit(edit) {
      const text = (await readManifests()).get(edit.file) ?? '';
      await applyManifest(edit.file, editText(text, edit));
    },
    async remove() {
      try {
        if (prepared) await removeAll();
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`of ${made} something may be left in ${client.server}: ${reason}`, { cause });
      } finally {
        client.close();
      }
    },
  };
}

/** The manifests bear the names of their objects. */
function objectName(file: string): string {
  return file.replace(/\.yaml$/, '');
}

/** Server-side apply, as `kubectl apply --server-side` does it. JSON is YAML. */
async function apply(client: ApiClient, path: string, yaml: string): Promise<void> {
  await client.send({
    method: 'PATCH',
    path,
    query: { fieldManager: 'tollgate-demo', force: 'true' },
    contentType: 'application/apply-patch+yaml',
    body: load(yaml),
  });
}

/** Of what is already gone nothing is left to be removed. */
async function remove(client: ApiClient, path: string): Promise<void> {
  try {
    await client.send({ method: 'DELETE', path });
  } catch (error) {
    if (!hasStatus(error, 404)) throw error;
  }
}

async function exists(client: ApiClient, path: string): Promise<boolean> {
  try {
    await client.send({ method: 'GET', path });
    return true;
  } catch (error) {
    if (hasStatus(error, 404)) return false;
    throw error;
  }
}

async function isUnused(client: ApiClient): Promise<boolean> {
  const list = await client.send({
    method: 'GET',
    path: `${apiPath}/ratelimitconfigs`,
    query: { limit: '1' },
  });
  // A list of the API server.
  return (list as { readonly items: readonly unknown[] }).items.length === 0;
}

/**
 * What programs that fetch credentials for a kubeconfig may need: all but the variables that would configure the management
 * server itself.
 */
function forCredentials(environment: Environment): Record<string, string> {
  const settings = Object.values(settingsSpec).flatMap(({ env, aliases }) => [env, ...aliases]);
  const own = new Set(settings.filter((name) => name !== settingsSpec.kubeconfig.env));
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value === undefined || own.has(name) ? [] : [[name, value]],
    ),
  );
}
