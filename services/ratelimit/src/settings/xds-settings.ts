import { bool, duration, float, int, longestTimer, pairs, text } from '@tollgate/kit/settings';

const group = 'Rules from a management server (xDS)';

/** A set of 100,000 rules takes about 10 MB; gRPC's own 4 MiB would refuse it. */
export const defaultMaxMessageBytes = 64 * 1024 * 1024;

/** The management server that rules come from with CONFIG_TYPE=GRPC_XDS_SOTW. */
export const xdsSettings = {
  xdsServerUrl: text({
    env: 'CONFIG_GRPC_XDS_SERVER_URL',
    group,
    default: 'localhost:18000',
    matches: {
      // Without a port, gRPC calls 443 and says nothing.
      pattern:
        /^(?:unix(?:-abstract)?:\S+|(?:dns:(?:\/\/[^/\s]*\/)?|ipv[46]:)?(?:\[[^\]\s]+\]|[^:/\s[\]]+):\d{1,5}(?:,\S+)?|:\d{1,5})$/i,
      form: 'host:port (or another target of gRPC with a port), without http://',
    },
    doc: 'Address of the management server, which speaks ADS (state of the world) over gRPC.',
  }),
  xdsNodeId: text({
    env: 'CONFIG_GRPC_XDS_NODE_ID',
    group,
    default: 'default',
    doc: 'Node id sent to the server. Give each replica its own, such as the Pod name, so that the server can distinguish them.',
  }),
  xdsNodeMetadata: pairs({
    env: 'CONFIG_GRPC_XDS_NODE_METADATA',
    group,
    default: {},
    separator: '=',
    doc: 'Node metadata sent to the server.',
  }),
  xdsAdditionalHeaders: pairs({
    env: 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    group,
    default: {},
    secret: true,
    doc: 'Headers of the calls to the server, for example `authorization:Bearer …`.',
  }),
  xdsConnectRetryIntervalMs: duration({
    env: 'CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL',
    group,
    default: '3s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Pause before the server is called again after a connection was lost or could not be made, half as long to one and a half times as long. It holds for the first tries, together as long as XDS_CLIENT_BACKOFF_INITIAL_INTERVAL; then come the pauses of XDS_CLIENT_BACKOFF_*.',
  }),
  xdsBackoffInitialIntervalMs: duration({
    env: 'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
    group,
    default: '10s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Initial backoff after the server is unreachable or ends streams without a response. Each pause is twice the previous one; a response resets the backoff.',
  }),
  xdsBackoffMaxIntervalMs: duration({
    env: 'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
    group,
    default: '60s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Longest of these pauses.',
  }),
  xdsBackoffRandomFactor: float({
    env: 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
    group,
    default: 0.5,
    min: 0,
    max: 1,
    clamp: true,
    doc: 'How far jitter may move a pause, as a fraction of it: 0.5 is from half as long to one and a half times as long.',
  }),
  xdsBackoffJitter: bool({
    env: 'XDS_CLIENT_BACKOFF_JITTER',
    group,
    default: true,
    doc: 'Draw each pause at random, so that limiters which lost one server do not all come back at once.',
  }),
  xdsMaxMessageBytes: int({
    env: 'XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES',
    group,
    default: defaultMaxMessageBytes,
    min: 0,
    max: 2_147_483_647,
    clamp: true,
    doc: 'Largest response that is taken; each one holds all rules. 0 is the default.',
  }),
  xdsServerUseTls: bool({
    env: 'CONFIG_GRPC_XDS_SERVER_USE_TLS',
    group,
    default: false,
    doc: 'Call the server with TLS.',
  }),
  xdsServerTlsCacert: text({
    env: 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
    group,
    default: '',
    doc: "PEM file with the authorities of the server's certificate; those of the system when empty. Read again when it changes, like the next two.",
  }),
  xdsClientTlsCert: text({
    env: 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
    group,
    default: '',
    doc: 'PEM file with our certificate, for a server that wants one.',
  }),
  xdsClientTlsKey: text({
    env: 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
    group,
    default: '',
    doc: 'PEM file with the private key of that certificate.',
  }),
  xdsServerTlsSan: text({
    env: 'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
    group,
    default: '',
    doc: "DNS name that the server's certificate must carry, in the place of the host in CONFIG_GRPC_XDS_SERVER_URL.",
  }),
};
