import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { getErrorMessage } from '@tollgate/kit/errors';

export interface KubeConfigOptions {
  /** Paths of kubeconfigs, separated as in PATH. Takes precedence. */
  readonly kubeconfig: string;
  /** Set in a pod, where the service account is used. */
  readonly kubernetesServiceHost: string;
}

/**
 * Loads the kubeconfig, else the pod's service account, else `~/.kube/config`. The library is
 * loaded only here: it takes half a second and 80 MB, which a service that reads a folder does not
 * need.
 *
 * @throws Error that says what is missing when no cluster is configured.
 */
export async function loadKubeConfig(options: KubeConfigOptions): Promise<KubeConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  if (options.kubeconfig === '' && options.kubernetesServiceHost !== '') {
    const config = new KubeConfig();
    config.loadFromCluster();
    await requireServiceAccount(config);
    return config;
  }
  const config = loadFiles(KubeConfig, options.kubeconfig);
  const paths = options.kubeconfig || '~/.kube/config';
  requireServer(config, paths);
  await requireFiles(config, paths);
  return config;
}

/** Namespace of the pod, or of the current context. */
export function currentNamespace(config: KubeConfig): string {
  return config.getContextObject(config.getCurrentContext())?.namespace?.trim() || 'default';
}

function loadFiles(KubeConfigClass: typeof KubeConfig, paths: string): KubeConfig {
  const config = new KubeConfigClass();
  try {
    const [first, ...others] = paths.split(delimiter).filter((path) => path !== '');
    if (first === undefined) config.loadFromDefault();
    else config.loadFromFile(first);
    for (const path of others) {
      const further = new KubeConfigClass();
      further.loadFromFile(path);
      config.mergeConfig(further, true);
    }
    return config;
  } catch (cause) {
    const reason = getErrorMessage(cause);
    throw new Error(`cannot read the kubeconfig ${paths || '~/.kube/config'}: ${reason}`, { cause });
  }
}

/** The library's default without a configuration. */
const fallbackServer = 'http://localhost:8080';

function requireServer(config: KubeConfig, paths: string): void {
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    const names = config.getContexts().map(({ name }) => name);
    throw new Error(
      `the kubeconfig ${paths} has no cluster for its current context ${config.getCurrentContext()}; ` +
        `its contexts: ${names.join(', ') || 'none'}`,
    );
  }
  if (cluster.server === fallbackServer && cluster.name === 'cluster') {
    throw new Error('no Kubernetes cluster is configured: set KUBECONFIG to a file, or run in a pod');
  }
  if (!URL.canParse(cluster.server)) {
    throw new Error(`the kubeconfig ${paths} names a server that is not a URL: ${cluster.server}`);
  }
  if (cluster.server.startsWith('http:') && cluster.skipTLSVerify !== true) {
    throw new Error(
      `the kubeconfig ${paths} names the server ${cluster.server}, to which credentials would be sent unencrypted: ` +
        'use https, or set insecure-skip-tls-verify: true for that cluster',
    );
  }
}

/** Files are read for each call, where a missing one would look like an outage. */
async function requireFiles(config: KubeConfig, paths: string): Promise<void> {
  const user = config.getCurrentUser();
  const files = {
    'certificate-authority': config.getCurrentCluster()?.caFile,
    'client-certificate': user?.certFile,
    'client-key': user?.keyFile,
  };
  for (const [field, file] of Object.entries(files)) {
    if (!file) continue;
    try {
      await access(file, constants.R_OK);
    } catch (cause) {
      const reason = getErrorMessage(cause);
      throw new Error(`the kubeconfig ${paths} names a ${field} that cannot be read: ${reason}`, { cause });
    }
  }
}

/** Files are read again when they are replaced; whether they exist is checked at startup. */
async function requireServiceAccount(config: KubeConfig): Promise<void> {
  const tokenFile: unknown = config.getCurrentUser()?.authProvider?.config?.tokenFile;
  for (const file of [tokenFile, config.getCurrentCluster()?.caFile]) {
    try {
      await access(String(file), constants.R_OK);
    } catch (cause) {
      throw new Error(
        `the pod has no ${file}: set automountServiceAccountToken: true and a serviceAccountName, or KUBECONFIG`,
        { cause },
      );
    }
  }
}
