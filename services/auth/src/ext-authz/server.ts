import type { ClientBuffers } from '@tollgate/grpc-server/client-buffers';
import { createSanGuard, everyPeer, type PeerGuard } from '@tollgate/kit/grpc/peer';
import { UnaryServer } from '@tollgate/kit/grpc/unary-server';
import type { Health } from '@tollgate/kit/health';
import type { HttpServer } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import type { TlsMetrics } from '@tollgate/kit/metrics';
import type { Tracing } from '@tollgate/kit/telemetry';
import { hostAndPort } from '@tollgate/kit/text';
import { type HandshakeReport, type WatchedTls, watchTlsFiles } from '@tollgate/kit/tls';
import { extAuthzSettings } from '../config/ext-authz.ts';
import type { Settings } from '../config/settings.ts';
import type { WantedHeaders, WantedParts } from './codec.ts';
import type { Authorizer } from './decision.ts';
import { checkPath, createGrpcCheckHandler } from './grpc.ts';
import { createHttpCheckHandler, createHttpCheckServer } from './http.ts';
import type { ResourceMetadata } from './resource-metadata.ts';
import { RouteMetadataCache } from './route-metadata.ts';

export interface ExtAuthzServerOptions {
  readonly authorizer: Pick<Authorizer, 'authorize'>;
  readonly resources: Pick<ResourceMetadata, 'answer'>;
  readonly wantedHeaders: () => WantedHeaders;
  /** Whether it matters which route the gateway has matched. */
  readonly wantsRoute: () => boolean;
  readonly health: Health;
  readonly logger: Logger;
  readonly tracing: Tracing;
  /** Undefined if metrics are off. */
  readonly tlsMetrics: TlsMetrics | undefined;
  readonly buffers: ClientBuffers;
  readonly settings: Pick<
    Settings,
    | 'mode'
    | 'apiHost'
    | 'extAuthzHost'
    | 'extAuthzGrpcPort'
    | 'extAuthzHttpPort'
    | 'extAuthzHttpForwarded'
    | 'extAuthzPolicyServer'
    | 'extAuthzTlsCert'
    | 'extAuthzTlsKey'
    | 'extAuthzTlsCa'
    | 'extAuthzTlsClientSan'
  >;
}

export interface ExtAuthzServers {
  readonly grpc: UnaryServer;
  readonly http: HttpServer;
  /** Stops watching the certificates. */
  close(): void;
}

/** Service name of gRPC health checks. */
const healthName = 'ext_authz';
/**
 * Age at which connections get a GOAWAY. Envoy keeps its connections otherwise, so that new
 * replicas would get no requests.
 */
const maxConnectionAgeMs = 60 * 60 * 1000;
/** Grace period for in-flight checks after the maximum connection age. */
const maxConnectionAgeGraceMs = 60 * 1000;

interface ListenerTls {
  readonly files: WatchedTls;
  /** Whether clients must present a certificate. */
  readonly mutual: boolean;
  readonly handshakes: HandshakeReport;
}

/** Options of both servers. */
interface ListenerOptions {
  readonly host: string;
  readonly guard: PeerGuard;
  readonly tlsFor: (listener: string) => ListenerTls | undefined;
}

/**
 * Creates the gRPC and the HTTP server.
 *
 * @throws Error that names the certificate file which cannot be used.
 */
export async function createExtAuthzServers(options: ExtAuthzServerOptions): Promise<ExtAuthzServers> {
  const { settings, logger, tlsMetrics: metrics } = options;
  const { extAuthzTlsCert: certFile, extAuthzTlsKey: keyFile, extAuthzTlsCa: caFile } = settings;
  const files =
    certFile === ''
      ? undefined
      : await watchTlsFiles(
          { certFile, keyFile, caFile },
          { logger, onCertificate: (validity) => metrics?.setValidity('ext_authz_server', validity) },
        );
  const listenerOptions: ListenerOptions = {
    // Development mode always uses the loopback address of the API.
    host: settings.mode === 'development' ? settings.apiHost : settings.extAuthzHost || settings.apiHost,
    guard: settings.extAuthzTlsClientSan === '' ? everyPeer : createSanGuard([settings.extAuthzTlsClientSan]),
    tlsFor: (listener) =>
      files && {
        files,
        mutual: caFile !== '',
        handshakes: { logger, listener, ...(metrics && { onFailure: metrics.handshakeFailures(listener) }) },
      },
  };
  return {
    grpc: createGrpcServer(options, listenerOptions),
    http: createHttpServer(options, listenerOptions),
    close: () => files?.close(),
  };
}

function createGrpcServer(
  {
    authorizer,
    resources,
    wantedHeaders,
    wantsRoute,
    tracing,
    health,
    logger,
    buffers,
    settings,
  }: ExtAuthzServerOptions,
  { host, guard, tlsFor }: ListenerOptions,
): UnaryServer {
  const routes = new RouteMetadataCache();
  const wantedParts = (): WantedParts => ({
    headers: wantedHeaders(),
    route: wantsRoute() ? routes : undefined,
  });
  const tls = tlsFor('ext_authz_grpc');
  return new UnaryServer({
    handlers: {
      [checkPath]: createGrpcCheckHandler({ authorizer, resources, wantedParts }, tracing),
    },
    health,
    serviceName: healthName,
    tls: tls && { files: tls.files, mutual: tls.mutual },
    guard,
    logger,
    ...(tls && { handshakes: tls.handshakes }),
    address: hostAndPort(host, settings.extAuthzGrpcPort),
    addressSetting: extAuthzSettings.extAuthzGrpcPort.env,
    maxConnectionAgeMs,
    maxConnectionAgeGraceMs,
    buffers,
  });
}

function createHttpServer(
  { authorizer, wantedHeaders, tracing, logger, buffers, settings }: ExtAuthzServerOptions,
  { host, guard, tlsFor }: ListenerOptions,
): HttpServer {
  return createHttpCheckServer({
    host,
    port: settings.extAuthzHttpPort,
    onRequest: createHttpCheckHandler(
      {
        authorizer,
        wantedHeaders,
        forwarded: settings.extAuthzHttpForwarded,
        needsHost: settings.extAuthzPolicyServer !== '',
      },
      tracing,
    ),
    tls: tlsFor('ext_authz_http'),
    guard,
    logger,
    buffers,
  });
}
