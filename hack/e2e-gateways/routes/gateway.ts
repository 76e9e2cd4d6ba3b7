import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { RequestMatch } from '@tollgate/policies/match/request-match';
import { findBinary, startServerProcess } from '@tollgate/testkit/processes';
import type { World } from '../../../packages/policies/test/helpers/random-worlds.ts';

const envoyVersion = '1.40.0';
const group = 'gateway.envoyproxy.io';
const gatewayApi = 'gateway.networking.k8s.io/v1';
const firstPort = 20_000;

/** Envoy Gateway without a cluster, with a listener for each world. */
export async function startRoutesGateway(folder: string, worlds: readonly World[]) {
  const accessLog = join(folder, 'access.log');
  const portOf = ({ number }: World): number => firstPort + number;
  const listeners = worlds.map((world) => ({
    ...{ name: `w${world.number}`, protocol: 'HTTP', port: portOf(world) },
    allowedRoutes: { namespaces: { from: 'All' } },
  }));
  const objects = [
    {
      ...{ apiVersion: gatewayApi, kind: 'GatewayClass', metadata: { name: 'envoy' } },
      spec: { controllerName: `${group}/gatewayclass-controller` },
    },
    {
      ...{ apiVersion: gatewayApi, kind: 'Gateway', metadata: { name: 'main', namespace: 'infra' } },
      spec: { gatewayClassName: 'envoy', listeners },
    },
    ...worlds.flatMap(toHttpRoutes),
  ];
  writeFileSync(join(folder, 'objects.yaml'), objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(createConfig(folder, accessLog)));
  const command = findBinary('envoy-gateway');
  execFileSync(command, ['certgen', '--local', '--config-home', join(folder, 'config')], { stdio: 'pipe' });
  const envoy = join(folder, 'data/envoy-versions', envoyVersion, 'bin/envoy');
  mkdirSync(dirname(envoy), { recursive: true });
  symlinkSync(findBinary('envoy'), envoy);
  const process = await startServerProcess({
    command,
    args: ['server', '--config-path', join(folder, 'gateway.yaml')],
    ready: async () => {
      for (const world of worlds) await fetch(`http://127.0.0.1:${portOf(world)}/`);
    },
  });
  return { accessLog, portOf, stop: () => process.stop() };
}

function createConfig(folder: string, accessLog: string): object {
  const host = {
    configHome: join(folder, 'config'),
    dataHome: join(folder, 'data'),
    stateHome: join(folder, 'state'),
    runtimeDir: join(folder, 'run'),
  };
  const json = { case: '%REQ(X-CASE)%', route: '%ROUTE_NAME%', path: '%REQ(:PATH)%' };
  const settings = [{ format: { type: 'JSON', json }, sinks: [{ type: 'File', file: { path: accessLog } }] }];
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
    envoyProxy: {
      provider: { type: 'Host', host: { envoyVersion } },
      telemetry: { accessLog: { settings } },
    },
  };
}

/** The rules of each route, in their order. */
function toHttpRoutes({ number, rules }: World): readonly object[] {
  const byRoute = Map.groupBy(rules, ({ route }) => route.name);
  return [...byRoute].map(([path, own]) => {
    const [namespace, name] = path.split('/');
    const [first] = own;
    return {
      ...{ apiVersion: gatewayApi, kind: 'HTTPRoute' },
      metadata: { name, namespace },
      spec: {
        parentRefs: [{ name: 'main', namespace: 'infra', sectionName: `w${number}` }],
        hostnames: first?.hosts.includes('*') === true ? undefined : first?.hosts,
        rules: own.map(({ matches }) => ({ matches: matches.map(toHttpMatch) })),
      },
    };
  });
}

function toHttpMatch({ methods, ...match }: RequestMatch): object {
  return { ...match, ...(methods && { method: methods[0] }) };
}
