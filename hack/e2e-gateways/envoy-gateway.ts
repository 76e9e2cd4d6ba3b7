import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { findBinary, type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';
import { load } from 'js-yaml';
import { parseManifests } from '../charts/support/manifests.ts';

const envoyVersion = '1.40.0';

/** Objects of the example with limits of Envoy Gateway. */
export const exampleFiles = [
  'examples/envoy-gateway/gateway.yaml',
  'examples/kubernetes-gateway/routes.yaml',
  'examples/envoy-gateway/identity.yaml',
  'examples/envoy-gateway/limits.yaml',
];

const read = (path: string): string => readFileSync(resolve(import.meta.dirname, '../..', path), 'utf8');

/** Ports on loopback by the names of Services. */
export type ServicePorts = Readonly<Record<string, number>>;

/**
 * The objects of the example for a gateway without a cluster: a Backend for each port of a Service.
 * Backends are in the namespace of the policies, because a gateway without a cluster does not find
 * the ReferenceGrants of policies. Windows are years, which do not end during the test.
 */
function toStandalone(ports: ServicePorts): string {
  const objects = exampleFiles
    .flatMap((path) => parseManifests(read(path)))
    .filter(({ kind }) => kind !== 'AccessPolicy');
  const replacer = (key: string, value: unknown): unknown => {
    if (key === 'unit') return 'Year';
    if (key !== 'backendRefs' || !Array.isArray(value)) return value;
    return value.map(({ name }) => ({ group, kind: 'Backend', name }));
  };
  const backends = Object.entries(ports).map(([name, port]) => ({
    apiVersion: `${group}/v1alpha1`,
    kind: 'Backend',
    metadata: { name, namespace: 'shop' },
    spec: { endpoints: [{ ip: { address: '127.0.0.1', port } }] },
  }));
  return [...objects, ...backends].map((object) => JSON.stringify(object, replacer)).join('\n---\n');
}

const group = 'gateway.envoyproxy.io';

/** The beginning of every configuration of Envoy Gateway. */
export const gatewayConfig = {
  apiVersion: `${group}/v1alpha1`,
  kind: 'EnvoyGateway',
  gateway: { controllerName: `${group}/gatewayclass-controller` },
};

/** Its configuration by the example's values of its chart. */
export function clusterConfig() {
  // Parsed boundary: our own file.
  const values = load(read('examples/envoy-gateway/install-values.yaml')) as {
    readonly config: {
      readonly envoyGateway: {
        readonly provider: {
          readonly kubernetes: {
            readonly rateLimitDeployment: { readonly container: { readonly image: string } };
          };
        };
        readonly rateLimit: object;
      };
    };
  };
  return { ...gatewayConfig, ...values.config.envoyGateway };
}

/** Folders and programs of a gateway without a cluster, which reads `objects.yaml`. */
function hostConfig(folder: string): object {
  const host = {
    configHome: join(folder, 'config'),
    dataHome: join(folder, 'data'),
    stateHome: join(folder, 'state'),
    runtimeDir: join(folder, 'run'),
  };
  return {
    type: 'Custom',
    custom: {
      resource: { type: 'File', file: { paths: [join(folder, 'objects.yaml')] } },
      infrastructure: { type: 'Host', host },
    },
  };
}

/** Configuration of a gateway without a cluster. */
function standaloneConfig(): StandaloneConfig {
  const config = clusterConfig();
  return {
    ...config,
    // Its access log would fill the output.
    envoyProxy: { ipFamily: 'DualStack', telemetry: { accessLog: { disable: true } } },
    extensionApis: { enableBackend: true },
    // Time for a busy machine.
    rateLimit: { ...config.rateLimit, timeout: '5s' },
  };
}

export interface StandaloneConfig {
  readonly envoyProxy: object;
  readonly [name: string]: unknown;
}

/** Makes certificates of its own authority in the folder. */
export function makeCertificates(folder: string): void {
  const args = ['certgen', '--local', '--config-home', join(folder, 'config')];
  execFileSync(findBinary('envoy-gateway'), args, { stdio: 'pipe' });
}

/** Makes certificates of its own authority; those of the limiter are in `/certs`. */
export function makeEnvoyGatewayCertificates(folder: string): void {
  makeCertificates(folder);
  cpSync(join(folder, 'config/certs/envoy-rate-limit'), '/certs', { recursive: true });
}

/** Writes the configuration of a gateway without a cluster. */
export function prepareEnvoyGateway(folder: string, ports: ServicePorts): void {
  writeStandalone(folder, toStandalone(ports), standaloneConfig());
}

/** Writes objects and configuration of a gateway without a cluster, which starts our Envoy. */
export function writeStandalone(folder: string, objects: string, config: StandaloneConfig): void {
  writeFileSync(join(folder, 'objects.yaml'), objects);
  const provider = { type: 'Host', host: { envoyVersion } };
  const complete = {
    ...config,
    provider: hostConfig(folder),
    envoyProxy: { ...config.envoyProxy, provider },
  };
  writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(complete));
  const envoy = join(folder, 'data/envoy-versions', envoyVersion, 'bin/envoy');
  mkdirSync(dirname(envoy), { recursive: true });
  symlinkSync(findBinary('envoy'), envoy);
}

/** Starts Envoy Gateway, which starts Envoy. */
export function startEnvoyGateway(folder: string, ready: () => Promise<void>): Promise<ServerProcess> {
  const command = findBinary('envoy-gateway');
  const args = ['server', '--config-path', join(folder, 'gateway.yaml')];
  // It reads hundreds of routes in seconds, or in minutes on a busy machine.
  return startServerProcess({ command, args, ready, readyTimeoutMs: 240_000 });
}
