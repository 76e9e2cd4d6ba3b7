import { defaultBufferBytes, minBufferBytes } from '@tollgate/grpc-server/client-buffers';
import { defaultMaxConnections } from '@tollgate/kit/grpc/listener';
import { logLevelSynonyms, logLevels } from '@tollgate/kit/logger';
import { bool, duration, int, longestTimer, oneOf, port, text } from '@tollgate/kit/settings';

const group = 'Servers';

export const serverSettings = {
  host: text({
    env: 'HOST',
    group,
    default: '0.0.0.0',
    doc: 'Address of the HTTP server (`/json`, `/healthcheck`).',
  }),
  port: port({ env: 'PORT', group, default: 8080, doc: 'TCP port of the HTTP server; 0 picks a free one.' }),
  grpcHost: text({ env: 'GRPC_HOST', group, default: '0.0.0.0', doc: 'Address of the gRPC server.' }),
  grpcPort: port({
    env: 'GRPC_PORT',
    group,
    default: 8081,
    doc: 'TCP port of the gRPC server; 0 picks a free one.',
  }),
  grpcUds: text({
    env: 'GRPC_UDS',
    group,
    default: '',
    doc: 'Path of a unix socket for the gRPC server, instead of its host and port.',
  }),
  grpcMaxConnectionAgeMs: duration({
    env: 'GRPC_MAX_CONNECTION_AGE',
    group,
    default: '24h',
    max: longestTimer,
    clamp: true,
    doc: 'Maximum age of a connection, after which it is closed gracefully (GOAWAY), with a jitter of 10 %. 0 sets no limit.',
  }),
  grpcMaxConnectionAgeGraceMs: duration({
    env: 'GRPC_MAX_CONNECTION_AGE_GRACE',
    group,
    default: '1h',
    max: longestTimer,
    clamp: true,
    doc: 'Grace period for in-flight requests after the maximum connection age. 0 sets no limit.',
  }),
  grpcMaxConnections: int({
    env: 'GRPC_MAX_CONNECTIONS',
    group,
    default: defaultMaxConnections,
    min: 0,
    doc: 'Maximum number of connections of the gRPC server. When it is reached, each new connection closes another: one without calls first, then the one that was idle longest. An idle connection uses about 26 kB. 0 sets no limit.',
  }),
  clientBufferMaxBytes: int({
    env: 'CLIENT_BUFFER_MAX_BYTES',
    group,
    default: defaultBufferBytes,
    min: minBufferBytes,
    doc: 'Maximum memory for requests that have not arrived completely and for replies that clients do not read, of all ports together. One client address may use half of it, one connection an eighth. Beyond it, the largest holders get RESOURCE_EXHAUSTED (gRPC) or 503 (HTTP).',
  }),
  debugHost: text({
    env: 'DEBUG_HOST',
    group,
    default: '0.0.0.0',
    doc: 'Address of the debug server. It has no authentication: keep it inside the cluster or on loopback.',
  }),
  debugPort: port({
    env: 'DEBUG_PORT',
    group,
    default: 6070,
    doc: 'TCP port of the debug server; 0 picks a free one.',
  }),
  shutdownDelayMs: duration({
    env: 'SHUTDOWN_DELAY',
    group,
    default: '0s',
    max: longestTimer,
    clamp: true,
    doc: 'Time between failing the health check and refusing new requests, for load balancers to react.',
  }),
  drainTimeoutMs: duration({
    env: 'DRAIN_TIMEOUT',
    group,
    default: '20s',
    max: longestTimer,
    clamp: true,
    doc: 'Grace period for in-flight requests after SIGTERM.',
  }),
  logLevel: oneOf(logLevels, {
    env: 'LOG_LEVEL',
    group,
    default: 'warn',
    synonyms: logLevelSynonyms,
    doc: 'Minimum log level.',
  }),
  logFormat: oneOf(['text', 'json'], {
    env: 'LOG_FORMAT',
    group,
    default: 'text',
    doc: '`json` writes an object per line with `@message`, `@timestamp` and `level`.',
  }),
};

const tlsGroup = 'TLS of the gRPC server';

export const serverTlsSettings = {
  grpcServerUseTls: bool({ env: 'GRPC_SERVER_USE_TLS', group: tlsGroup, default: false, doc: 'Serve TLS.' }),
  grpcServerTlsCert: text({
    env: 'GRPC_SERVER_TLS_CERT',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with the certificate chain; reloaded when it changes.',
  }),
  grpcServerTlsKey: text({
    env: 'GRPC_SERVER_TLS_KEY',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with its private key; reloaded when it changes.',
  }),
  grpcClientTlsCacert: text({
    env: 'GRPC_CLIENT_TLS_CACERT',
    // Envoy Gateway uses this name.
    aliases: ['GRPC_SERVER_TLS_CA_CERT'],
    group: tlsGroup,
    default: '',
    doc: 'PEM file with the certificate authorities of clients. When set, clients must present a certificate.',
  }),
  grpcClientTlsSan: text({
    env: 'GRPC_CLIENT_TLS_SAN',
    group: tlsGroup,
    default: '',
    doc: 'DNS name that client certificates must have; requires GRPC_CLIENT_TLS_CACERT.',
  }),
};
