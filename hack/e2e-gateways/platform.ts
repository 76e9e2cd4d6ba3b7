import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startEcho } from '@tollgate/testkit/echo';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startPostgres } from '@tollgate/testkit/postgres';
import type { ServerProcess } from '@tollgate/testkit/processes';
import { startRedis } from '@tollgate/testkit/redis';
import {
  type AuthServer,
  type RateLimitService,
  startAuthServer,
  startRateLimitService,
  startXdsServer,
} from '@tollgate/testkit/services';
import { dump } from 'js-yaml';
import { exampleFile, exampleObject, parseConfig, readExamples } from '../charts/support/manifests.ts';
import { type ClusterResult, runInCluster } from './cluster.ts';
import {
  addCors,
  leaveLimitsToAuthServer,
  makeEnvoyGatewayCertificates,
  prepareEnvoyGateway,
  startEnvoyGateway,
} from './envoy-gateway.ts';
import { createLimiterNetwork, gatewayAddress, hasRules, startLimiter } from './limiter-network.ts';

/** A part that can be started again. */
interface Part {
  logs(): string;
  restart(): Promise<void>;
}

/** All that runs. It ends with this process. */
interface Platform {
  /** Result of Envoy Gateway in a cluster, before all else. */
  readonly cluster: ClusterResult;
  /** URL of the Gateway. */
  readonly url: string;
  readonly auth: AuthServer;
  readonly parts: Readonly<Record<'auth server' | 'limiter' | 'Redis' | 'Envoy Gateway', Part>>;
  /** Adds a policy with CORS to the route of the shop. */
  addCors(mergeType: 'merged' | 'replacing'): void;
  /** Goes on with the second way of the example: limits of a RateLimitConfig by the auth server. */
  leaveLimitsToAuthServer(): Promise<void>;
}

export async function startPlatform(): Promise<Platform> {
  const folder = temporaryFolder();
  const limiterNetwork = await createLimiterNetwork(folder.path);
  makeEnvoyGatewayCertificates(folder.path);
  const cluster = await runInCluster(folder.path);
  const redis = await startPart(() => startCounters(folder.path));
  const database = await startPostgres();
  const { url: databaseUrl } = await database.createDatabase();
  const routes = await writeRoutes(folder.path, 'access');
  const [echo, auth] = await Promise.all([
    startEcho(),
    startAuthServer(databaseUrl, { SVC_EXT_AUTHZ_ROUTES_FILE: routes }),
  ]);
  const url = `http://${gatewayAddress}`;
  const ports = {
    shop: echo.port,
    'tollgate-auth': Number(new URL(auth.url).port),
    'tollgate-auth-headless': auth.extAuthzPort,
  };
  prepareEnvoyGateway(folder.path, ports);
  const gateway = await startPart(() => startEnvoyGateway(folder.path, () => isDenied(`${url}/health`)));
  const limiter = await startPart(() => startLimiter(limiterNetwork));
  await awaitUntil(hasRules, { what: 'the rules of Envoy Gateway' });
  const authPart = {
    logs: auth.logs,
    async restart() {
      await auth.stop();
      await auth.restart();
    },
  };
  return {
    cluster,
    url,
    auth,
    parts: { 'auth server': authPart, limiter, Redis: redis, 'Envoy Gateway': gateway },
    addCors: (mergeType) => addCors(folder.path, ports, mergeType),
    async leaveLimitsToAuthServer() {
      const limits = await startLimits(folder.path);
      const limiting = await startAuthServer(databaseUrl, {
        SVC_EXT_AUTHZ_ROUTES_FILE: await writeRoutes(folder.path, 'access-and-limits'),
        SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: limits.address,
      });
      leaveLimitsToAuthServer(folder.path, { ...ports, 'tollgate-auth-headless': limiting.extAuthzPort });
    },
  };
}

async function startPart(start: () => Promise<ServerProcess>): Promise<Part> {
  let server = await start();
  return {
    logs: () => server.logs(),
    async restart() {
      await server.stop();
      server = await start();
    },
  };
}

/** Counters outlive a restart. */
function startCounters(folder: string): Promise<ServerProcess> {
  const data = join(folder, 'redis');
  mkdirSync(data, { recursive: true });
  const listen = ['--bind', '127.0.0.1', gatewayAddress, '--protected-mode', 'no'];
  const persist = ['--dir', data, '--appendonly', 'yes'];
  return startRedis({ port: 6379, args: [...listen, ...persist] });
}

/** Writes route rules of the shop. Returns their file. */
async function writeRoutes(folder: string, name: string): Promise<string> {
  const object = exampleObject(await readExamples(), `examples/shop/${name}.yaml`, 'ConfigMap');
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, dump(parseConfig(object, 'routes.yaml')));
  return file;
}

/** Starts a rate limit service with the RateLimitConfig of the shop. */
async function startLimits(folder: string): Promise<RateLimitService> {
  const limits = exampleFile(await readExamples(), 'examples/shop/limits.yaml').text;
  mkdirSync(join(folder, 'limits'));
  writeFileSync(join(folder, 'limits/shop.yaml'), limits.replaceAll('unit: Minute', 'unit: Year'));
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: join(folder, 'limits') });
  return startRateLimitService({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: xds.address,
  });
}

/** Passes when the auth server decides about requests, without one that counts. */
async function isDenied(url: string): Promise<void> {
  const { status } = await fetch(url, { signal: AbortSignal.timeout(1_000) });
  if (status !== 403) throw new Error(`${url} answered ${status}`);
}
