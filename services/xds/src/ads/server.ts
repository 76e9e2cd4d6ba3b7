import { Server, type ServerCredentials } from '@grpc/grpc-js';
import { HealthService, healthDefinition } from '@tollgate/kit/grpc/health';
import { bidiStreamingMethod } from '@tollgate/kit/grpc/library';
import { GrpcListener } from '@tollgate/kit/grpc/listener';
import type { PeerGuard } from '@tollgate/kit/grpc/peer';
import type { Health } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import { monotonicNow } from '@tollgate/kit/time';
import { scheduleByTimer } from '../catalog/pipeline.ts';
import type { Snapshot, SnapshotStore } from '../catalog/snapshot.ts';
import type { XdsMetrics } from '../metrics.ts';
import type { PipelineTrace } from '../tracing.ts';
import type { TokenGuard } from './bearer-tokens.ts';
import { createDeltaProtocol, deltaAggregatedResourcesPath } from './delta.ts';
import type { ClientRegistry } from './limiters.ts';
import {
  maxBytesInFlight,
  maxRequestBytes,
  maxStreams,
  maxStreamsPerConnection,
  type StreamEnd,
  sendTimeoutMs,
  stallMs,
  streamEnds,
  tooManyOfPeer,
  unauthenticated,
} from './limits.ts';
import { createResponseCache } from './responses.ts';
import { SendGate } from './send-gate.ts';
import { createSotwProtocol, streamAggregatedResourcesPath } from './sotw.ts';
import { type AdsCall, type AdsStream, hostOf, serveAdsStream } from './stream.ts';
import type { AdsProtocol, AdsRequest } from './subscription.ts';

/** Logs that a stream was refused, or ended for what its client did. */
export type LogRefusal = (refusal: {
  readonly peer: string;
  /** Empty when it is not known. */
  readonly node: string;
  /** What the client was told. */
  readonly reason: string;
}) => void;

const intervalMs = 1_000;

/**
 * Makes a log of refusals that writes one line a second at most, with how many it withheld since the one before: a client
 * with a wrong token comes back for as long as it runs, and there may be hundreds.
 */
export function createRefusalLog({
  logger,
  nowMs,
}: {
  readonly logger: Logger;
  readonly nowMs: () => number;
}): LogRefusal {
  let lastMs = Number.NEGATIVE_INFINITY;
  let withheld = 0;
  return (refusal) => {
    // A clock that was set back must not silence the log.
    if (Math.abs(nowMs() - lastMs) < intervalMs) {
      withheld += 1;
      return;
    }
    logger.warn({ ...refusal, withheld }, 'stream refused');
    lastMs = nowMs();
    withheld = 0;
  };
}

/** What the server takes. */
export interface AdsServerDeps {
  readonly snapshots: SnapshotStore;
  readonly clients: ClientRegistry;
  readonly health: Health;
  readonly credentials: ServerCredentials;
  readonly guard: PeerGuard;
  readonly metrics: XdsMetrics;
  readonly logger: Logger;
  /** Undefined when nothing is traced. */
  readonly trace?: PipelineTrace | undefined;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Checks the `authorization` of ADS calls; without it none is needed. Health checks need none in any case. */
  readonly tokens?: TokenGuard;
}

/** Where and how it listens. */
export interface AdsServerOptions {
  /** `host:port`. */
  readonly address: string;
  /** Age at which a connection is told to go away, ±10 % at random; 0 lets it live for ever. */
  readonly maxConnectionAgeMs: number;
  /** How long its streams may then go on before they are cut; 0 for ever. */
  readonly maxConnectionAgeGraceMs: number;
  /** A connection that has been silent for that long is pinged; 0 never. */
  readonly keepaliveTimeMs: number;
  /** A ping not answered in that time ends the connection. */
  readonly keepaliveTimeoutMs: number;
  /** How long a client may take to read a response. Default one minute. */
  readonly sendTimeoutMs?: number;
  /** How long it may take while others wait. Default two seconds. */
  readonly stallMs?: number;
  /** Bytes that wait for clients to read them. Default 256 MiB. */
  readonly maxBytesInFlight?: number;
  /** Streams, and connections, of one address; 0 for as many as it likes. Default 0. */
  readonly maxStreamsPerPeer?: number;
}

/** An aggregated discovery server. */
export interface AdsServer {
  /** Listens; resolves with the port. Rejects when the address is taken. */
  start(): Promise<number>;
  /** Sends GOAWAY and ends all streams, so that clients go elsewhere; connections left when `signal` aborts are cut. */
  stop(signal: AbortSignal): Promise<void>;
}

/**
 * Makes a server of envoy.service.discovery.v3.AggregatedDiscoveryService for RateLimitConfig, and of grpc.health.v1 under
 * the name `xds`. Nothing is answered before there is a snapshot: an empty one would wipe every limit of a client.
 */
export function createAdsServer(deps: AdsServerDeps, options: AdsServerOptions): AdsServer {
  const { snapshots, metrics, logger, nowMs } = deps;
  const server = new Server(channelOptions(options));
  const listener = new GrpcListener(server, logger, {
    maxConnectionsPerAddress: options.maxStreamsPerPeer ?? 0,
  });
  const cache = createResponseCache();
  const gate = new SendGate({
    maxBytes: options.maxBytesInFlight ?? maxBytesInFlight,
    stallMs: options.stallMs ?? stallMs,
    now: monotonicNow,
    schedule: scheduleByTimer,
  });
  const logRefusal = createRefusalLog({ logger, nowMs });
  const streams = new Set<AdsStream>();
  const streamsOfPeer = new Map<string, number>();
  const inForceMs = new WeakMap<Snapshot, number>();
  let opened = 0;
  let stopping = false;

  function serve<Exchange, Request extends AdsRequest, Reply>(
    protocol: AdsProtocol<Exchange, Request, Reply>,
  ) {
    return (call: AdsCall): void => {
      const refusal = refusalOf(call);
      if (refusal !== undefined) {
        refuse(call, refusal);
        return;
      }
      opened += 1;
      const peer = hostOf(call.getPeer());
      countStreams(peer, 1);
      const stream = serveAdsStream(call, String(opened), protocol, {
        ...deps,
        cache,
        gate,
        logRefusal,
        sendTimeoutMs: options.sendTimeoutMs ?? sendTimeoutMs,
        inForceSinceMs: (snapshot) => inForceMs.get(snapshot),
        onClose: () => {
          countStreams(peer, -1);
          streams.delete(stream);
        },
      });
      streams.add(stream);
    };
  }

  function refusalOf(call: AdsCall): StreamEnd | undefined {
    if (stopping) return streamEnds.stopping;
    const problem = deps.guard(call) ?? deps.tokens?.(call.metadata.get('authorization')[0]?.toString());
    if (problem !== undefined) return unauthenticated(problem);
    const { maxStreamsPerPeer = 0 } = options;
    const ofPeer = streamsOfPeer.get(hostOf(call.getPeer())) ?? 0;
    if (maxStreamsPerPeer > 0 && ofPeer >= maxStreamsPerPeer) return tooManyOfPeer(maxStreamsPerPeer);
    return streams.size >= maxStreams ? streamEnds.tooManyStreams : undefined;
  }

  function countStreams(peer: string, change: number): void {
    const count = (streamsOfPeer.get(peer) ?? 0) + change;
    if (count === 0) streamsOfPeer.delete(peer);
    else streamsOfPeer.set(peer, count);
  }

  function refuse(call: AdsCall, { code, details, reason }: StreamEnd): void {
    if (reason !== undefined) metrics.refusedStreams.inc({ reason });
    logRefusal({ peer: call.getPeer(), node: '', reason: details });
    call.emit('error', { code, details });
  }

  server.addService(
    {
      StreamAggregatedResources: bidiStreamingMethod(streamAggregatedResourcesPath),
      DeltaAggregatedResources: bidiStreamingMethod(deltaAggregatedResourcesPath),
    },
    {
      StreamAggregatedResources: serve(createSotwProtocol(cache)),
      DeltaAggregatedResources: serve(createDeltaProtocol(cache)),
    },
  );
  const healthService = new HealthService({
    health: deps.health,
    serviceName: 'xds',
    guard: deps.guard,
    beginCheck: () => () => undefined,
  });
  server.addService(healthDefinition, healthService.implementation);
  const unsubscribe = snapshots.onChange((snapshot) => {
    inForceMs.set(snapshot, nowMs());
    for (const stream of streams) stream.push();
  });

  return {
    start: () =>
      listener.listen(options.address, deps.credentials, {
        logger,
        listener: 'ads',
        onFailure: metrics.tls.handshakeFailures('ads'),
      }),
    stop(signal) {
      stopping = true;
      unsubscribe();
      return listener.shutDown(signal, () => {
        healthService.endWatches();
        for (const stream of [...streams]) stream.end(streamEnds.stopping);
      });
    },
  };
}

function channelOptions(options: AdsServerOptions): ConstructorParameters<typeof Server>[0] {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs, keepaliveTimeMs, keepaliveTimeoutMs } = options;
  return {
    'grpc.max_receive_message_length': maxRequestBytes,
    // As large as the rules are: the client bounds what it takes.
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': maxStreamsPerConnection,
    // Books every stream of every connection, for a debugging service that is not served here.
    'grpc.enable_channelz': 0,
    ...(keepaliveTimeMs > 0
      ? { 'grpc.keepalive_time_ms': keepaliveTimeMs, 'grpc.keepalive_timeout_ms': keepaliveTimeoutMs }
      : {}),
    ...(maxConnectionAgeMs > 0 ? { 'grpc.max_connection_age_ms': maxConnectionAgeMs } : {}),
    ...(maxConnectionAgeGraceMs > 0 ? { 'grpc.max_connection_age_grace_ms': maxConnectionAgeGraceMs } : {}),
  };
}
