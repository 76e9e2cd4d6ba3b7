import { ServerCredentials } from '@grpc/grpc-js';
import { everyPeer } from '@tollgate/kit/grpc/peer';
import { Health } from '@tollgate/kit/health';
import { type FakeClock, fakeClock } from '@tollgate/testkit/fake-clock';
import type { Test } from 'tap';
import { type Client, ClientRegistry } from '../../src/ads/clients.ts';
import { AdsServer, type AdsServerOptions } from '../../src/ads/server.ts';
import { type CommonSnapshot, SnapshotStore } from '../../src/catalog/snapshot.ts';
import type { Context } from '../../src/context.ts';
import type { XdsMetrics } from '../../src/metrics.ts';
import { type AdsTestClient, connectAds } from './ads-client.ts';
import { recordingContext } from './recording-logger.ts';

/** A running ADS server and its parts. */
export interface StartedAdsServer {
  readonly server: AdsServer;
  readonly port: number;
  readonly snapshots: SnapshotStore;
  readonly limiters: ClientRegistry;
  readonly metrics: XdsMetrics;
  readonly clock: FakeClock;
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
  /** A new connection. */
  connect(): AdsTestClient;
  /** Throws unless exactly one limiter is connected. */
  onlyLimiter(): Client;
}

/** Starts a server on a free port; stopped when the test ends. */
export async function startAdsServer(
  t: Test,
  {
    snapshot,
    trace,
    ...options
  }: Partial<AdsServerOptions> & Pick<Context, 'trace'> & { readonly snapshot?: CommonSnapshot } = {},
): Promise<StartedAdsServer> {
  const clock = fakeClock();
  const snapshots = new SnapshotStore(clock.now);
  if (snapshot !== undefined) snapshots.set(snapshot);
  const limiters = new ClientRegistry();
  const { context, lines: logLines } = recordingContext({ nowMs: clock.now, trace });
  const server = new AdsServer(context, {
    snapshots,
    limiters,
    health: new Health(),
    credentials: ServerCredentials.createInsecure(),
    guard: everyPeer,
    address: '127.0.0.1:0',
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
    keepaliveTimeMs: 30_000,
    keepaliveTimeoutMs: 5_000,
    ...options,
  });
  t.teardown(() => server.stop(AbortSignal.timeout(1_000)));
  const port = await server.start();
  return {
    server,
    port,
    snapshots,
    limiters,
    metrics: context.metrics,
    clock,
    logLines,
    connect: () => connectAds(t, `127.0.0.1:${port}`),
    onlyLimiter() {
      const [limiter, ...others] = limiters.all();
      if (limiter === undefined || others.length > 0) throw new Error(`${limiters.size} limiters`);
      return limiter;
    },
  };
}
