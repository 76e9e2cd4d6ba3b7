import { bool, duration, float, longestTimer, oneOf, pairs, port, text } from '@tollgate/kit/settings';
import type { StatsSinkKind } from '../stats/sinks.ts';

const group = 'Statistics';

/** Where statistics go. */
export const statsSettings = {
  usePushStats: bool({
    env: 'USE_PUSHSTATS',
    aliases: ['USE_STATSD'],
    group,
    default: true,
    doc: 'Push statistics to a statsd server. With no sink chosen they are written to standard output.',
  }),
  useTagStatsd: bool({
    env: 'USE_TAGSTATSD',
    aliases: ['USE_DOG_STATSD'],
    group,
    default: false,
    doc: 'Push tagged statistics. Not served yet: true is refused.',
  }),
  usePullMetrics: bool({
    env: 'USE_PULLMETRICS',
    aliases: ['USE_PROMETHEUS'],
    group,
    default: false,
    doc: 'Serve statistics for Prometheus; needs USE_PUSHSTATS=false.',
  }),
  disableStats: bool({
    env: 'DISABLE_STATS',
    group,
    default: false,
    doc: 'Send statistics nowhere, whatever else is set.',
  }),
  statsFlushIntervalMs: duration({
    env: 'STATS_FLUSH_INTERVAL',
    group,
    default: '10s',
    min: '10ms',
    max: longestTimer,
    clamp: true,
    doc: 'How often statistics are pushed or written.',
  }),
  extraTags: pairs({ env: 'EXTRA_TAGS', group, default: {}, doc: 'Tags on all statistics.' }),
  statsdHost: text({ env: 'STATSD_HOST', group, default: 'localhost', doc: 'Host of the statsd server.' }),
  statsdPort: port({ env: 'STATSD_PORT', group, default: 8125, doc: 'Port of the statsd server.' }),
  statsdProtocol: oneOf(['tcp', 'udp'], {
    env: 'STATSD_PROTOCOL',
    group,
    default: 'tcp',
    doc: 'How the statsd server is spoken to.',
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
    doc: 'Where Prometheus finds them.',
  }),
  pullMetricsPath: text({
    env: 'PULLMETRICS_PATH',
    aliases: ['PROMETHEUS_PATH'],
    group,
    default: '/metrics',
    matches: { pattern: /^\/\S*$/, form: 'a path that begins with /' },
    doc: 'Under which path.',
  }),
  pullMetricsMapperYaml: text({
    env: 'PULLMETRICS_MAPPER_YAML',
    aliases: ['PROMETHEUS_MAPPER_YAML'],
    group,
    default: '',
    matches: { pattern: /^$/, form: 'nothing: a mapping of your own is not served yet' },
    doc: 'Must be empty: a mapping of your own is not served yet.',
  }),
  pullMetricsResponseTimeAsMilliseconds: bool({
    env: 'PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS',
    aliases: ['PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS'],
    group,
    default: false,
    doc: 'Export response times in milliseconds under the name that says seconds, as some dashboards expect.',
  }),
};

const tracingGroup = 'Tracing';

/** Spans in OTLP. Where they go is said by the standard variables OTEL_EXPORTER_OTLP_*. */
export const tracingSettings = {
  tracingEnabled: bool({
    env: 'TRACING_ENABLED',
    group: tracingGroup,
    default: false,
    doc: 'Export spans; the standard variables OTEL_EXPORTER_OTLP_* say where to.',
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
    doc: 'Part of the traces that is kept, where the caller has not decided.',
  }),
};

/** The settings that choose the sink. */
interface SinkSettings {
  readonly usePushStats: boolean;
  readonly useTagStatsd: boolean;
  readonly usePullMetrics: boolean;
  readonly disableStats: boolean;
}

/** A setting that selects a sink. */
type SinkSwitch = Exclude<keyof SinkSettings, 'disableStats'>;

/** The chosen sink, undefined for none; or the setting to turn off, and the reason. */
type SinkChoice =
  | { readonly ok: true; readonly sink: StatsSinkKind | undefined }
  | { readonly ok: false; readonly turnOff: SinkSwitch; readonly because: SinkSwitch | 'unsupported' };

/**
 * Chooses the sink. `DISABLE_STATS` takes precedence; without a choice it is standard output. `USE_PUSHSTATS` is true by
 * default, so the other two need it set to false, as in envoyproxy/ratelimit.
 */
export function chooseSink(settings: SinkSettings): SinkChoice {
  if (settings.disableStats) return { ok: true, sink: undefined };
  const switches = ['usePushStats', 'useTagStatsd', 'usePullMetrics'] as const;
  const [first, second] = switches.filter((name) => settings[name]);
  if (first !== undefined && second !== undefined) return { ok: false, turnOff: first, because: second };
  if (first === 'useTagStatsd') return { ok: false, turnOff: first, because: 'unsupported' };
  if (first === undefined) return { ok: true, sink: 'log' };
  return { ok: true, sink: first === 'usePullMetrics' ? 'pull' : 'statsd' };
}

/** Where to listen. Without a host: on all interfaces. */
export interface ListenAddress {
  readonly host: string | undefined;
  readonly port: number;
}

/**
 * Reads `host:port`, `:port` or `[IPv6]:port`, the form of `PULLMETRICS_ADDR`. Undefined when it is none of these or the
 * port is not 0 to 65535.
 */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text.trim());
  if (match === null) return undefined;
  const [, ipv6, host, digits] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  return { host: ipv6 ?? (host === '' ? undefined : host), port };
}
