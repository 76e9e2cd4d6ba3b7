import { makeTextFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { freePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import { runHelm } from './helm.ts';
import type { ManifestObject } from './manifest-object.ts';
import { objectsOf } from './rendered-chart.ts';

/** A release in a namespace of its own, which takes no Pods but restricted ones. */
export interface InstalledRelease {
  readonly name: string;
  readonly namespace: string;
  /** What `helm test` would run. */
  tests(): Promise<readonly ManifestObject[]>;
}

/** What is installed, and where. */
export interface InstallOptions {
  readonly chart: string;
  readonly namespace: string;
  /** Default `tg`. */
  readonly name?: string;
  /** Of helm. */
  readonly args: readonly string[];
}

/** Makes a namespace which takes no Pods but restricted ones. */
export function createNamespace(kube: KubeApiserver, name: string): Promise<void> {
  return kube.apply(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    }),
  );
}

/** Installs a chart. @throws Error with helm's words when that fails. */
export async function installRelease(
  t: Test,
  kube: KubeApiserver,
  { chart, namespace, name = 'tg', args }: InstallOptions,
): Promise<InstalledRelease> {
  const home = makeTextFolder(t).path;
  const helm = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runHelm([...words, `--namespace=${namespace}`], {
      home,
      kubeconfigFile: kube.kubeconfigFile,
    });
    if (code !== 0) throw new Error(`helm ${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  await helm('install', name, `charts/${chart}`, ...args);
  return { name, namespace, tests: async () => objectsOf(await helm('get', 'hooks', name)) };
}

/** The ports of each service, by their names in its values. */
const ports = {
  auth: ['http', 'grpc', 'http-authz', 'metrics'],
  ratelimit: ['http', 'grpc', 'debug', 'metrics'],
  xds: ['grpc', 'admin'],
} as const;

/**
 * Arguments of helm that put free ports in the place of those of a chart, or of all charts of `tollgate`: here Pods share one
 * address. Who calls the xDS server is told.
 */
export async function freePortArguments(chart: string): Promise<string[]> {
  const services = chart === 'tollgate' ? (['auth', 'ratelimit', 'xds'] as const) : [];
  const own = isService(chart) ? [{ prefix: '', service: chart }] : [];
  const all = [...own, ...services.map((service) => ({ prefix: `${service}.`, service }))];
  const args: string[] = [];
  for (const { prefix, service } of all) {
    for (const port of ports[service]) {
      const number = await freePort();
      args.push(`--set=${prefix}ports.${port}=${number}`);
      if (chart === 'tollgate' && service === 'xds' && port === 'grpc') {
        args.push(`--set=ratelimit.rules.xds.address=tg-xds-headless:${number}`);
      }
    }
  }
  return args;
}

const isService = (chart: string): chart is keyof typeof ports => Object.hasOwn(ports, chart);
