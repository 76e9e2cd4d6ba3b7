import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { createSanGuard, everyPeer } from '@tollgate/kit/grpc/peer';
import { UnaryServer } from '@tollgate/kit/grpc/unary-server';
import { type HttpServer, nameListenSettings } from '@tollgate/kit/http-server';
import type { Lifecycle } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { hostAndPort } from '@tollgate/kit/text';
import { type TlsValidity, type WatchedTls, watchTlsFiles } from '@tollgate/kit/tls';
import type { Settings } from './config/settings.ts';
import type { Context } from './context.ts';
import { type Decide, shouldRateLimit, shouldRateLimitPath } from './decision/decide.ts';
import { createApiServer } from './http/api-server.ts';
import { createCallTimer, createLoadCounter, createTlsStats } from './metrics/server-stats.ts';
import type { Handlers } from './operator-api/operations.ts';

/** Ports in use once started; the system chooses those set to 0. */
export interface Ports {
  http: number;
  grpc: number;
  debug: number;
  /** Absent without the counter API. */
  admin?: number;
}

/** The service works without the debug server: a port that is in use does not prevent the start. */
export function addDebugServer(
  lifecycle: Lifecycle,
  { debugHost: host, debugPort: port }: Settings,
  { debug, logger, ports }: { readonly debug: HttpServer; readonly logger: Logger; readonly ports: Ports },
): void {
  lifecycle.add({
    name: 'debug server',
    async start() {
      try {
        ports.debug = await nameListenSettings(debug.start(), { host: 'DEBUG_HOST', port: 'DEBUG_PORT' });
      } catch (error) {
        logger.error({ err: error, host, port }, 'debug server not started');
      }
    },
    stop: ({ signal }) => debug.stop(signal),
  });
}

interface ServerParts {
  readonly decide: Decide;
  readonly buffers: ClientBuffers;
  readonly ports: Ports;
}

export function addApiServer(
  lifecycle: Lifecycle,
  { host, port }: Settings,
  { health, logger }: Context,
  { decide, buffers, ports }: ServerParts,
): void {
  const api = createApiServer({ decide, health, logger }, { host, port }, { buffers });
  lifecycle.add({
    name: 'HTTP server',
    async start() {
      ports.http = await nameListenSettings(api.start(), { host: 'HOST', port: 'PORT' });
    },
    stop: ({ signal }) => api.stop(signal),
  });
}

export async function addGrpcServer(
  lifecycle: Lifecycle,
  settings: Settings,
  context: Context,
  { decide, buffers, ports }: ServerParts,
): Promise<void> {
  // Created without TLS, too, so that the series exist from the start.
  const countLoad = createLoadCounter(context.stats);
  const tls = settings.grpcServerUseTls ? await watchServerTls(settings, context, countLoad) : undefined;
  const grpc = createGrpcServer(settings, context, { decide, buffers, tls });
  lifecycle.add({
    name: 'gRPC server',
    async start() {
      const listening = grpc.start();
      // Errors of a unix path name its setting already.
      ports.grpc = await (settings.grpcUds === ''
        ? nameListenSettings(listening, { host: 'GRPC_HOST', port: 'GRPC_PORT' })
        : listening);
    },
    async stop({ signal }) {
      await grpc.stop(signal);
      tls?.close();
    },
  });
}

async function watchServerTls(
  settings: Settings,
  { logger, nowMs, stats }: Context,
  countLoad: (succeeded: boolean) => void,
): Promise<WatchedTls> {
  const files = {
    certFile: settings.grpcServerTlsCert,
    keyFile: settings.grpcServerTlsKey,
    caFile: settings.grpcClientTlsCacert,
  };
  const tls = await watchTlsFiles(files, {
    logger,
    onAttempt: countLoad,
    onCertificate: (validity) => createTlsStats(stats).setValidity('grpc_server', validity),
    nowMs,
  });
  countLoad(true);
  return tls;
}

function createGrpcServer(
  settings: Settings,
  { health, logger, stats }: Context,
  { decide, buffers, tls }: Omit<ServerParts, 'ports'> & { readonly tls: WatchedTls | undefined },
): UnaryServer {
  return new UnaryServer({
    handlers: { [shouldRateLimitPath]: shouldRateLimit(decide) },
    health,
    serviceName: 'ratelimit',
    begin: createCallTimer(stats),
    tls: tls && { files: tls, mutual: settings.grpcClientTlsCacert !== '' },
    guard: settings.grpcClientTlsSan === '' ? everyPeer : createSanGuard([settings.grpcClientTlsSan]),
    logger,
    ...(tls && {
      handshakes: { logger, listener: 'grpc', onFailure: createTlsStats(stats).handshakeFailures('grpc') },
    }),
    address:
      settings.grpcUds === ''
        ? hostAndPort(settings.grpcHost, settings.grpcPort)
        : `unix:${settings.grpcUds}`,
    addressSetting: 'GRPC_UDS',
    maxConnectionAgeMs: settings.grpcMaxConnectionAgeMs,
    maxConnectionAgeGraceMs: settings.grpcMaxConnectionAgeGraceMs,
    maxConnections: settings.grpcMaxConnections,
    buffers,
  });
}

export async function addAdminServer(
  lifecycle: Lifecycle,
  settings: Settings,
  { logger, nowMs, stats }: Context,
  { handlers, buffers, ports }: Omit<ServerParts, 'decide'> & { readonly handlers: Handlers },
): Promise<void> {
  const { createAdminServer } = await import('./operator-api/server.ts');
  const { adminHost: host, adminPort: port, adminTlsCert, adminTlsKey, adminTlsClientCacert } = settings;
  const tlsStats = createTlsStats(stats);
  const files = { certFile: adminTlsCert, keyFile: adminTlsKey, caFile: adminTlsClientCacert };
  const onCertificate = (validity: TlsValidity): void => tlsStats.setValidity('admin_server', validity);
  const tls = adminTlsCert === '' ? undefined : await watchTlsFiles(files, { logger, nowMs, onCertificate });
  if (tls === undefined && settings.adminPlaintext)
    logger.warn('serving the counter API without TLS, because of ADMIN_PLAINTEXT');
  const onHandshakeFailure = tlsStats.handshakeFailures('admin');
  const admin = createAdminServer({
    settings,
    logger,
    handlers,
    tls,
    onHandshakeFailure,
    buffers,
    nowMs,
    host,
    port,
  });
  lifecycle.add({
    name: 'counter API',
    async start() {
      ports.admin = await nameListenSettings(admin.start(), { host: 'ADMIN_HOST', port: 'ADMIN_PORT' });
    },
    async stop({ signal }) {
      await admin.stop(signal);
      tls?.close();
    },
  });
}
