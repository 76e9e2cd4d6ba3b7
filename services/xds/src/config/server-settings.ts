import { logLevelSynonyms, logLevels } from '@tollgate/kit/logger';
import { bool, duration, float, int, list, longestTimer, oneOf, port, text } from '@tollgate/kit/settings';

const group = 'Servers';

export const serverSettings = {
  grpcHost: text({
    env: 'XDS_GRPC_HOST',
    group,
    default: '',
    doc: 'Address of the ADS server. Default: 0.0.0.0 with TLS or XDS_GRPC_PLAINTEXT=true, otherwise 127.0.0.1.',
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
    doc: 'Address of the admin server: health and metrics for all clients, pages and admin API by XDS_ADMIN_TOKEN.',
  }),
  adminPort: port({
    env: 'XDS_ADMIN_PORT',
    group,
    default: 8090,
    doc: 'TCP port of the admin server; 0 picks a free one.',
  }),
  adminToken: text({
    env: 'XDS_ADMIN_TOKEN',
    group,
    default: '',
    secret: true,
    matches: { pattern: /^([A-Za-z0-9\-._~+/]{16,}=*)?$/, form: 'at least 16 letters, digits or -._~+/' },
    doc: 'Token that clients of the admin pages (`/`, `/objects`, `/snapshot`) and of the admin API (`/v1`) must send, `Authorization: Bearer <token>`. Without it both answer clients on 127.0.0.1 only, such as `kubectl port-forward`. Health and metrics need none.',
  }),
  adminKeysUrl: text({
    env: 'XDS_ADMIN_KEYS_URL',
    group,
    default: '',
    matches: {
      pattern: /^$|^https?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/,
      form: 'an http or https URL without user and query',
    },
    doc: 'Base URL of the auth server. Clients of the admin API may then send its API keys, and access tokens of administrators, with the admin scope `policies:read`, and must send a token. A result is kept for 5 seconds.',
  }),
  adminKeysToken: text({
    env: 'XDS_ADMIN_KEYS_TOKEN',
    group,
    default: '',
    secret: true,
    doc: '`SVC_ADMIN_VERIFIER_TOKEN` of the auth server, or an API key of it with the admin scope `keys:verify`: checks the keys and access tokens of clients.',
  }),
  adminPlaintext: bool({
    env: 'XDS_ADMIN_PLAINTEXT',
    group,
    default: false,
    doc: 'With XDS_ADMIN_KEYS_URL, serve the admin API to the network without TLS, which lets others read API keys and access tokens on the way. Only for a network that encrypts, such as a service mesh. Otherwise XDS_ADMIN_KEYS_URL requires an XDS_ADMIN_HOST on loopback.',
  }),
  shutdownDelayMs: duration({
    env: 'SHUTDOWN_DELAY',
    group,
    default: '0s',
    max: longestTimer,
    doc: 'Delay between failing the health check and closing streams, so that load balancers stop sending traffic first.',
  }),
  drainTimeoutMs: duration({
    env: 'DRAIN_TIMEOUT',
    group,
    default: '10s',
    max: longestTimer,
    doc: 'Grace period for open streams after SIGTERM.',
  }),
  logLevel: oneOf(logLevels, {
    env: 'LOG_LEVEL',
    group,
    default: 'info',
    synonyms: logLevelSynonyms,
    doc: 'Minimum log level.',
  }),
  logFormat: oneOf(['text', 'json'], {
    env: 'LOG_FORMAT',
    group,
    default: 'text',
    doc: '`json` writes one object per line with `@message`, `@timestamp` and `level`.',
  }),
};

const connectionGroup = 'Connections of the ADS server';

export const connectionSettings = {
  keepaliveTimeMs: duration({
    env: 'XDS_GRPC_KEEPALIVE_TIME',
    group: connectionGroup,
    default: '30s',
    min: '1s',
    max: longestTimer,
    doc: 'Interval of HTTP/2 pings on idle connections.',
  }),
  keepaliveTimeoutMs: duration({
    env: 'XDS_GRPC_KEEPALIVE_TIMEOUT',
    group: connectionGroup,
    default: '5s',
    min: '100ms',
    max: longestTimer,
    doc: 'A connection whose ping is not answered in this time is closed.',
  }),
  maxConnectionAgeMs: duration({
    env: 'XDS_GRPC_MAX_CONNECTION_AGE',
    group: connectionGroup,
    default: '30m',
    max: longestTimer,
    doc: 'Maximum age of a connection before GOAWAY, ±10 % at random, so that limiters spread over replicas. 0 means no limit.',
  }),
  maxConnectionAgeGraceMs: duration({
    env: 'XDS_GRPC_MAX_CONNECTION_AGE_GRACE',
    group: connectionGroup,
    default: '10s',
    max: longestTimer,
    doc: 'Grace period for open streams after the maximum connection age; limiters reconnect and keep their limits meanwhile.',
  }),
  maxStreamsPerPeer: int({
    env: 'XDS_GRPC_MAX_STREAMS_PER_PEER',
    group: connectionGroup,
    default: 100,
    min: 0,
    max: 10_000,
    doc: 'Maximum streams, and connections, per client address without mutual TLS. 0 means no limit. A limiter needs one: raise the limit if all limiters connect through one proxy. At the limit, clients that do not answer are disconnected first.',
  }),
  maxStreamsPerVerifiedPeer: int({
    env: 'XDS_GRPC_MAX_STREAMS_PER_VERIFIED_PEER',
    group: connectionGroup,
    default: 2_000,
    min: 0,
    max: 10_000,
    doc: 'The same with mutual TLS, where only clients with a certificate get through: limiters behind one proxy or gateway share an address. 0 means no limit.',
  }),
  tokenFile: text({
    env: 'XDS_GRPC_TOKEN_FILE',
    group: connectionGroup,
    default: '',
    doc: 'File of accepted bearer tokens, one per line. Limiters must send one as `authorization: Bearer <token>` (CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS of our limiter). Reloaded when it changes; several lines allow rotation.',
  }),
};

const tlsGroup = 'TLS of the ADS server';

export const tlsSettings = {
  grpcPlaintext: bool({
    env: 'XDS_GRPC_PLAINTEXT',
    group: tlsGroup,
    default: false,
    doc: 'Serve ADS to the network without TLS. Every client that reaches the port can read the limits and report as any limiter. Without TLS and without this setting, only 127.0.0.1 is served.',
  }),
  grpcOwnCa: bool({
    env: 'XDS_GRPC_OWN_CA',
    group: tlsGroup,
    default: false,
    doc: 'Mutual TLS with a certificate authority of this service, stored in Secrets of the cluster. It issues and renews the certificates of this server and of limiters.',
  }),
  certificateSecret: text({
    env: 'XDS_GRPC_CERTIFICATE_SECRET',
    group: tlsGroup,
    default: 'tollgate-xds',
    matches: {
      pattern: /^[a-z0-9](?:[-a-z0-9]{0,58}[a-z0-9])?$/,
      form: 'a Kubernetes name: lower case letters, digits, and hyphens between them',
    },
    doc: 'With XDS_GRPC_OWN_CA, prefix of the names of its Secrets in the namespace of the pod: `<prefix>-ca`, `<prefix>-server` and `<prefix>-client`.',
  }),
  clientSecrets: list({
    env: 'XDS_GRPC_CLIENT_SECRETS',
    group: tlsGroup,
    default: [],
    doc: 'With XDS_GRPC_OWN_CA, Secrets for the certificates of limiters in other namespaces, as `namespace/name`.',
  }),
  serverNames: list({
    env: 'XDS_GRPC_SERVER_NAMES',
    group: tlsGroup,
    default: [],
    doc: 'With XDS_GRPC_OWN_CA, DNS names of this server, as limiters use them.',
  }),
  grpcTlsCert: text({
    env: 'XDS_GRPC_TLS_CERT',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with the certificate chain. Enables TLS. Reloaded when it changes.',
  }),
  grpcTlsKey: text({
    env: 'XDS_GRPC_TLS_KEY',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with the private key. Reloaded when it changes.',
  }),
  grpcClientCacert: text({
    env: 'XDS_GRPC_CLIENT_CACERT',
    group: tlsGroup,
    default: '',
    doc: 'PEM file with the certificate authorities of limiters and auth servers. When set, they must present a client certificate.',
  }),
  grpcClientSan: list({
    env: 'XDS_GRPC_CLIENT_SAN',
    group: tlsGroup,
    default: [],
    doc: 'DNS names of limiters and auth servers: their certificates must have one of them. Requires XDS_GRPC_CLIENT_CACERT.',
  }),
};

const admissionGroup = 'Admission webhook';

export const admissionSettings = {
  admissionEnabled: bool({
    env: 'XDS_ADMISSION_ENABLED',
    group: admissionGroup,
    default: false,
    doc: 'Serve the validating admission webhook, so that `kubectl apply` shows the problems of an object. It has the certificate of the ADS server: XDS_GRPC_OWN_CA or XDS_GRPC_TLS_CERT, valid for the name by which the API server calls it.',
  }),
  admissionHost: text({
    env: 'XDS_ADMISSION_HOST',
    group: admissionGroup,
    default: '0.0.0.0',
    doc: 'Address of the webhook.',
  }),
  admissionPort: port({
    env: 'XDS_ADMISSION_PORT',
    group: admissionGroup,
    default: 8443,
    doc: 'TCP port of the webhook; 0 picks a free one.',
  }),
  admissionConfiguration: text({
    env: 'XDS_ADMISSION_CONFIGURATION',
    group: admissionGroup,
    default: 'tollgate-xds',
    doc: 'Name of the ValidatingWebhookConfiguration, in which the leader keeps the certificate authorities (`caBundle`) up to date. Only with XDS_GRPC_OWN_CA.',
  }),
};

const tracingGroup = 'Tracing';

export const tracingSettings = {
  tracingEnabled: bool({
    env: 'TRACING_ENABLED',
    group: tracingGroup,
    default: false,
    doc: 'Export spans of changes, from the source to the limiters, to the endpoint in the standard variables OTEL_EXPORTER_OTLP_*.',
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
    doc: 'Fraction of traces that are sampled.',
  }),
};
