import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { findBinary, type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';
import { namespace } from '../cluster.ts';
import { gatewayAddress, limiterAddress } from '../limiter-network.ts';

export const proxyUrl = `http://${limiterAddress}`;

/** Port 80 instead of 10080, which fetch refuses. The access log would be that of the test. */
export const envoyProxy = {
  provider: { type: 'Kubernetes', kubernetes: { useListenerPortAsContainerPort: true } },
  telemetry: { accessLog: { disable: true } },
};

/** The objects that Envoy Gateway creates for a proxy. */
interface ProxyObjects {
  /** Arguments of Envoy. */
  readonly args: readonly string[];
  /** Files of its ConfigMap, by name. */
  readonly files: Readonly<Record<string, string>>;
}

/** @throws Error until Envoy Gateway has created the objects. */
export async function readProxy(kube: KubeApiserver): Promise<ProxyObjects> {
  const get = async (kind: string, path: string) => {
    const owner = ['-l', 'gateway.envoyproxy.io/owning-gateway-name=shop'];
    const { stdout } = await kube.kubectl(['get', kind, '-n', namespace, ...owner, '-o', `jsonpath=${path}`]);
    if (stdout === '') throw new Error(`no ${kind} of the Gateway`);
    return JSON.parse(stdout) as unknown;
  };
  // Parsed boundary: the API server has validated both.
  return {
    args: (await get('deployment', '{.items[0].spec.template.spec.containers[0].args}')) as string[],
    files: (await get('configmap', '{.items[0].data}')) as Record<string, string>,
  };
}

/**
 * Starts Envoy with the arguments of its Deployment, as a kubelet would, in a network of its own:
 * `inside` is the command that runs a program there.
 */
export function startProxy(
  { args, files }: ProxyObjects,
  { folder, inside }: { readonly folder: string; readonly inside: readonly string[] },
): Promise<ServerProcess> {
  const sds = join(folder, 'sds');
  mkdirSync(sds);
  const place = (text: string): string =>
    text
      .replaceAll('/sds/', `${sds}/`)
      .replaceAll('/certs/', `${folder}/config/certs/envoy/`)
      .replaceAll(`envoy-gateway.${namespace}.svc.cluster.local.`, gatewayAddress)
      .replaceAll(/\$\(ENVOY_\w+\)/g, 'one');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(sds, name), place(text));
  const [command = '', ...enter] = inside;
  return startServerProcess({
    command,
    args: [...enter, findBinary('envoy'), ...args.map(place), '--disable-hot-restart', '--concurrency', '1'],
    ready: async () => {
      await fetch(proxyUrl, { signal: AbortSignal.timeout(1_000) });
    },
  });
}
