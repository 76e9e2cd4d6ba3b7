import { join } from 'node:path';
import type { RequestMatch } from '@tollgate/policies/match/request-match';
import type { World } from '../../../packages/policies/test/helpers/random-worlds.ts';
import { gatewayConfig, makeCertificates, startEnvoyGateway, writeStandalone } from '../envoy-gateway.ts';

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
      spec: gatewayConfig.gateway,
    },
    {
      ...{ apiVersion: gatewayApi, kind: 'Gateway', metadata: { name: 'main', namespace: 'infra' } },
      spec: { gatewayClassName: 'envoy', listeners },
    },
    ...worlds.flatMap(toHttpRoutes),
  ];
  const json = { case: '%REQ(X-CASE)%', route: '%ROUTE_NAME%', path: '%REQ(:PATH)%' };
  const settings = [{ format: { type: 'JSON', json }, sinks: [{ type: 'File', file: { path: accessLog } }] }];
  writeStandalone(folder, objects.map((one) => JSON.stringify(one)).join('\n---\n'), {
    ...gatewayConfig,
    envoyProxy: { telemetry: { accessLog: { settings } } },
  });
  makeCertificates(folder);
  const process = await startEnvoyGateway(folder, async () => {
    for (const world of worlds) await fetch(`http://127.0.0.1:${portOf(world)}/`);
  });
  return { accessLog, portOf, stop: () => process.stop() };
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
