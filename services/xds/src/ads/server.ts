import { Server, type ServerCredentials } from '@grpc/grpc-js';
import { HealthService, healthDefinition } from '@tollgate/kit/grpc/health';
import { GrpcListener } from '@tollgate/kit/grpc/listener';
import type { PeerGuard } from '@tollgate/kit/grpc/peer';
import type { Health } from '@tollgate/kit/health';
import { monotonicNow, scheduleByTimer } from '@tollgate/kit/time';
import { rateLimitConfigType, type Snapshot, type SnapshotStore } from '../catalog/snapshot.ts';
import type { Context } from '../context.ts';
import type { BearerTokens } from './bearer-tokens.ts';
import type { ClientRegistry } from './clients.ts';
import { deltaProtocol } from './delta.ts';
import {
  type AdsExchange,
  type AdsProtocol,
  type AdsRequest,
  ResponseCache,
  sotwProtocol,
} from './exchange.ts';
import {
  maxBytesInFlight,
  maxRequestBytes,
  maxStreams,
  maxStreamsPerConnection,
  type StreamEnd,
  sendTimeoutMs,
  stallMs,
  streamEnds,
  tooManyStreamsOfPeer,
  unauthenticated,
} from './limits.ts';
import { getHost, type OpenStream, OpenStreams } from './open-streams.ts';
import { SendGate } from './send-gate.ts';
import { type AdsCall, AdsStream, adsMethod, type ServedType } from './stream.ts';

/** Where and how the server listens. */
export interface AdsListenOptions {
  /** `host:port`. */
  readonly address: string;
  /** Age at which a connection gets a GOAWAY, ±10 % at random; 0 means no limit. */
  readonly maxConnectionAgeMs: number;
  /** Grace period for its streams after that; 0 means no limit. */
  readonly maxConnectionAgeGraceMs: number;
  /** An idle connection is pinged after this time; 0 disables pings. */
  readonly keepaliveTimeMs: number;
  /** A connection whose ping is not answered in this time is closed. */
  readonly keepaliveTimeoutMs: number;
  /** Default one minute. */
  readonly sendTimeoutMs?: number;
  /** Default two seconds. */
  readonly stallMs?: number;
  /** Default 128 MiB. */
  readonly maxBytesInFlight?: number;
  /** Streams, and connections, per client address; 0 means no limit. Default 0. */
  readonly maxStreamsPerPeer?: number;
  /** Streams of the whole server. Default 10,000. */
  readonly maxStreams?: number;
}

interface EndableStream extends OpenStream {
  end(end: StreamEnd): void;
  /** Ends the stream, and drops what the client does not read. */
  cutOff(end: StreamEnd): void;
}

export interface AdsServerOptions extends AdsListenOptions {
  readonly onMatches?: ((snapshot: Snapshot, matchedRules: unknown) => void) | undefined;
  readonly snapshots: SnapshotStore;
  readonly limiters: ClientRegistry;
  /** Other types of resources by URL. Default none. */
  readonly otherTypes?: ReadonlyMap<string, ServedType>;
  readonly health: Health;
  readonly credentials: ServerCredentials;
  readonly guard: PeerGuard;
  /** Checks the `authorization` of ADS calls, but not of health checks. */
  readonly tokens?: BearerTokens | undefined;
}

/**
 * Serves envoy.service.discovery.v3.AggregatedDiscoveryService for RateLimitConfig and others, and
 * grpc.health.v1 under the name `xds`. Sends nothing before there is a snapshot: an empty response
 * would remove every limit of a client.
 */
export class AdsServer {
  readonly #context: Context;
  readonly #options: AdsServerOptions;
  readonly #listener: GrpcListener;
  readonly #healthService: HealthService;
  readonly #types: ReadonlyMap<string, ServedType>;
  readonly #gate: SendGate;
  readonly #refusals: RefusalLog;
  readonly #streams = new OpenStreams<EndableStream>();
  #opened = 0;
  #stopping: boolean = false;

  constructor(context: Context, options: AdsServerOptions) {
    this.#context = context;
    this.#options = options;
    const { snapshots, limiters, otherTypes = [] } = options;
    this.#types = new Map([
      [
        rateLimitConfigType,
        { snapshots, clients: limiters, clientNoun: 'limiter', cache: new ResponseCache() },
      ],
      ...otherTypes,
    ]);
    this.#refusals = new RefusalLog(context);
    this.#gate = new SendGate({
      maxBytes: options.maxBytesInFlight ?? maxBytesInFlight,
      stallMs: options.stallMs ?? stallMs,
      now: monotonicNow,
      schedule: scheduleByTimer,
    });
    const server = new Server(toChannelOptions(options));
    this.#listener = new GrpcListener(server, context.logger, {
      maxConnectionsPerAddress: options.maxStreamsPerPeer ?? 0,
      getStall: (connection) => this.#streams.stallOf(connection),
    });
    this.#healthService = new HealthService({
      health: options.health,
      serviceName: 'xds',
      guard: options.guard,
      beginCheck: () => () => undefined,
    });
    server.addService(healthDefinition, this.#healthService.implementation);
    server.addService(
      {
        StreamAggregatedResources: adsMethod('StreamAggregatedResources'),
        DeltaAggregatedResources: adsMethod('DeltaAggregatedResources'),
      },
      {
        StreamAggregatedResources: (call: AdsCall) => this.#serve(call, sotwProtocol),
        DeltaAggregatedResources: (call: AdsCall) => this.#serve(call, deltaProtocol),
      },
    );
  }

  /** Resolves with the port. Rejects when the address is in use. */
  start(): Promise<number> {
    const { logger, metrics } = this.#context;
    return this.#listener.listen(this.#options.address, this.#options.credentials, {
      logger,
      listener: 'ads',
      onFailure: metrics.tls.handshakeFailures('ads'),
    });
  }

  /** Sends GOAWAY and ends all streams. Aborting `signal` cuts connections. */
  stop(signal: AbortSignal): Promise<void> {
    this.#stopping = true;
    return this.#listener.shutDown(signal, () => {
      this.#healthService.endWatches();
      for (const stream of [...this.#streams]) stream.end(streamEnds.stopping);
    });
  }

  #serve<Exchange extends AdsExchange, Request extends AdsRequest, Reply>(
    call: AdsCall,
    protocol: AdsProtocol<Exchange, Request, Reply>,
  ): void {
    const end = this.#findReasonToRefuse(call);
    if (end !== undefined) {
      const { code, details } = end;
      this.#refused(call.getPeer(), '', end);
      call.emit('error', { code, details });
      return;
    }
    this.#opened += 1;
    const stream = new AdsStream(call, protocol, this.#context, {
      id: String(this.#opened),
      types: this.#types,
      gate: this.#gate,
      sendTimeoutMs: this.#options.sendTimeoutMs ?? sendTimeoutMs,
      onMatches: this.#options.onMatches,
      onRefused: (address, node, reason) => this.#refused(address, node, reason),
      onClose: () => this.#streams.remove(stream),
    });
    this.#streams.add(stream);
  }

  #findReasonToRefuse(call: AdsCall): StreamEnd | undefined {
    if (this.#stopping) return streamEnds.stopping;
    const { guard, tokens } = this.#options;
    const problem = guard(call) ?? tokens?.check(call.metadata.get('authorization')[0]?.toString());
    if (problem !== undefined) return unauthenticated(problem);
    return this.#findReachedLimit(getHost(call.getPeer()));
  }

  /** At a limit, the stream whose client has not answered for the longest time gives way. */
  #findReachedLimit(host: string): StreamEnd | undefined {
    const { maxStreamsPerPeer = 0, maxStreams: most = maxStreams } = this.#options;
    if (maxStreamsPerPeer > 0 && this.#streams.countOf(host) >= maxStreamsPerPeer) {
      const stalled = this.#streams.findStalled(host);
      if (stalled === undefined) return tooManyStreamsOfPeer(maxStreamsPerPeer);
      stalled.cutOff(streamEnds.stalled);
    } else if (this.#streams.size >= most) {
      const stalled = this.#streams.findStalled();
      if (stalled === undefined) return streamEnds.tooManyStreams;
      stalled.cutOff(streamEnds.stalled);
    }
    return undefined;
  }

  #refused(peer: string, node: string, { details, reason }: StreamEnd): void {
    if (reason !== undefined) this.#context.metrics.refusedStreams.inc({ reason });
    this.#refusals.log({ peer, node, reason: details });
  }
}

function toChannelOptions(options: AdsListenOptions): ConstructorParameters<typeof Server>[0] {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs, keepaliveTimeMs, keepaliveTimeoutMs } = options;
  return {
    'grpc.max_receive_message_length': maxRequestBytes,
    // Messages are as large as the rules: the client bounds what it accepts.
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': maxStreamsPerConnection,
    // Channelz tracks every stream of every connection, and its service is not served here.
    'grpc.enable_channelz': 0,
    ...(keepaliveTimeMs > 0
      ? { 'grpc.keepalive_time_ms': keepaliveTimeMs, 'grpc.keepalive_timeout_ms': keepaliveTimeoutMs }
      : {}),
    ...(maxConnectionAgeMs > 0 ? { 'grpc.max_connection_age_ms': maxConnectionAgeMs } : {}),
    ...(maxConnectionAgeGraceMs > 0 ? { 'grpc.max_connection_age_grace_ms': maxConnectionAgeGraceMs } : {}),
  };
}

const refusalLogIntervalMs = 1_000;

/**
 * Logs refused streams, at most one line per second with the number of lines withheld: clients with
 * a wrong token retry as long as they run, and there may be hundreds.
 */
export class RefusalLog {
  readonly #context: Pick<Context, 'logger' | 'nowMs'>;
  #lastMs = Number.NEGATIVE_INFINITY;
  #withheld = 0;

  constructor(context: Pick<Context, 'logger' | 'nowMs'>) {
    this.#context = context;
  }

  /** The node is empty when it is unknown; the reason is what the client was sent. */
  log(refusal: { readonly peer: string; readonly node: string; readonly reason: string }): void {
    const nowMs = this.#context.nowMs();
    // A clock that was set back must not silence the log.
    if (Math.abs(nowMs - this.#lastMs) < refusalLogIntervalMs) {
      this.#withheld += 1;
      return;
    }
    this.#context.logger.warn({ ...refusal, withheld: this.#withheld }, 'stream refused');
    this.#lastMs = nowMs;
    this.#withheld = 0;
  }
}
