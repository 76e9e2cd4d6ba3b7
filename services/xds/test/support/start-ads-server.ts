import { ServerCredentials } from '@grpc/grpc-js';
import { everyPeer } from '@tollgate/kit/grpc/peer';
import { Health } from '@tollgate/kit/health';
import { createLogger } from '@tollgate/kit/logger';
import { type FakeClock, fakeClock } from '@tollgate/testkit/fake-clock';
import { Registry } from 'prom-client';
import type { Test } from 'tap';
import type { LimiterClient } from '../../src/ads/limiters.ts';
import { type ClientRegistry, createClientRegistry } from '../../src/ads/limiters.ts';
import {
  type AdsServer,
  type AdsServerDeps,
  type AdsServerOptions,
  createAdsServer,
} from '../../src/ads/server.ts';
import type { Snapshot } from '../../src/catalog/snapshot.ts';
import { createSnapshotStore, type SnapshotStore } from '../../src/catalog/snapshot.ts';
import { createXdsMetrics, type XdsMetrics } from '../../src/metrics.ts';
import { type AdsTestClient, connectAds } from './ads-client.ts';

/** A running ADS server with all that it works on. */
export interface StartedAdsServer {
  readonly server: AdsServer;
  readonly port: number;
  readonly snapshots: SnapshotStore;
  readonly clients: ClientRegistry;
  readonly metrics: XdsMetrics;
  readonly clock: FakeClock;
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
  /** A connection of its own. */
  connect(): AdsTestClient;
  /** The only client there is; throws when there are none or several. */
  onlyClient(): LimiterClient;
}

/** Starts a server on a free port; stopped when the test ends. */
export async function startAdsServer(
  t: Test,
  {
    snapshot,
    options,
    ...deps
  }: Partial<AdsServerDeps> & {
    readonly snapshot?: Snapshot;
    readonly options?: Partial<AdsServerOptions>;
  } = {},
): Promise<StartedAdsServer> {
  const snapshots = createSnapshotStore();
  if (snapshot !== undefined) snapshots.set(snapshot);
  const clients = createClientRegistry();
  const metrics = createXdsMetrics(new Registry());
  const clock = fakeClock();
  const logLines: Record<string, unknown>[] = [];
  // Parsed boundary: the JSON format is one object a line.
  const write = (line: string): void => void logLines.push(JSON.parse(line) as Record<string, unknown>);
  const server = createAdsServer(
    {
      snapshots,
      clients,
      metrics,
      health: new Health(),
      credentials: ServerCredentials.createInsecure(),
      guard: everyPeer,
      logger: createLogger({ level: 'trace', format: 'json', destination: { write } }),
      nowMs: clock.now,
      ...deps,
    },
    {
      address: '127.0.0.1:0',
      maxConnectionAgeMs: 0,
      maxConnectionAgeGraceMs: 0,
      keepaliveTimeMs: 30_000,
      keepaliveTimeoutMs: 5_000,
      ...options,
    },
  );
  t.teardown(() => server.stop(AbortSignal.timeout(1_000)));
  const port = await server.start();
  return {
    server,
    port,
    snapshots,
    clients,
    metrics,
    clock,
    logLines,
    connect: () => connectAds(t, `127.0.0.1:${port}`),
    onlyClient() {
      const [client, ...others] = clients.all();
      if (client === undefined || others.length > 0) throw new Error(`${clients.size} clients`);
      return client;
    },
  };
}
