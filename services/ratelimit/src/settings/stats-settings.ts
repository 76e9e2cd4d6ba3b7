import { bool, duration, longestTimer, oneOf, pairs, port, text } from '@tollgate/kit/settings';

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
