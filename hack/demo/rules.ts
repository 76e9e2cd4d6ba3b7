import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { load } from 'js-yaml';
import { settingsSpec } from '../../services/xds/src/config/settings.ts';
import { ApiClient } from '../../services/xds/src/kube/client.ts';
import { loadKubeConfig } from '../../services/xds/src/kube/config.ts';
import { hasStatus } from '../../services/xds/src/kube/errors.ts';

/** A change to a manifest while everything runs. */
export interface RuleEdit {
  /** Name inside hack/demo/config/limits. */
  readonly file: string;
  /** The end of exactly one line of the file. */
  readonly from: string;
  readonly to: string;
}

/** Where the RateLimitConfigs of the demo are kept while it runs. */
export interface RuleStore {
  /** A notice of what is about to change in the cluster; undefined when nothing does. */
  readonly notice?: string;
  /** Where to edit a manifest such as `plans.yaml`. */
  getLocation(file: string): string;
  /** The message after an edit. */
  readonly edited: string;
  /** The environment in which the xDS server finds them. */
  readonly xdsEnvironment: Readonly<Record<string, string>>;
  /** Writes all manifests of hack/demo/config/limits, and overwrites edits. */
  write(): Promise<void>;
  /**
   * Makes an edit, and resolves when it is saved.
   *
   * @throws Error when the text to replace is not there exactly once.
   */
  edit(edit: RuleEdit): Promise<void>;
  /**
   * Leaves nothing of it behind.
   *
   * @throws Error that says what may be left.
   */
  remove(): Promise<void>;
}

/**
 * Makes an edit in the text of a manifest.
 *
 * @throws Error when the text to replace is not there exactly once.
 */
export function editText(text: string, { file, from, to }: RuleEdit): string {
  const [before, after, ...more] = text.split(`${from}\n`);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${file} is to have exactly one line that ends in "${from}"`);
  return `${before}${to}\n${after}`;
}

/** The RateLimitConfigs of the demo as they are written. */
const manifestsFolder = resolve(import.meta.dirname, 'config/limits');

export async function readManifests(): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(manifestsFolder);
  const texts = names.map(
    async (name) => [name, await readFile(join(manifestsFolder, name), 'utf8')] as const,
  );
  return new Map(await Promise.all(texts));
}

/** Keeps a copy of the manifests in a folder, which the caller removes. */
export function folderRules(folder: string): RuleStore {
  return {
    getLocation: (file) => join(folder, file),
    edited: 'the file was saved',
    xdsEnvironment: { XDS_SOURCE: 'folder', XDS_FOLDER: folder },
    write: () => cp(manifestsFolder, folder, { recursive: true }),
    async edit(edit) {
      const path = join(folder, edit.file);
      // In place, as an editor does.
      await writeFile(path, editText(await readFile(path, 'utf8'), edit));
    },
    remove: () => Promise.resolve(),
  };
}

const crdFile = resolve(import.meta.dirname, '../../crds/ratelimitconfigs.yaml');
const crdPath =
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ratelimitconfigs.ratelimit.tollgate.dev';
const apiPath = '/apis/ratelimit.tollgate.dev/v1alpha1';

/** A new CustomResourceDefinition is served within a second; of a busy cluster a little later. */
const servedTimeoutMs = 30_000;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Keeps the manifests in the cluster that `KUBECONFIG` leads to, in a namespace of their own.
 * Nothing is written before `write`.
 *
 * @throws Error that says what is wrong with the kubeconfig, ApiError when the cluster refuses to
 * be read.
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
    // Other clients may use it by now.
    if (makesDefinition && (await isUnused(client))) await remove(client, crdPath);
  }

  const applyManifest = (file: string, text: string) =>
    apply(client, `${objectsPath}/${objectName(file)}`, text);

  return {
    notice: `KUBECONFIG is set, so the rules are kept in the cluster ${client.server}. The demo makes ${made} there, and removes what it has made at its end`,
    getLocation: (file) => `kubectl edit -n ${namespace} rlc/${objectName(file)}`,
    edited: 'the API server took it',
    xdsEnvironment: {
      ...forCredentials(environment),
      XDS_SOURCE: 'kubernetes',
      XDS_NAMESPACES: namespace,
      XDS_ANY_DOMAIN_NAMESPACES: namespace,
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

/** Objects that are already gone are not an error. */
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
 * Variables that programs that fetch credentials for a kubeconfig may need: all but the variables
 * that would configure the xDS server itself.
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
