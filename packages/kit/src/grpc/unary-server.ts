import { lstat, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { type HealthSource, healthMethods, ServingStatus } from '@tollgate/grpc-server/health';
import { GrpcServer } from '@tollgate/grpc-server/server';
import { GrpcStatus } from '@tollgate/grpc-server/status';
import { toPublicError } from '../errors.ts';
import type { Health } from '../health.ts';
import { FailureLog, type Logger } from '../logger.ts';
import { type HandshakeReport, reportHandshakes, type TlsMaterial, type WatchedTls } from '../tls.ts';
import type { PeerGuard } from './peer.ts';

/**
 * Removes a Unix socket that a killed process left behind, and with which every later start would
 * fail. Rejects when the path is in use or is not a socket, and when its folder does not exist. Two
 * processes that start at the same instant may both find the path free.
 *
 * @param setting The setting of the path; messages begin with it.
 */
async function removeStaleSocket(path: string, setting: string): Promise<void> {
  const found = await lstat(path).catch(unlessMissing);
  if (found === undefined) {
    if ((await lstat(dirname(path)).catch(unlessMissing)) === undefined) {
      throw new Error(`${setting}: the folder of ${path} does not exist`);
    }
    return;
  }
  // Connecting to a plain file is refused as well; it must not be deleted.
  if (!found.isSocket()) throw new Error(`${setting}: ${path} exists and is not a socket`);
  const refusal = await tryToConnect(path);
  if (refusal === undefined) throw new Error(`${setting}: another process listens on ${path}`);
  // Only ECONNREFUSED means that no process listens; a full backlog (EAGAIN) or missing rights
  // (EACCES) do not.
  if (refusal.code === 'ECONNREFUSED') await rm(path, { force: true });
  else if (refusal.code !== 'ENOENT') throw new Error(`${setting}: ${path} is in use`, { cause: refusal });
}

function tryToConnect(path: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('error', resolve);
    socket.once('connect', () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** Address and limits of a server. */
interface UnaryListenOptions {
  /** `host:port` or `unix:/path`. */
  readonly address: string;
  /** The setting of the address, for messages about a path that cannot be used. */
  readonly addressSetting: string;
  /** 0 means no limit. */
  readonly maxConnectionAgeMs: number;
  /** 0 means no limit. */
  readonly maxConnectionAgeGraceMs: number;
  /**
   * At this number, the connection idle for the longest time is closed for each new one; 0 means no
   * limit. Default 10,000.
   */
  readonly maxConnections?: number;
  /** Shared by all servers of a process; absent: a budget of its own. */
  readonly buffers?: ClientBuffers;
}

/** Options of a server. */
export interface UnaryServerOptions extends UnaryListenOptions {
  /** Unary calls by their path. */
  readonly handlers: Readonly<Record<string, UnaryHandler>>;
  readonly health: Health;
  /** The service name of health checks. */
  readonly serviceName: string;
  /**
   * Called at the start of every call with the name of its method; the returned function is called
   * at its end.
   */
  readonly begin?: (method: string) => () => void;
  /**
   * Plaintext without it. When `mutual`, clients must present a certificate of the files'
   * authorities.
   */
  readonly tls?: { readonly files: WatchedTls; readonly mutual: boolean } | undefined;
  readonly guard: PeerGuard;
  readonly logger: Logger;
  /** Reports TLS handshakes that fail. */
  readonly handshakes?: HandshakeReport;
}

const unixScheme = 'unix:';

/** Frees the connections of clients that are gone without an end: after twice this time. */
const keepaliveMs = 60_000;

/** A gRPC server of unary handlers and health checks. */
export class UnaryServer {
  readonly #options: UnaryServerOptions;
  readonly #server: GrpcServer;
  readonly #unfollowTls: (() => void) | undefined;

  constructor(options: UnaryServerOptions) {
    const { tls, handshakes } = options;
    this.#options = options;
    const server = createGrpcServer(options);
    this.#server = server;
    this.#unfollowTls = tls?.files.onChange((material) =>
      server.setSecureContext(tlsOptions(material, tls.mutual)),
    );
    if (tls && handshakes) reportHandshakes(server.listener, handshakes);
  }

  /**
   * Listens; resolves with the port (0 on a Unix socket). Replaces a stale socket file; rejects
   * when the address is taken.
   */
  async start(): Promise<number> {
    const { address, addressSetting } = this.#options;
    if (!address.startsWith(unixScheme)) {
      const { hostname, port } = new URL(`tcp://${address}`);
      const host = hostname.replace(/^\[|\]$/g, '');
      return this.#server.listen({ host, port: Number(port) });
    }
    const path = address.slice(unixScheme.length);
    await removeStaleSocket(path, addressSetting);
    return this.#server.listen({ path });
  }

  /** Sends GOAWAY and completes requests in flight; those left when `signal` aborts are cut off. */
  async stop(signal: AbortSignal): Promise<void> {
    await this.#server.drain(signal);
    this.#unfollowTls?.();
  }
}

function createGrpcServer(options: UnaryServerOptions): GrpcServer {
  const { guard, logger, tls, maxConnections } = options;
  const checks = healthMethods(healthSource(options.health, options.serviceName));
  const handlers = Object.entries<UnaryHandler>({ ...options.handlers, ...checks.unary });
  const failures = new FailureLog({ logger, message: 'gRPC connection failed' });
  const violations = new FailureLog({ logger, message: 'gRPC connection closed', level: 'warn' });
  return new GrpcServer({
    methods: {
      unary: Object.fromEntries(handlers.map(([path, handler]) => [path, adapt(path, handler, options)])),
      streaming: checks.streaming,
    },
    limits: {
      ...(maxConnections !== undefined && { maxConnections: maxConnections || Number.POSITIVE_INFINITY }),
    },
    buffers: options.buffers,
    times: {
      maxAgeMs: options.maxConnectionAgeMs,
      maxAgeGraceMs: options.maxConnectionAgeGraceMs,
      keepaliveMs,
    },
    ...(tls && { tls: tlsOptions(tls.files.current(), tls.mutual) }),
    refusal: ({ certificate }) =>
      guard({
        getAuthContext: () => ({
          transportSecurityType: tls ? 'ssl' : 'insecure',
          ...(certificate && { sslPeerCertificate: certificate }),
        }),
      }),
    onViolation: (_code, reason, { address }) => violations.log(new Error(reason), { peer: address }),
    onInternalError: (error) => failures.log(error),
  });
}

function tlsOptions({ cert, key, ca }: TlsMaterial, mutual: boolean) {
  return {
    ...(cert && { cert }),
    ...(key && { key }),
    ...(ca && { ca }),
    requestCert: mutual,
    rejectUnauthorized: mutual,
  };
}

/** Counts a call from its start to its end; errors are logged once and converted to statuses. */
function adapt(path: string, handler: UnaryHandler, { begin, logger }: UnaryServerOptions): UnaryHandler {
  const method = path.slice(path.lastIndexOf('/') + 1);
  const failures = new FailureLog({ logger, message: 'call failed' });
  const fail = (error: unknown): GrpcStatus => {
    const { grpcStatus, message } = toPublicError(error);
    failures.log(error, { method });
    return new GrpcStatus(grpcStatus, message);
  };
  return (request, call) => {
    const done = begin?.(method);
    let reply: ReturnType<UnaryHandler>;
    try {
      reply = handler(request, call);
    } catch (error) {
      reply = fail(error);
    }
    if (!(reply instanceof Promise)) {
      done?.();
      return reply;
    }
    return reply.then(
      (message) => {
        done?.();
        return message;
      },
      (error: unknown) => {
        done?.();
        return fail(error);
      },
    );
  };
}

/** The state of one service for health checks, and of the server under the empty name. */
export function healthSource(health: Health, serviceName: string): HealthSource {
  return {
    status(service) {
      if (service === '') return ServingStatus.SERVING;
      if (service !== serviceName) return ServingStatus.SERVICE_UNKNOWN;
      return health.isHealthy() ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    },
    onChange: (changed) => health.onChange(changed),
  };
}
