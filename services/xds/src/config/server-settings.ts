import { logLevelSynonyms, logLevels } from '@tollgate/kit/logger';
import { bool, duration, float, int, list, longestTimer, oneOf, port, text } from '@tollgate/kit/settings';

const group = 'Servers';

/** Where the service listens, and how it stops. */
export const serverSettings = {
  grpcHost: text({
    env: 'XDS_GRPC_HOST',
    group,
    default: '',
    doc: 'Address of the ADS server. When empty 0.0.0.0 with TLS or XDS_GRPC_PLAINTEXT=true, and 127.0.0.1 otherwise.',
  }),
  grpcPort: port({
    env: 'XDS_GRPC_PORT',
    group,
    default: 18_000,
    doc: 'TCP port of the ADS server; 0 picks a free one.',
  }),
  adminHost: text({
    env: 'XDS_ADMIN_HOST',
    group,
    default: '0.0.0.0',
    doc: 'Address of the admin server (health, metrics, debug page), which has no authentication: keep it inside the cluster or on loopback.',
  }),
  adminPort: port({
    env: 'XDS_ADMIN_PORT',
    group,
    default: 8090,
    doc: 'TCP port of the admin server; 0 picks a free one.',
  }),
  shutdownDelayMs: duration({
    env: 'SHUTDOWN_DELAY',
    group,
    default: '0s',
    max: longestTimer,
    doc: 'Time between failing the health check and closing streams, so that load balancers notice first.',
  }),
  drainTimeoutMs: duration({
    env: 'DRAIN_TIMEOUT',
    group,
    default: '10s',
    max: longestTimer,
    doc: 'Time that everything has to end after SIGTERM before it is cut off.',
  }),
  logLevel: oneOf(logLevels, {
    env: 'LOG_LEVEL',
    group,
    default: 'info',
    synonyms: logLevelSynonyms,
    doc: 'Lowest level that is logged.',
  }),
  logFormat: oneOf(['text', 'json'], {
    env: 'LOG_FORMAT',
    group,
    default: 'text',
    doc: '`json` writes one object a line with `@message`, `@timestamp` and `level`.',
  }),
};

const connectionGroup = 'Connections of the ADS server';

/** How long connections live, and who may connect. */
export const connectionSettings = {
  keepaliveTimeMs: duration({
    env: 'XDS_GRPC_KEEPALIVE_TIME',
    group: connectionGroup,
    default: '30s',
    min: '1s',
    max: longestTimer,
    doc: 'How often a limiter that says nothing is asked whether it is still there.',
  }),
  keepaliveTimeoutMs: duration({
    env: 'XDS_GRPC_KEEPALIVE_TIMEOUT',
    group: connectionGroup,
    default: '5s',
    min: '100ms',
    max: longestTimer,
    doc: 'How long it has to answer before its connection is closed.',
  }),
  maxConnectionAgeMs: duration({
    env: 'XDS_GRPC_MAX_CONNECTION_AGE',
    group: connectionGroup,
    default: '30m',
    max: longestTimer,
    doc: 'Age at which a connection is asked to close (GOAWAY), ±10 % at random, so that limiters spread over replicas; 0 never.',
  }),
  maxConnectionAgeGraceMs: duration({
    env: 'XDS_GRPC_MAX_CONNECTION_AGE_GRACE',
    group: connectionGroup,
    default: '10s',
    max: longestTimer,
    doc: 'Time after that before its streams are cut; limiters keep their limits and connect anew.',
  }),
  maxStreamsPerPeer: int({
    env: 'XDS_GRPC_MAX_STREAMS_PER_PEER',
    group: connectionGroup,
    default: 100,
    min: 0,
    max: 10_000,
    doc: 'Streams, and connections, that one address may have; 0 for as many as it likes. A limiter has one. Raise it where all limiters come through one proxy.',
  }),
  tokenFile: text({
    env: 'XDS_GRPC_TOKEN_FILE',
    group: connectionGroup,
    default: '',
    doc: 'File of bearer tokens, one a line: limiters must send one as `authorization: Bearer <token>` (CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS of ours). Read again when it changes; several lines are for rotation.',
  }),
};

const tlsGroup = 'TLS of the ADS server';

/** Certificates of the ADS server. */
export const tlsSettings = {
  grpcPlaintext: bool({
    env: 'XDS_GRPC_PLAINTEXT',
    group: tlsGroup,
    default: false,
    doc: 'Serve ADS to the network without TLS: all who reach the port read the limits, and report as any limiter. Without TLS and without this, only 127.0.0.1 is served.',
  }),
  grpcOwnCa: bool({
    env: 'XDS_GRPC_OWN_CA',
    group: tlsGroup,
    default: false,
    doc: 'Keep an authority in Secrets of the cluster, and issue and renew the certificates of this server and of limiters, who must present theirs.',
  }),
  certificateSecret: text({
    env: 'XDS_GRPC_CERTIFICATE_SECRET',
    group: tlsGroup,
    default: 'tollgate-xds',
    matches: {
      pattern: /^[a-z0-9](?:[-a-z0-9]{0,58}[a-z0-9])?$/,
      form: 'a name of Kubernetes: lower case letters, digits and hyphens between them',
    },
    doc: 'With XDS_GRPC_OWN_CA, beginning of the names of its Secrets in the namespace of the pod: `-ca`, `-server` and `-client` follow.',
  }),
  clientSecrets: list({
    env: 'XDS_GRPC_CLIENT_SECRETS',
    group: tlsGroup,
    default: [],
    doc: 'With XDS_GRPC_OWN_CA, Secrets with the certificate of limiters in other namespaces, as `namespace/name`.',
  }),
  serverNames: list({
    env: 'XDS_GRPC_SERVER_NAMES',
    group: tlsGroup,
    default: [],
    doc: 'With XDS_GRPC_OWN_CA, DNS names under which limiters call this server.',
  }),
  grpcTlsCert: text({
    env: 'XDS_GRPC_TLS_CERT',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with the certificate chain; read again when it changes. When set, TLS is served.',
  }),
  grpcTlsKey: text({
    env: 'XDS_GRPC_TLS_KEY',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with its private key; read again when it changes.',
  }),
  grpcClientCacert: text({
    env: 'XDS_GRPC_CLIENT_CACERT',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with the authorities that certificates of limiters must come from. When set, limiters must present one.',
  }),
  grpcClientSan: text({
    env: 'XDS_GRPC_CLIENT_SAN',
    group: tlsGroup,
    default: '',
    doc: 'DNS name that the certificate of a limiter must carry; needs XDS_GRPC_CLIENT_CACERT.',
  }),
};

const tracingGroup = 'Tracing';

/** Spans in OTLP. Where they go is said by the standard variables OTEL_EXPORTER_OTLP_*. */
export const tracingSettings = {
  tracingEnabled: bool({
    env: 'TRACING_ENABLED',
    group: tracingGroup,
    default: false,
    doc: 'Export spans of changes, from the source to the limiters; the standard variables OTEL_EXPORTER_OTLP_* say where to.',
  }),
  tracingExporterProtocol: oneOf(['http', 'http/protobuf', 'grpc'], {
    env: 'TRACING_EXPORTER_PROTOCOL',
    group: tracingGroup,
    default: 'http',
    doc: 'Protocol of the export; `http` is JSON.',
  }),
  tracingServiceName: text({
    env: 'TRACING_SERVICE_NAME',
    group: tracingGroup,
    default: 'tollgate-xds',
    doc: '`service.name`.',
  }),
  tracingSamplingRate: float({
    env: 'TRACING_SAMPLING_RATE',
    group: tracingGroup,
    default: 1,
    min: 0,
    max: 1,
    doc: 'Part of the traces that is kept.',
  }),
};
