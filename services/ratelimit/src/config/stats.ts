import { bool, duration, float, list, longestTimer, oneOf, pairs, port, text } from '@tollgate/kit/settings';

const group = 'Statistics';

export const statsSettings = {
  usePushStats: bool({
    env: 'USE_PUSHSTATS',
    aliases: ['USE_STATSD'],
    group,
    default: true,
    doc: 'Push statistics to a statsd server. Without any sink, they are written to standard output.',
  }),
  useTagStatsd: bool({
    env: 'USE_TAGSTATSD',
    aliases: ['USE_DOG_STATSD'],
    group,
    default: false,
    doc: 'Push statistics with tags, in the format of DogStatsD over UDP; requires USE_PUSHSTATS=false.',
  }),
  tagStatsdMogrifiers: list({
    env: 'TAGSTATSD_MOGRIFIERS',
    aliases: ['USE_DOG_STATSD_MOGRIFIERS', 'DOG_STATSD_MOGRIFIERS'],
    group,
    default: [],
    doc: 'Names of rules that rewrite tagged statistics; the first one that matches is used. Each has `TAGSTATSD_MOGRIFIER_<NAME>_PATTERN` (a regular expression in the syntax of Go), `_NAME` (the new name) and `_TAGS` (`key:value,…`); `$1` is what the first group matched.',
  }),
  usePullMetrics: bool({
    env: 'USE_PULLMETRICS',
    aliases: ['USE_PROMETHEUS'],
    group,
    default: false,
    doc: 'Serve statistics for Prometheus; requires USE_PUSHSTATS=false.',
  }),
  disableStats: bool({
    env: 'DISABLE_STATS',
    group,
    default: false,
    doc: 'Disable all sinks.',
  }),
  statsFlushIntervalMs: duration({
    env: 'STATS_FLUSH_INTERVAL',
    group,
    default: '10s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'Interval at which statistics are pushed or written.',
  }),
  extraTags: pairs({ env: 'EXTRA_TAGS', group, default: {}, doc: 'Tags of all statistics.' }),
  statsdHost: text({ env: 'STATSD_HOST', group, default: 'localhost', doc: 'Host of the statsd server.' }),
  statsdPort: port({ env: 'STATSD_PORT', group, default: 8125, doc: 'Port of the statsd server.' }),
  statsdProtocol: oneOf(['tcp', 'udp'], {
    env: 'STATSD_PROTOCOL',
    group,
    default: 'tcp',
    doc: 'Protocol of the statsd server.',
  }),
  pullMetricsAddr: text({
    env: 'PULLMETRICS_ADDR',
    aliases: ['PROMETHEUS_ADDR'],
    group,
    default: ':9090',
    matches: {
      pattern: /^(\[[0-9a-fA-F:]+\]|[^\s:[\]]*):\d{1,5}$/,
      form: 'host:port, or :port for every address',
    },
    doc: 'Address of the Prometheus endpoint.',
  }),
  pullMetricsPath: text({
    env: 'PULLMETRICS_PATH',
    aliases: ['PROMETHEUS_PATH'],
    group,
    default: '/metrics',
    matches: { pattern: /^\/\S*$/, form: 'a path that begins with /' },
    doc: 'Path of the Prometheus endpoint.',
  }),
  pullMetricsMapperYaml: text({
    env: 'PULLMETRICS_MAPPER_YAML',
    aliases: ['PROMETHEUS_MAPPER_YAML'],
    group,
    default: '',
    doc: 'File with names and labels of metrics, in the format of statsd_exporter. Default: the mapping of envoyproxy/ratelimit, also when the file does not exist.',
  }),
  pullMetricsResponseTimeAsMilliseconds: bool({
    env: 'PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS',
    aliases: ['PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS'],
    group,
    default: false,
    doc: 'With the default mapping: export response times in milliseconds under the metric name for seconds, as some dashboards expect.',
  }),
};

const tracingGroup = 'Tracing';

export const tracingSettings = {
  tracingEnabled: bool({
    env: 'TRACING_ENABLED',
    group: tracingGroup,
    default: false,
    doc: 'Export spans, to the target of the standard variables OTEL_EXPORTER_OTLP_*.',
  }),
  tracingExporterProtocol: oneOf(['http', 'grpc'], {
    env: 'TRACING_EXPORTER_PROTOCOL',
    group: tracingGroup,
    default: 'http',
    synonyms: { '': 'http' },
    doc: 'Protocol of the export.',
  }),
  tracingServiceName: text({
    env: 'TRACING_SERVICE_NAME',
    group: tracingGroup,
    default: 'RateLimit',
    doc: '`service.name`.',
  }),
  tracingServiceNamespace: text({
    env: 'TRACING_SERVICE_NAMESPACE',
    group: tracingGroup,
    default: '',
    doc: '`service.namespace`.',
  }),
  tracingServiceInstanceId: text({
    env: 'TRACING_SERVICE_INSTANCE_ID',
    group: tracingGroup,
    default: '',
    doc: '`service.instance.id`; empty for a random UUID.',
  }),
  tracingSamplingRate: float({
    env: 'TRACING_SAMPLING_RATE',
    group: tracingGroup,
    default: 1,
    min: 0,
    max: 1,
    clamp: true,
    doc: 'Fraction of traces that is sampled, unless the caller decided.',
  }),
};

/** Sinks by the setting that chooses them. */
const sinkKinds = { usePushStats: 'statsd', useTagStatsd: 'tagStatsd', usePullMetrics: 'pull' } as const;

type SinkSwitch = keyof typeof sinkKinds;

const sinkSwitches = Object.keys(sinkKinds) as readonly SinkSwitch[]; // of the constant above

type SinkSettings = Readonly<Record<SinkSwitch | 'disableStats', boolean>>;

export type StatsSinkKind = (typeof sinkKinds)[SinkSwitch] | 'log';

/** The chosen sink, undefined for none; or the setting to turn off, and the reason. */
type SinkChoice =
  | { readonly ok: true; readonly sink: StatsSinkKind | undefined }
  | { readonly ok: false; readonly turnOff: SinkSwitch; readonly because: SinkSwitch };

/**
 * Chooses the sink. `DISABLE_STATS` takes precedence; without a choice it is standard output.
 * `USE_PUSHSTATS` is true by default, so the others need it set to false, as in
 * envoyproxy/ratelimit.
 */
export function chooseSink(settings: SinkSettings): SinkChoice {
  if (settings.disableStats) return { ok: true, sink: undefined };
  const [first, second] = sinkSwitches.filter((name) => settings[name]);
  if (first !== undefined && second !== undefined) return { ok: false, turnOff: first, because: second };
  return { ok: true, sink: first === undefined ? 'log' : sinkKinds[first] };
}

/** An address to listen on; without a host, all interfaces. */
export interface ListenAddress {
  readonly host: string | undefined;
  readonly port: number;
}

/**
 * Parses PULLMETRICS_ADDR: `host:port`, `:port` or `[IPv6]:port`. Undefined when it is invalid.
 */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text.trim());
  if (match === null) return undefined;
  const [, ipv6, host, digits] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  return { host: ipv6 ?? (host === '' ? undefined : host), port };
}
