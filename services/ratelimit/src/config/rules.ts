import {
  bool,
  duration,
  float,
  int,
  longestTimer,
  oneOf,
  pairs,
  type SettingsCheck,
  text,
} from '@tollgate/kit/settings';

const group = 'Rules';

/** Where rules come from. */
export const ruleSettings = {
  configType: oneOf(['FILE', 'GRPC_XDS_SOTW'], {
    env: 'CONFIG_TYPE',
    group,
    default: 'FILE',
    doc: 'Where rules come from: files (RUNTIME_*), or a management server (CONFIG_GRPC_XDS_*).',
  }),
  forceStartWithoutInitialConfig: bool({
    env: 'FORCE_START_WITHOUT_INITIAL_CONFIG',
    group,
    default: false,
    doc: 'Open the servers before a first configuration has arrived. Without, a management server is waited for until it has sent one that is accepted.',
  }),
  runtimeRoot: text({
    env: 'RUNTIME_ROOT',
    group,
    default: '/srv/runtime_data/current',
    doc: 'Directory that holds the rule files, or a symbolic link to it.',
  }),
  runtimeSubdirectory: text({
    env: 'RUNTIME_SUBDIRECTORY',
    group,
    default: '',
    doc: 'Directory below RUNTIME_ROOT that holds RUNTIME_APPDIRECTORY; empty for RUNTIME_ROOT itself.',
  }),
  runtimeAppdirectory: text({
    env: 'RUNTIME_APPDIRECTORY',
    group,
    default: 'config',
    doc: 'Directory below that with the rule files, whatever their extension.',
  }),
  runtimeIgnoreDotFiles: bool({
    env: 'RUNTIME_IGNOREDOTFILES',
    group,
    default: false,
    doc: 'Leave out files and directories whose names begin with a dot, such as those of an editor. Those of a Kubernetes volume (`..data`) always are.',
  }),
  runtimeWatchRoot: bool({
    env: 'RUNTIME_WATCH_ROOT',
    group,
    default: true,
    doc: 'true: reload when the symbolic link RUNTIME_ROOT is swapped. false: reload when a file changes in place.',
  }),
  mergeDomainConfig: bool({
    env: 'MERGE_DOMAIN_CONFIG',
    group,
    default: false,
    doc: 'Let several files, or resources of a management server, define the same domain.',
  }),
  healthyWithAtLeastOneConfigLoaded: bool({
    env: 'HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED',
    group,
    default: false,
    doc: 'Be unhealthy while no domain is configured.',
  }),
};

const xdsGroup = 'Rules from a management server (xDS)';

/** A set of 100,000 rules takes about 10 MB; gRPC's own 4 MiB would refuse it. */
export const defaultMaxMessageBytes = 64 * 1024 * 1024;

/** The management server that rules come from with CONFIG_TYPE=GRPC_XDS_SOTW. */
export const xdsSettings = {
  xdsServerUrl: text({
    env: 'CONFIG_GRPC_XDS_SERVER_URL',
    group: xdsGroup,
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
    group: xdsGroup,
    default: 'default',
    doc: 'Node id sent to the server. Give each replica its own, such as the Pod name, so that the server can distinguish them.',
  }),
  xdsNodeMetadata: pairs({
    env: 'CONFIG_GRPC_XDS_NODE_METADATA',
    group: xdsGroup,
    default: {},
    separator: '=',
    doc: 'Node metadata sent to the server.',
  }),
  xdsAdditionalHeaders: pairs({
    env: 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    group: xdsGroup,
    default: {},
    secret: true,
    doc: 'Headers of the calls to the server, for example `authorization:Bearer …`.',
  }),
  xdsConnectRetryIntervalMs: duration({
    env: 'CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL',
    group: xdsGroup,
    default: '3s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Pause before the server is called again after a connection was lost or could not be made, half as long to one and a half times as long. It holds for the first tries, together as long as XDS_CLIENT_BACKOFF_INITIAL_INTERVAL; then come the pauses of XDS_CLIENT_BACKOFF_*.',
  }),
  xdsBackoffInitialIntervalMs: duration({
    env: 'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
    group: xdsGroup,
    default: '10s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Initial backoff after the server is unreachable or ends streams without a response. Each pause is twice the previous one; a response resets the backoff.',
  }),
  xdsBackoffMaxIntervalMs: duration({
    env: 'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
    group: xdsGroup,
    default: '60s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Longest of these pauses.',
  }),
  xdsBackoffRandomFactor: float({
    env: 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
    group: xdsGroup,
    default: 0.5,
    min: 0,
    max: 1,
    clamp: true,
    doc: 'How far jitter may move a pause, as a fraction of it: 0.5 is from half as long to one and a half times as long.',
  }),
  xdsBackoffJitter: bool({
    env: 'XDS_CLIENT_BACKOFF_JITTER',
    group: xdsGroup,
    default: true,
    doc: 'Draw each pause at random, so that limiters which lost one server do not all come back at once.',
  }),
  xdsMaxMessageBytes: int({
    env: 'XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES',
    group: xdsGroup,
    default: defaultMaxMessageBytes,
    min: 0,
    max: 2_147_483_647,
    clamp: true,
    doc: 'Largest response that is taken; each one holds all rules. 0 is the default.',
  }),
  xdsServerUseTls: bool({
    env: 'CONFIG_GRPC_XDS_SERVER_USE_TLS',
    group: xdsGroup,
    default: false,
    doc: 'Call the server with TLS.',
  }),
  xdsServerTlsCacert: text({
    env: 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
    group: xdsGroup,
    default: '',
    doc: "PEM file with the authorities of the server's certificate; those of the system when empty. Read again when it changes, like the next two.",
  }),
  xdsClientTlsCert: text({
    env: 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
    group: xdsGroup,
    default: '',
    doc: 'PEM file with our certificate, for a server that wants one.',
  }),
  xdsClientTlsKey: text({
    env: 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
    group: xdsGroup,
    default: '',
    doc: 'PEM file with the private key of that certificate.',
  }),
  xdsServerTlsSan: text({
    env: 'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
    group: xdsGroup,
    default: '',
    doc: "DNS name that the server's certificate must carry, in the place of the host in CONFIG_GRPC_XDS_SERVER_URL.",
  }),
};

type Check = SettingsCheck<typeof ruleSettings & typeof xdsSettings>;

const clientPair: Check = (s, { nameOf }) =>
  (s.xdsClientTlsCert === '') === (s.xdsClientTlsKey === '')
    ? undefined
    : {
        variable: nameOf(s.xdsClientTlsCert === '' ? 'xdsClientTlsCert' : 'xdsClientTlsKey'),
        expected: 'a PEM file: certificate and key belong together',
      };

const tlsParts = ['xdsServerTlsCacert', 'xdsClientTlsCert', 'xdsServerTlsSan'] as const;

/** What was meant to be protected would travel in the clear. */
const tlsPartsNeedTls: Check = (s, { nameOf }) => {
  const part = tlsParts.find((name) => s[name] !== '');
  return part === undefined || s.xdsServerUseTls || s.configType !== 'GRPC_XDS_SOTW'
    ? undefined
    : {
        variable: nameOf('xdsServerUseTls'),
        value: 'false',
        expected: `true, because ${nameOf(part)} is set`,
      };
};

/** Names that gRPC takes for text; those that begin with `grpc-` are its own, those that end in `-bin` hold bytes. */
const headerName = /^(?!grpc-)(?!.*-bin$)[0-9a-z_.-]+$/i;
const headerValue = /^[\x20-\x7e]*$/;

const headersAreLegal: Check = (s, { nameOf }) => {
  const bad = Object.entries(s.xdsAdditionalHeaders).find(
    ([name, value]) => !headerName.test(name) || !headerValue.test(value),
  );
  return bad === undefined
    ? undefined
    : {
        variable: nameOf('xdsAdditionalHeaders'),
        value: `(hidden), in the header ${JSON.stringify(bad[0])}`,
        expected: 'names of letters, digits, - _ and ., not grpc-… or …-bin; values of printable ASCII',
      };
};

/** What must fit together among the settings of the management server. */
export const xdsChecks: readonly Check[] = [clientPair, tlsPartsNeedTls, headersAreLegal];
