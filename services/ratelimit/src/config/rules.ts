import { isAbsolute, resolve } from 'node:path';
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
import { limiterClassBounds } from '@tollgate/rules/resource-shape';

const group = 'Rules';

export const ruleSettings = {
  configType: oneOf(['FILE', 'GRPC_XDS_SOTW'], {
    env: 'CONFIG_TYPE',
    group,
    default: 'FILE',
    doc: 'Source of the rules: files (RUNTIME_*), or a management server (CONFIG_GRPC_XDS_*).',
  }),
  forceStartWithoutInitialConfig: bool({
    env: 'FORCE_START_WITHOUT_INITIAL_CONFIG',
    group,
    default: false,
    doc: 'Open the ports before the first configuration is loaded. Otherwise the start waits until the management server has sent a valid one.',
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
  candidateRuntimeSubdirectory: text({
    env: 'CANDIDATE_RUNTIME_SUBDIRECTORY',
    group,
    default: '',
    doc: 'Directory below RUNTIME_ROOT that holds RUNTIME_APPDIRECTORY with rules on trial, which are compared with the rules in force and have no effect; empty for none. With a management server, RateLimitConfigs with `spec.trial: true` are on trial.',
  }),
  runtimeAppdirectory: text({
    env: 'RUNTIME_APPDIRECTORY',
    group,
    default: 'config',
    doc: 'Directory of the rule files in it; all extensions are read.',
  }),
  runtimeIgnoreDotFiles: bool({
    env: 'RUNTIME_IGNOREDOTFILES',
    group,
    default: false,
    doc: 'Ignore files and directories whose names begin with a dot, such as those of an editor. Those of a Kubernetes volume (`..data`) are always ignored.',
  }),
  runtimeWatchRoot: bool({
    env: 'RUNTIME_WATCH_ROOT',
    group,
    default: true,
    doc: 'true: reload when the symbolic link RUNTIME_ROOT changes. false: reload when a file changes in place.',
  }),
  mergeDomainConfig: bool({
    env: 'MERGE_DOMAIN_CONFIG',
    group,
    default: false,
    doc: 'Allow several files, or resources of a management server, to define the same domain.',
  }),
  healthyWithAtLeastOneConfigLoaded: bool({
    env: 'HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED',
    group,
    default: false,
    doc: 'Fail the health check while no domain is configured.',
  }),
};

const xdsGroup = 'Rules from a management server (xDS)';

/** 100,000 rules are about 10 MB, more than gRPC's default of 4 MiB. */
export const defaultMaxMessageBytes = 64 * 1024 * 1024;

export const xdsSettings = {
  xdsServerUrl: text({
    env: 'CONFIG_GRPC_XDS_SERVER_URL',
    group: xdsGroup,
    default: 'localhost:18000',
    matches: {
      // Without a port, gRPC silently uses 443.
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
  xdsLimiterClass: text({
    env: 'CONFIG_GRPC_XDS_LIMITER_CLASS',
    group: xdsGroup,
    default: '',
    matches: { pattern: limiterClassBounds.pattern, form: limiterClassBounds.form },
    doc: 'Class of this limiter. The xDS server sends objects with this `spec.limiterClassName` and those without one. Objects without a class do not wait for limiters of a class.',
  }),
  xdsMatchReportIntervalMs: duration({
    env: 'CONFIG_GRPC_XDS_MATCH_REPORT_INTERVAL',
    group: xdsGroup,
    default: '1m',
    max: longestTimer,
    clamp: true,
    doc: 'Interval of reports to the xDS server about which rules have matched requests, in the metadata of a repeated ACK. Objects then name rules that have never matched. 0 for no reports.',
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
    doc: 'Interval of reconnects after a connection is lost or fails, with a jitter of 50 %.',
  }),
  xdsBackoffInitialIntervalMs: duration({
    env: 'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
    group: xdsGroup,
    default: '10s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Initial backoff after the server ends a stream without a response. Each pause is twice the previous one; a response, and a connection that fails, reset the backoff.',
  }),
  xdsBackoffMaxIntervalMs: duration({
    env: 'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
    group: xdsGroup,
    default: '60s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Maximum backoff.',
  }),
  xdsBackoffRandomFactor: float({
    env: 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
    group: xdsGroup,
    default: 0.5,
    min: 0,
    max: 1,
    clamp: true,
    doc: 'Jitter of the backoff as a fraction of it: with 0.5, pauses are 0.5 to 1.5 times as long.',
  }),
  xdsBackoffJitter: bool({
    env: 'XDS_CLIENT_BACKOFF_JITTER',
    group: xdsGroup,
    default: true,
    doc: 'Apply jitter to the backoff, so that limiters do not all reconnect at once.',
  }),
  xdsMaxMessageBytes: int({
    env: 'XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES',
    group: xdsGroup,
    default: defaultMaxMessageBytes,
    min: 0,
    max: 2_147_483_647,
    clamp: true,
    doc: 'Maximum size of a response, which contains all rules. 0 means the default.',
  }),
  xdsServerUseTls: bool({
    env: 'CONFIG_GRPC_XDS_SERVER_USE_TLS',
    group: xdsGroup,
    default: false,
    doc: 'Connect with TLS.',
  }),
  xdsServerTlsCacert: text({
    env: 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
    group: xdsGroup,
    default: '',
    doc: 'PEM file with the certificate authorities of the server; empty for those of the system. Like the next two, it is reloaded when it changes.',
  }),
  xdsClientTlsCert: text({
    env: 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
    group: xdsGroup,
    default: '',
    doc: 'PEM file with the client certificate.',
  }),
  xdsClientTlsKey: text({
    env: 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
    group: xdsGroup,
    default: '',
    doc: 'PEM file with its private key.',
  }),
  xdsServerTlsSan: text({
    env: 'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
    group: xdsGroup,
    default: '',
    doc: 'DNS name that the server certificate must have, instead of the host in CONFIG_GRPC_XDS_SERVER_URL.',
  }),
};

type Check = SettingsCheck<typeof ruleSettings & typeof xdsSettings>;

const candidatesNeedFiles: Check = (s, { problem }) =>
  s.candidateRuntimeSubdirectory !== '' && s.configType !== 'FILE'
    ? problem(
        'candidateRuntimeSubdirectory',
        'nothing, because CONFIG_TYPE is not FILE: a RateLimitConfig with spec.trial: true is on trial',
      )
    : undefined;

/** Files are read with those of all directories below, so that rules on trial would be in force. */
const candidatesAreSeparate: Check = (s, { problem }) => {
  if (s.candidateRuntimeSubdirectory === '' || s.configType !== 'FILE') return undefined;
  if (
    isAbsolute(s.candidateRuntimeSubdirectory) ||
    s.candidateRuntimeSubdirectory.split('/').includes('..')
  ) {
    return problem('candidateRuntimeSubdirectory', 'a path below RUNTIME_ROOT, relative and without ..');
  }
  const [active, candidate] = [s.runtimeSubdirectory, s.candidateRuntimeSubdirectory].map(
    (subdirectory) => `${resolve(s.runtimeRoot, subdirectory, s.runtimeAppdirectory)}/`,
  );
  return active !== undefined && candidate !== undefined && areNested(active, candidate)
    ? problem(
        'candidateRuntimeSubdirectory',
        'a directory whose RUNTIME_APPDIRECTORY is neither the one of RUNTIME_SUBDIRECTORY nor in it nor around it',
      )
    : undefined;
};

const areNested = (a: string, b: string): boolean => a.startsWith(b) || b.startsWith(a);

const clientPair: Check = (s, { problem }) =>
  (s.xdsClientTlsCert === '') === (s.xdsClientTlsKey === '')
    ? undefined
    : problem(
        s.xdsClientTlsCert === '' ? 'xdsClientTlsCert' : 'xdsClientTlsKey',
        'a PEM file: certificate and key belong together',
      );

const tlsParts = ['xdsServerTlsCacert', 'xdsClientTlsCert', 'xdsServerTlsSan'] as const;

/** Otherwise a protected connection would silently be plaintext. */
const tlsPartsNeedTls: Check = (s, { problem, variableName }) => {
  const part = tlsParts.find((name) => s[name] !== '');
  return part === undefined || s.xdsServerUseTls || s.configType !== 'GRPC_XDS_SOTW'
    ? undefined
    : { ...problem('xdsServerUseTls', `true, because ${variableName(part)} is set`), value: 'false' };
};

/** Names of text metadata: `grpc-` is reserved, and `-bin` is for binary metadata. */
const headerName = /^(?!grpc-)(?!.*-bin$)[0-9a-z_.-]+$/i;
const headerValue = /^[\x20-\x7e]*$/;

const headersAreLegal: Check = (s, { problem }) => {
  const bad = Object.entries(s.xdsAdditionalHeaders).find(
    ([name, value]) => !headerName.test(name) || !headerValue.test(value),
  );
  return bad === undefined
    ? undefined
    : {
        ...problem(
          'xdsAdditionalHeaders',
          'names of letters, digits, - _ and ., not grpc-… or …-bin; values of printable ASCII',
        ),
        value: `(hidden), in the header ${JSON.stringify(bad[0])}`,
      };
};

export const ruleChecks: readonly Check[] = [
  candidatesNeedFiles,
  candidatesAreSeparate,
  clientPair,
  tlsPartsNeedTls,
  headersAreLegal,
];
