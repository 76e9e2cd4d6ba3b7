import { lstat, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import { healthMethods } from '@tollgate/grpc-server/health';
import { GrpcServer } from '@tollgate/grpc-server/server';
import { GrpcStatus } from '@tollgate/grpc-server/status';
import { toPublicError } from '../errors.ts';
import type { Health } from '../health.ts';
import { createFailureLog, type Logger } from '../logger.ts';
import { type HandshakeReport, reportHandshakes, type TlsMaterial, type WatchedTls } from '../tls.ts';
import { healthSource } from './health.ts';
import type { PeerGuard } from './peer.ts';

/**
 * Makes room for a unix socket: removes one that a killed process left behind, which would make every later start fail.
 * Rejects when the path is in use or is no socket, and when its folder does not exist. Two processes that start at the same
 * instant on one path may still both find it free.
 *
 * @param setting What gave the path: messages begin with it.
 */
async function removeStaleSocket(path: string, setting: string): Promise<void> {
  const found = await lstat(path).catch(unlessMissing);
  if (found === undefined) {
    if ((await lstat(dirname(path)).catch(unlessMissing)) === undefined) {
      throw new Error(`${setting}: the folder of ${path} does not exist`);
    }
    return;
  }
  // Connecting to a plain file is refused too, and that file may be dear to somebody.
  if (!found.isSocket()) throw new Error(`${setting}: ${path} exists and is not a socket`);
  const refusal = await tryToConnect(path);
  if (refusal === undefined) throw new Error(`${setting}: another process listens on ${path}`);
  // Only this says that nobody listens; a full backlog (EAGAIN) or missing rights (EACCES) do not.
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

/** What the server takes. */
export interface UnaryServerDeps {
  /** Unary calls by their path. */
  readonly handlers: Readonly<Record<string, UnaryHandler>>;
  readonly health: Health;
  /** The service name of health checks. */
  readonly serviceName: string;
  /** Called at the start of every call with the name of its method; the returned function is called at its end. */
  readonly begin: (method: string) => () => void;
  /** Plaintext without it. When `mutual`, clients must present a certificate of the files' authorities. */
  readonly tls?: { readonly files: WatchedTls; readonly mutual: boolean } | undefined;
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
  /** 0 means no limit. */
  readonly maxConnectionAgeMs: number;
  /** 0 means no limit. */
  readonly maxConnectionAgeGraceMs: number;
  /** At this number the connection that was idle longest is closed for each new one; 0 sets no limit. Default 10,000. */
  readonly maxConnections?: number;
}

/** A gRPC server of unary calls. */
export interface UnaryServer {
  /** Listens; resolves with the port (0 on a Unix socket). Rejects when the address is taken; a stale socket file is not. */
  start(): Promise<number>;
  /** Sends GOAWAY and lets requests in flight end; those left when `signal` aborts are cut off. */
  stop(signal: AbortSignal): Promise<void>;
}

const unixScheme = 'unix:';

/** Makes a server for unary handlers and health checks. */
export function createUnaryServer(deps: UnaryServerDeps, options: UnaryServerOptions): UnaryServer {
  const { health, serviceName, guard, logger, tls } = deps;
  const checks = healthMethods(healthSource(health, serviceName));
  const handlers = Object.entries<UnaryHandler>({ ...deps.handlers, ...checks.unary });
  const unary = Object.fromEntries(handlers.map(([path, handler]) => [path, adapt(path, handler, deps)]));
  const logFailure = createFailureLog({ logger, message: 'gRPC connection failed' });
  const logViolation = createFailureLog({ logger, message: 'gRPC connection closed', level: 'warn' });
  const server = new GrpcServer({
    methods: { unary, streaming: checks.streaming },
    limits: {
      ...(options.maxConnections !== undefined && {
        maxConnections: options.maxConnections || Number.POSITIVE_INFINITY,
      }),
    },
    times: { maxAgeMs: options.maxConnectionAgeMs, maxAgeGraceMs: options.maxConnectionAgeGraceMs },
    ...(tls && { tls: tlsOptions(tls.files.current(), tls.mutual) }),
    refusal: ({ certificate }) =>
      guard({
        getAuthContext: () => ({
          transportSecurityType: tls ? 'ssl' : 'insecure',
          ...(certificate && { sslPeerCertificate: certificate }),
        }),
      }),
    onViolation: (_code, reason, { address }) => logViolation(new Error(reason), { peer: address }),
    onInternalError: (error) => logFailure(error, {}),
  });
  const unfollow = tls?.files.onChange((material) =>
    server.setSecureContext(tlsOptions(material, tls.mutual)),
  );
  if (tls && deps.handshakes) reportHandshakes(server.listener, deps.handshakes);

  return {
    async start() {
      const { address, addressSetting } = options;
      if (!address.startsWith(unixScheme)) {
        const { hostname, port } = new URL(`tcp://${address}`);
        return server.listen({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) });
      }
      const path = address.slice(unixScheme.length);
      await removeStaleSocket(path, addressSetting);
      return server.listen({ path });
    },
    async stop(signal) {
      await server.drain(signal);
      unfollow?.();
    },
  };
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

/** Counts a call from its start to its end; errors become statuses here, and are logged once. */
function adapt(path: string, handler: UnaryHandler, { begin, logger }: UnaryServerDeps): UnaryHandler {
  const method = path.slice(path.lastIndexOf('/') + 1);
  const logFailure = createFailureLog({ logger, message: 'call failed' });
  const fail = (error: unknown): GrpcStatus => {
    const { grpcStatus, message } = toPublicError(error);
    logFailure(error, { method });
    return new GrpcStatus(grpcStatus, message);
  };
  return (request, call) => {
    const done = begin(method);
    let reply: ReturnType<UnaryHandler>;
    try {
      reply = handler(request, call);
    } catch (error) {
      reply = fail(error);
    }
    if (!(reply instanceof Promise)) {
      done();
      return reply;
    }
    return reply.then(
      (message) => {
        done();
        return message;
      },
      (error: unknown) => {
        done();
        return fail(error);
      },
    );
  };
}
