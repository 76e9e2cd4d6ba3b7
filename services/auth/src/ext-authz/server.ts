import { createSanGuard, everyPeer } from '@tollgate/kit/grpc/peer';
import { createUnaryServer, type UnaryServer } from '@tollgate/kit/grpc/unary-server';
import type { Health } from '@tollgate/kit/health';
import type { HttpServer } from '@tollgate/kit/http-server';
import type { Logger } from '@tollgate/kit/logger';
import type { Tracing } from '@tollgate/kit/telemetry';
import { hostAndPort } from '@tollgate/kit/text';
import { createTlsMetrics, watchTlsFiles } from '@tollgate/kit/tls';
import type { Registry } from 'prom-client';
import { extAuthzSettings } from '../config/ext-authz.ts';
import type { Settings } from '../config/settings.ts';
import type { AuthorizeRequest } from './decision.ts';
import { checkPath, createGrpcCheck } from './grpc.ts';
import { createHttpCheck, createHttpCheckServer } from './http.ts';
import { observeChecks, traceGrpcCheck, traceHttpCheck } from './observability.ts';

/** What the servers take. */
export interface ExtAuthzServersDeps {
  readonly authorize: AuthorizeRequest;
  readonly health: Health;
  readonly logger: Logger;
  readonly tracing: Tracing;
  /** Absent for no metrics. */
  readonly metrics: Registry | undefined;
  readonly settings: Pick<
    Settings,
    | 'mode'
    | 'apiHost'
    | 'extAuthzHost'
    | 'extAuthzGrpcPort'
    | 'extAuthzHttpPort'
    | 'extAuthzTlsCert'
    | 'extAuthzTlsKey'
    | 'extAuthzTlsCa'
    | 'extAuthzTlsClientSan'
  >;
}

/** The servers that Envoy asks. */
export interface ExtAuthzServers {
  readonly grpc: UnaryServer;
  readonly http: HttpServer;
  /** Ends the watch of the certificates. */
  close(): void;
}

/** The name under which gRPC health checks ask for this service. */
const healthName = 'ext_authz';

/**
 * Age at which a connection is asked to close (GOAWAY). Envoy spreads its requests over the connections it has, which
 * without an end would all stay with the replicas that were there first.
 */
const maxConnectionAgeMs = 60 * 60 * 1000;
/** Time after that in which checks may end. */
const maxConnectionAgeGraceMs = 60 * 1000;

/** Makes both servers over one decision, with the same certificates. Rejects, naming the file, when these cannot be used. */
export async function createExtAuthzServers(deps: ExtAuthzServersDeps): Promise<ExtAuthzServers> {
  const { settings, logger } = deps;
  const {
    extAuthzTlsCert: certFile,
    extAuthzTlsKey: keyFile,
    extAuthzTlsCa: caFile,
    extAuthzTlsClientSan: san,
  } = settings;
  // The host of the API is loopback in development mode, whatever is set.
  const host = settings.mode === 'development' ? settings.apiHost : settings.extAuthzHost || settings.apiHost;
  const mutual = caFile !== '';
  const metrics = deps.metrics && createTlsMetrics(deps.metrics);
  const handshakes = (listener: string) => ({
    logger,
    listener,
    ...(metrics && { onFailure: metrics.handshakeFailures(listener) }),
  });
  const tls =
    certFile === ''
      ? undefined
      : await watchTlsFiles(
          { certFile, keyFile, caFile },
          { logger, onCertificate: (validity) => metrics?.setValidity('ext_authz_server', validity) },
        );
  const guard = san === '' ? everyPeer : createSanGuard(san);
  const authorize = observeChecks(deps.authorize, deps);
  return {
    grpc: createUnaryServer(
      {
        handlers: { [checkPath]: traceGrpcCheck(createGrpcCheck(authorize), deps.tracing) },
        health: deps.health,
        serviceName: healthName,
        begin: () => () => undefined,
        tls: tls && { files: tls, mutual },
        guard,
        logger,
        ...(tls && { handshakes: handshakes('ext_authz_grpc') }),
      },
      {
        address: hostAndPort(host, settings.extAuthzGrpcPort),
        addressSetting: extAuthzSettings.extAuthzGrpcPort.env,
        maxConnectionAgeMs,
        maxConnectionAgeGraceMs,
      },
    ),
    http: createHttpCheckServer(
      {
        check: traceHttpCheck(createHttpCheck(authorize), deps.tracing),
        tls: tls && { files: tls, mutual, handshakes: handshakes('ext_authz_http') },
        guard,
        logger,
      },
      { host, port: settings.extAuthzHttpPort },
    ),
    close: () => tls?.close(),
  };
}
