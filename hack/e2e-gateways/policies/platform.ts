import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { temporaryFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { startPostgres } from '@tollgate/testkit/postgres';
import {
  type AuthServer,
  startAuthServer,
  startRateLimitService,
  startXdsServer,
} from '@tollgate/testkit/services';
import { type ExampleFile, exampleFile, readExamples } from '../../charts/support/manifests.ts';
import { applyServices, startCluster, startInCluster } from '../cluster.ts';
import { gatewayConfig, makeCertificates } from '../envoy-gateway.ts';
import { createLimiterNetwork, gatewayAddress } from '../limiter-network.ts';
import { startStock } from './grpc-route.ts';
import { envoyProxy, readProxy, startProxy } from './proxy.ts';

/** All that runs. It ends with this process. */
interface PolicyPlatform {
  readonly kube: KubeApiserver;
  readonly auth: AuthServer;
  /** Applies a file of the examples, changed for the test. */
  applyExample(path: string, change?: (text: string) => string): Promise<void>;
  logs(): readonly (readonly [name: string, text: string])[];
}

/**
 * Starts an API server, Envoy Gateway, its Envoy, and the services, with the Gateway, the routes
 * and the SecurityPolicy of the example.
 */
export async function startPolicyPlatform(): Promise<PolicyPlatform> {
  const folder = temporaryFolder().path;
  const inside = await createLimiterNetwork(folder);
  makeCertificates(folder);
  // Where Envoy Gateway expects its own.
  cpSync(`${folder}/config/certs/envoy-gateway`, '/certs', { recursive: true });
  const examples = await readExamples();
  const kube = await startCluster(folder);
  const applyExample = (path: string, change = (text: string) => text) =>
    kube.apply(change(forTest(exampleFile(examples, path))));

  const databaseUrl = (await (await startPostgres()).createDatabase()).url;
  const xds = await startXdsServer(xdsSettings(kube));
  const limiter = await startRateLimitService({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: xds.address,
  });
  await kube.kubectl(['create', 'namespace', 'shop']);
  for (const path of ['envoy-gateway/gateway', 'envoy-gateway/identity', 'kubernetes-gateway/routes'])
    await applyExample(`examples/${path}.yaml`);
  const auth = await startAuthServer(databaseUrl, {
    SVC_API_HOST: '0.0.0.0',
    SVC_EXT_AUTHZ_HOST: '0.0.0.0',
    SVC_EXT_AUTHZ_POLICY_SERVER: xds.address,
    SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '5s',
  });
  await applyServices(kube, [
    { name: 'shop', namespace: 'shop', port: 8080, targetPort: await startShop() },
    { name: 'stock', namespace: 'shop', port: 9000, targetPort: await startStock() },
    { name: 'tollgate-auth', namespace: 'tollgate', port: 9002, targetPort: Number(new URL(auth.url).port) },
    { name: 'tollgate-auth-headless', namespace: 'tollgate', port: 9001, targetPort: auth.extAuthzPort },
  ]);
  const gateway = await startInCluster(kube, folder, {
    config: { ...gatewayConfig, envoyProxy, provider: { type: 'Kubernetes' } },
    ready: async () => void (await readProxy(kube)),
  });
  const proxy = await startProxy(await readProxy(kube), { folder, inside });
  const parts = { 'Envoy Gateway': gateway, Envoy: proxy, xds, limiter, 'auth server': auth };
  return {
    kube,
    auth,
    applyExample,
    logs: () => Object.entries(parts).map(([name, part]) => [name, part.logs()]),
  };
}

/** Windows do not end during the test, and a busy machine has time. */
const forTest = ({ text }: ExampleFile): string =>
  text.replaceAll('per: Minute', 'per: Year').replaceAll('timeout: 500ms', 'timeout: 5s');

/** As the chart sets them, with an election that is quick. */
const xdsSettings = (kube: KubeApiserver) => ({
  XDS_SOURCE: 'kubernetes',
  XDS_AUTH_SERVICES: 'tollgate/tollgate-auth-headless,tollgate/tollgate-auth',
  KUBECONFIG: kube.kubeconfigFile,
  POD_NAME: 'tollgate-xds-0',
  XDS_LEASE_NAMESPACE: 'default',
  XDS_LEASE_DURATION: '3s',
  XDS_LEASE_RENEW_DEADLINE: '2s',
  XDS_LEASE_RETRY_PERIOD: '500ms',
});

/** The application behind the Gateway. Returns its port. */
async function startShop(): Promise<number> {
  const server = createServer((_request, response) => response.end());
  server.listen(0, gatewayAddress);
  await once(server, 'listening');
  // It listens on TCP.
  return (server.address() as AddressInfo).port;
}
