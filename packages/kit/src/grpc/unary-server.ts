import {
  Server,
  type ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { toPublicError } from '../errors.ts';
import { createFailureLog } from '../failure-log.ts';
import type { Health } from '../health.ts';
import type { Logger } from '../logger.ts';
import type { HandshakeReport } from '../tls-handshakes.ts';
import { createHealthService, healthDefinition } from './health-service.ts';
import type { PeerGuard } from './peer-guard.ts';
import { unaryMethod } from './raw-method.ts';
import { defaultMaxConnections, GrpcListener } from './server-lifecycle.ts';
import { removeStaleSocket } from './stale-socket.ts';
import type { CallContext, UnaryHandler } from './unary-handler.ts';

/** What the server takes. */
export interface UnaryServerDeps {
  /** Unary calls by their path. */
  readonly handlers: Readonly<Record<string, UnaryHandler>>;
  readonly health: Health;
  /** The name under which health checks ask for the health. */
  readonly serviceName: string;
  /** Told of every call by the name of its method; the function it answers is called when the call has ended. */
  readonly begin: (method: string) => () => void;
  readonly credentials: ServerCredentials;
  readonly guard: PeerGuard;
  readonly logger: Logger;
  /** Reports TLS handshakes that fail; without it they are not noticed. */
  readonly handshakes?: HandshakeReport;
}

/** Where and how it listens. */
export interface UnaryServerOptions {
  /** `host:port` or `unix:/path`. */
  readonly address: string;
  /** The setting that the address comes from, for messages about a path that cannot be used. */
  readonly addressSetting: string;
  /** 0 lets connections live for ever. */
  readonly maxConnectionAgeMs: number;
  /** 0 waits for ever. */
  readonly maxConnectionAgeGraceMs: number;
  /** At this number the connection that was idle longest is closed for each new one; 0 sets no limit. Default 10,000. */
  readonly maxConnections?: number;
}

/** A gRPC server of unary calls. */
export interface UnaryServer {
  /** Listens; resolves with the port (0 on a unix socket). Rejects when the address is taken; a dead socket file is not. */
  start(): Promise<number>;
  /** Sends GOAWAY and lets requests in flight end; those left when `signal` aborts are cut off. */
  stop(signal: AbortSignal): Promise<void>;
}

/**
 * Largest message taken in. Envoy's requests are a few hundred bytes to a few kilobytes; decoding four times as much, all
 * of it empty descriptors of a rate limit request, was seen to take half a second and 200 MB.
 */
const maxRequestBytes = 1024 * 1024;

/**
 * Calls in flight on one connection; a client that wants more opens another, as Envoy does. With the bound on messages
 * it limits what one connection can make us hold of requests that never end and replies that nobody reads.
 */
const maxStreamsPerConnection = 1_000;

const unixScheme = 'unix:';

/** Makes a server on @grpc/grpc-js for unary handlers and health. */
export function createUnaryServer(deps: UnaryServerDeps, options: UnaryServerOptions): UnaryServer {
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
    serviceName: deps.serviceName,
    guard: deps.guard,
    beginCheck: () => deps.begin('Check'),
  });
  server.addService(healthDefinition, healthService.implementation);
  const listener = new GrpcListener(server, deps.logger, {
    maxConnections: options.maxConnections ?? defaultMaxConnections,
  });

  return {
    async start() {
      const { address, addressSetting } = options;
      if (address.startsWith(unixScheme)) {
        await removeStaleSocket(address.slice(unixScheme.length), addressSetting);
      }
      return listener.listen(address, deps.credentials, deps.handshakes);
    },
    stop: (signal) => listener.shutDown(signal, healthService.endWatches),
  };
}

function adapt(method: string, handler: UnaryHandler, { begin, guard, logger }: UnaryServerDeps) {
  const logFailure = createFailureLog({ logger, message: 'call failed' });
  return (call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>): void => {
    const refusal = guard(call);
    if (refusal !== undefined) {
      callback({ code: status.UNAUTHENTICATED, details: refusal });
      return;
    }
    const done = begin(method);
    const context: CallContext = {
      header: (name) => call.metadata.get(name)[0]?.toString(),
      timeLeftMs: () => Number(call.getDeadline()) - Date.now(),
    };
    const fail = (error: unknown): void => {
      const { grpcStatus, message } = toPublicError(error);
      logFailure(error, { method });
      callback({ code: grpcStatus, details: message });
      done();
    };
    const succeed = (reply: Uint8Array): void => {
      callback(null, reply);
      done();
    };
    let reply: ReturnType<UnaryHandler>;
    try {
      reply = handler(call.request, context);
    } catch (error) {
      fail(error);
      return;
    }
    if (reply instanceof Promise) reply.then(succeed, fail);
    else succeed(reply);
  };
}
