import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { findBinary, type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';
import { load, loadAll } from 'js-yaml';

const envoyVersion = '1.40.0';

/** The objects of both ways of the example. */
const commonFiles = [
  'envoy-gateway/gateway.yaml',
  'kubernetes-gateway/routes.yaml',
  'envoy-gateway/identity.yaml',
];
/** Those of the first way. */
const limitFiles = ['envoy-gateway/limits.yaml'];

const readExample = (path: string): string =>
  readFileSync(resolve(import.meta.dirname, '../../examples', path), 'utf8');

/** Ports on loopback by the names of Services. */
export type ServicePorts = Readonly<Record<string, number>>;

/**
 * The objects of the example for a gateway without a cluster: a Backend for each port of a Service.
 * Backends are in the namespace of the policies, because a gateway without a cluster does not find
 * the ReferenceGrants of policies. Windows are years, which do not end during the test.
 */
function toStandalone(files: readonly string[], ports: ServicePorts): string {
  const objects = files.flatMap((path) => loadAll(readExample(path)));
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

/** Its configuration: the rate limit service of the example's values, and no cluster. */
function toConfig(folder: string): object {
  // Parsed boundary: our own file.
  const values = load(readExample('envoy-gateway/install-values.yaml')) as {
    readonly config: { readonly envoyGateway: { readonly rateLimit: object } };
  };
  const host = {
    configHome: join(folder, 'config'),
    dataHome: join(folder, 'data'),
    stateHome: join(folder, 'state'),
    runtimeDir: join(folder, 'run'),
  };
  return {
    apiVersion: `${group}/v1alpha1`,
    kind: 'EnvoyGateway',
    gateway: { controllerName: `${group}/gatewayclass-controller` },
    provider: {
      type: 'Custom',
      custom: {
        resource: { type: 'File', file: { paths: [join(folder, 'objects.yaml')] } },
        infrastructure: { type: 'Host', host },
      },
    },
    // Its access log would fill the output.
    envoyProxy: {
      ipFamily: 'DualStack',
      provider: { type: 'Host', host: { envoyVersion } },
      telemetry: { accessLog: { disable: true } },
    },
    extensionApis: { enableBackend: true },
    // Time for a busy machine.
    rateLimit: { ...values.config.envoyGateway.rateLimit, timeout: '5s' },
  };
}

/** Writes the configuration, and certificates of Envoy Gateway's own authority to `/certs`. */
export function prepareEnvoyGateway(folder: string, ports: ServicePorts): void {
  writeFileSync(join(folder, 'objects.yaml'), toStandalone([...commonFiles, ...limitFiles], ports));
  writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(toConfig(folder)));
  const envoy = join(folder, 'data/envoy-versions', envoyVersion, 'bin/envoy');
  mkdirSync(dirname(envoy), { recursive: true });
  symlinkSync(findBinary('envoy'), envoy);
  execFileSync(findBinary('envoy-gateway'), ['certgen', '--local', '--config-home', join(folder, 'config')], {
    stdio: 'pipe',
  });
  cpSync(join(folder, 'config/certs/envoy-rate-limit'), '/certs', { recursive: true });
}

/** Takes the BackendTrafficPolicy away, and changes ports of Services. */
export function leaveLimitsToAuthServer(folder: string, ports: ServicePorts): void {
  writeFileSync(join(folder, 'objects.yaml'), toStandalone(commonFiles, ports));
}

/** Starts Envoy Gateway, which starts Envoy. */
export function startEnvoyGateway(folder: string, ready: () => Promise<void>): Promise<ServerProcess> {
  const command = findBinary('envoy-gateway');
  const args = ['server', '--config-path', join(folder, 'gateway.yaml')];
  return startServerProcess({ command, args, ready });
}
