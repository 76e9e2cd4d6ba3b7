import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startEcho } from '@tollgate/testkit/echo';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startPostgres } from '@tollgate/testkit/postgres';
import type { ServerProcess } from '@tollgate/testkit/processes';
import { startRedis } from '@tollgate/testkit/redis';
import { type AuthServer, startAuthServer } from '@tollgate/testkit/services';
import { type ClusterResult, runInCluster } from './cluster.ts';
import { makeEnvoyGatewayCertificates, prepareEnvoyGateway, startEnvoyGateway } from './envoy-gateway.ts';
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
}

/** Access without limits, which are those of the BackendTrafficPolicy. */
const accessRules = [
  { path: '/', access: 'public' },
  { path: '/auth/**', access: 'public' },
  { path: '/health', access: 'deny' },
];

export async function startPlatform(): Promise<Platform> {
  const folder = temporaryFolder();
  const limiterNetwork = await createLimiterNetwork(folder.path);
  makeEnvoyGatewayCertificates(folder.path);
  const cluster = await runInCluster(folder.path);
  const redis = await startPart(() => startCounters(folder.path));
  const database = await startPostgres();
  const { url: databaseUrl } = await database.createDatabase();
  const routes = join(folder.path, 'routes.yaml');
  writeFileSync(routes, JSON.stringify({ routes: accessRules }));
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

/** Passes when the auth server decides about requests, without one that counts. */
async function isDenied(url: string): Promise<void> {
  const { status } = await fetch(url, { signal: AbortSignal.timeout(1_000) });
  if (status !== 403) throw new Error(`${url} answered ${status}`);
}
