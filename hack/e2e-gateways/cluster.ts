import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type KubeApiserver, startKubeApiserver } from '@tollgate/testkit/kube-apiserver';
import {
  findBinary,
  programEnvironment,
  type ServerProcess,
  startServerProcess,
} from '@tollgate/testkit/processes';
import { deploymentVariables } from '../charts/support/envoy-gateway.ts';
import { clusterConfig, exampleFiles } from './envoy-gateway.ts';
import { gatewayAddress, limiterPorts } from './limiter-network.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
export const namespace = 'envoy-gateway-system';

/** Configuration that Envoy Gateway makes of the example in a cluster. */
export interface ClusterResult {
  /** Conditions of policies and routes that are not True. */
  readonly refused: readonly string[];
  /** Conditions that are not True with usage.yaml, which the gateway below cannot read. */
  readonly refusedUsage: readonly string[];
  /** Image of the rate limit Deployment. */
  readonly image: string;
  /** Variables that differ from those with which the limiter is tested. */
  readonly variables: readonly string[];
}

/** Runs Envoy Gateway against an API server without nodes, with the objects of the example. */
export async function runInCluster(folder: string): Promise<ClusterResult> {
  const kube = await startCluster(folder);
  for (const path of ['examples/shop/application.yaml', ...exampleFiles]) await kube.apply(read(path));
  await applyServices(kube, [
    { name: 'tollgate-auth', namespace: 'tollgate', port: 9002 },
    { name: 'tollgate-auth-headless', namespace: 'tollgate', port: 9001 },
  ]);
  const gateway = await startInCluster(kube, folder, {
    config: clusterConfig(),
    ready: async () => {
      const { code } = await kube.kubectl(['get', 'deployment', 'envoy-ratelimit', '-n', namespace]);
      if (code !== 0) throw new Error('no rate limit Deployment');
    },
  });
  const refused = await refusedConditions(kube);
  await kube.apply(read('examples/envoy-gateway/usage.yaml'));
  const refusedUsage = await refusedConditions(kube);
  const result = { refused, refusedUsage, ...(await rateLimitDeployment(kube)) };
  await gateway.stop();
  await kube.stop();
  return result;
}

/** Starts an API server with all definitions, and what the chart of Envoy Gateway creates. */
export async function startCluster(folder: string): Promise<KubeApiserver> {
  const kube = await startKubeApiserver();
  const definitions = readdirSync(join(root, '.tools/gateway-crds')).filter((file) => /^gateway/.test(file));
  for (const file of definitions) await kube.apply(read(`.tools/gateway-crds/${file}`));
  for (const name of ['accesspolicies', 'ratelimitconfigs']) await kube.apply(read(`crds/${name}.yaml`));
  await installEnvoyGateway(kube, folder);
  await kube.kubectl(['create', 'namespace', 'tollgate']);
  return kube;
}

/** Creates Services whose endpoints are ports of this machine. */
export async function applyServices(kube: KubeApiserver, services: readonly ServicePort[]): Promise<void> {
  await kube.apply(services.map(toService).join('\n---\n'));
}

interface ClusterOptions {
  readonly config: object;
  ready(): Promise<void>;
}

/** Starts Envoy Gateway with its objects in the API server. */
export function startInCluster(
  kube: KubeApiserver,
  folder: string,
  { config, ready }: ClusterOptions,
): Promise<ServerProcess> {
  const file = join(folder, 'cluster.yaml');
  writeFileSync(file, JSON.stringify(config));
  return startServerProcess({
    command: findBinary('envoy-gateway'),
    args: ['server', '--config-path', file],
    env: programEnvironment({ KUBECONFIG: kube.kubeconfigFile, ENVOY_GATEWAY_NAMESPACE: namespace }),
    ready,
  });
}

/** Creates the objects of its chart and its certificates job that the test needs. */
async function installEnvoyGateway(kube: KubeApiserver, folder: string): Promise<void> {
  await kube.kubectl(['create', 'namespace', namespace]);
  for (const name of ['envoy', 'envoy-oidc-hmac', 'envoy-rate-limit']) {
    const files = `--from-file=${folder}/config/certs/${name}`;
    await kube.kubectl(['create', 'secret', 'generic', name, '-n', namespace, files]);
  }
  // Owners of what it creates.
  const name = 'envoy-gateway';
  await kube.kubectl(['create', 'serviceaccount', name, '-n', namespace]);
  await kube.kubectl(['create', 'deployment', name, '-n', namespace, '--image=envoy-gateway']);
  await kube.apply(toService({ name, namespace, port: 18000 }));
}

interface ServicePort {
  readonly name: string;
  readonly namespace: string;
  readonly port: number;
  /** Port of the endpoint. Default: `port`. */
  readonly targetPort?: number | undefined;
}

/** A Service with an endpoint that is ready. */
function toService({ name, namespace: of, port, targetPort = port }: ServicePort): string {
  const metadata = { name, namespace: of, labels: { 'kubernetes.io/service-name': name } };
  const endpoints = [{ addresses: [gatewayAddress], conditions: { ready: true } }];
  const slice = { addressType: 'IPv4', ports: [{ port: targetPort }], endpoints };
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port }] } },
    { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, ...slice },
  ]
    .map((object) => JSON.stringify(object))
    .join('\n---\n');
}

interface ObjectWithStatus {
  readonly metadata: { readonly generation: number };
  /** `ancestors` of policies, `parents` of routes. */
  readonly status?: Readonly<Record<string, readonly { readonly conditions: readonly Condition[] }[]>>;
}

interface Condition {
  readonly observedGeneration: number;
  readonly type: string;
  readonly status: string;
  readonly message: string;
}

async function refusedConditions(kube: KubeApiserver): Promise<string[]> {
  const refused: string[] = [];
  for (const kind of ['securitypolicy', 'backendtrafficpolicy', 'httproute']) {
    let conditions: readonly Condition[] = [];
    await awaitUntil(
      async () => {
        const { stdout } = await kube.kubectl(['get', kind, 'shop', '-n', 'shop', '-o', 'json']);
        // Parsed boundary: kubectl's own JSON.
        const { metadata, status = {} } = JSON.parse(stdout) as ObjectWithStatus;
        conditions = Object.values(status).flatMap((parents) => parents.flatMap((one) => one.conditions));
        const isCurrent = (one: Condition) => one.observedGeneration === metadata.generation;
        return conditions.length > 0 && conditions.every(isCurrent);
      },
      { what: `the status of the ${kind}` },
    );
    const wrong = ({ type, status }: Condition) => type !== 'BackendsAvailable' && status !== 'True';
    refused.push(...conditions.filter(wrong).map(({ message }) => message));
  }
  return refused;
}

async function rateLimitDeployment(kube: KubeApiserver): Promise<Pick<ClusterResult, 'image' | 'variables'>> {
  const path = '{.spec.template.spec.containers[0]}';
  const args = ['get', 'deployment', 'envoy-ratelimit', '-n', namespace, '-o', `jsonpath=${path}`];
  // Parsed boundary: kubectl's own JSON.
  const { image, env } = JSON.parse((await kube.kubectl(args)).stdout) as {
    readonly image: string;
    readonly env: readonly { readonly name: string; readonly value?: string }[];
  };
  const { PORT, GRPC_PORT, DEBUG_PORT, REDIS_URL, ...tested } = deploymentVariables(limiterPorts);
  const actual = new Map(env.map(({ name, value = '' }) => [name, value]));
  actual.delete('REDIS_URL');
  const names = new Set([...actual.keys(), ...Object.keys(tested)]);
  const variables = [...names].filter((name) => actual.get(name) !== tested[name]);
  return { image, variables: variables.map((name) => `${name}=${actual.get(name)}`) };
}
