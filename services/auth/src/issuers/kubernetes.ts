import { isIPv6 } from 'node:net';
import { readTextFile } from '@tollgate/kit/text-files';
import { fetchText } from '../outbound/fetch.ts';

/** The API server of the cluster that the service runs in. */
export interface ClusterAccess {
  /** The URL has no slash at the end. */
  readonly url: string;
  /** Folder of `ca.crt` and `token`, as Kubernetes mounts a service account. */
  readonly folder: string;
}

interface ClusterSettings {
  readonly kubernetesServiceHost: string;
  readonly kubernetesServicePort: number;
  readonly extAuthzServiceAccountFolder: string;
}

/** Undefined outside of Kubernetes. */
export function clusterAccess(settings: ClusterSettings): ClusterAccess | undefined {
  const { kubernetesServiceHost: host, kubernetesServicePort: port } = settings;
  if (host === '') return undefined;
  const folder = settings.extAuthzServiceAccountFolder;
  return { url: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`, folder };
}

/** RFC 7517 §8.5 registers a type for key sets; an API server answers 406 without it. */
export const acceptJson = 'application/json, application/jwk-set+json, */*;q=0.5';

/** Both files have about 2 kB. */
const maxFileBytes = 256 * 1024;

/**
 * Reads a document of the API server. The files are read each time: the kubelet replaces the token
 * every hour.
 *
 * @throws Error if there is no service account, or the API server refuses.
 */
export async function fetchFromCluster(
  { url, folder }: ClusterAccess,
  path: string,
  limits: { readonly timeoutMs: number; readonly maxBytes: number },
): Promise<string> {
  const [ca, token] = await Promise.all([
    readTextFile(`${folder}/ca.crt`, maxFileBytes),
    readTextFile(`${folder}/token`, maxFileBytes),
  ]);
  const target = new URL(path, url);
  return fetchText(target, {
    ...limits,
    ca,
    headers: { accept: acceptJson, authorization: `Bearer ${token.trim()}` },
    maxRedirects: 0,
    requiresHttps: true,
    // The Service of the API server has a private address.
    privateHosts: [target.hostname.replace(/^\[|\]$/g, '').toLowerCase()],
  });
}
