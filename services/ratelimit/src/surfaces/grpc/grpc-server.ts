import {
  Server,
  type ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { toPublicError } from '@tollgate/kit/errors';
import { createHealthService, healthDefinition } from '@tollgate/kit/grpc/health-service';
import type { PeerGuard } from '@tollgate/kit/grpc/peer-guard';
import { unaryMethod } from '@tollgate/kit/grpc/raw-method';
import type { Health } from '@tollgate/kit/health';
import type { Logger } from '@tollgate/kit/logger';
import { createFailureLog } from '../failure-log.ts';
import type { ServerStats } from './server-stats.ts';
import { removeStaleSocket } from './stale-socket.ts';
import type { CallContext, UnaryHandler } from './unary-handler.ts';

/** What the server takes. */
export interface GrpcServerDeps {
  /** Unary calls by their path. */
  readonly handlers: Readonly<Record<string, UnaryHandler>>;
  readonly health: Health;
  readonly stats: ServerStats;
  readonly credentials: ServerCredentials;
  readonly guard: PeerGuard;
  readonly logger: Logger;
}

/** Where and how it listens. */
export interface GrpcServerOptions {
  /** `host:port` or `unix:/path`. */
  readonly address: string;
  /** 0 lets connections live for ever. */
  readonly maxConnectionAgeMs: number;
  /** 0 waits for ever. */
  readonly maxConnectionAgeGraceMs: number;
}

/** A gRPC server. */
export interface GrpcServer {
  /** Listens; resolves with the port (0 on a unix socket). Rejects when the address is taken; a dead socket file is not. */
  start(): Promise<number>;
  /** Sends GOAWAY and lets requests in flight end; those left when `signal` aborts are cut off. */
  stop(signal: AbortSignal): Promise<void>;
}

/**
 * Largest message taken in, as for `/json`. Envoy's requests are a few hundred bytes; decoding four times as much, all
 * of it empty descriptors, was seen to take half a second and 200 MB.
 */
const maxRequestBytes = 1024 * 1024;

/**
 * Calls in flight on one connection; a client that wants more opens another, as Envoy does. With the bound on messages
 * it limits what one connection can make us hold of requests that never end and replies that nobody reads.
 */
const maxStreamsPerConnection = 1_000;

const unixScheme = 'unix:';

/** Makes a server on @grpc/grpc-js for unary handlers and health. */
export function createGrpcServer(deps: GrpcServerDeps, options: GrpcServerOptions): GrpcServer {
  const server = new Server({
    'grpc.max_receive_message_length': maxRequestBytes,
    'grpc.max_concurrent_streams': maxStreamsPerConnection,
    // Books every stream of every connection, for a debugging service that is not served here.
    'grpc.enable_channelz': 0,
    ...(options.maxConnectionAgeMs > 0 ? { 'grpc.max_connection_age_ms': options.maxConnectionAgeMs } : {}),
    ...(options.maxConnectionAgeGraceMs > 0
      ? { 'grpc.max_connection_age_grace_ms': options.maxConnectionAgeGraceMs }
      : {}),
  });
  for (const [path, handler] of Object.entries(deps.handlers)) {
    const method = path.slice(path.lastIndexOf('/') + 1);
    server.addService({ [method]: unaryMethod(path) }, { [method]: adapt(method, handler, deps) });
  }
  const healthService = createHealthService({
    health: deps.health,
    serviceName: 'ratelimit',
    guard: deps.guard,
    beginCheck: () => deps.stats.begin('Check'),
  });
  server.addService(healthDefinition, healthService.implementation);

  return {
    async start() {
      const { address } = options;
      if (address.startsWith(unixScheme)) await removeStaleSocket(address.slice(unixScheme.length));
      return new Promise((resolve, reject) => {
        server.bindAsync(address, deps.credentials, (error, port) =>
          error === null ? resolve(port) : reject(error),
        );
      });
    },
    stop(signal) {
      return new Promise((resolve) => {
        const force = (): void => server.forceShutdown();
        signal.addEventListener('abort', force, { once: true });
        healthService.endWatches();
        server.tryShutdown(() => {
          signal.removeEventListener('abort', force);
          resolve();
        });
      });
    },
  };
}

function adapt(method: string, handler: UnaryHandler, { stats, guard, logger }: GrpcServerDeps) {
  const logFailure = createFailureLog({ logger, message: 'call failed' });
  return (call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>): void => {
    const refusal = guard(call);
    if (refusal !== undefined) {
      callback({ code: status.UNAUTHENTICATED, details: refusal });
      return;
    }
    const done = stats.begin(method);
    const context: CallContext = { header: (name) => call.metadata.get(name)[0]?.toString() };
    handler(call.request, context)
      .then(
        (reply) => callback(null, reply),
        (error: unknown) => {
          const { grpcStatus, message } = toPublicError(error);
          logFailure(error, { method });
          callback({ code: grpcStatus, details: message });
        },
      )
      .finally(done);
  };
}
