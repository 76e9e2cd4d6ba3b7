/**
 * The names of all statistics of the service, as dashboards and alerts of existing deployments know them. `<domain>` and
 * rule keys are put in by `stats-registry.ts`.
 * @see spec section 6 "Emitted statistics"
 */
export const statsNames = {
  configLoadSuccess: 'ratelimit.service.config_load_success',
  configLoadError: 'ratelimit.service.config_load_error',
  globalShadowMode: 'ratelimit.service.global_shadow_mode',
  /** Failed decisions because of the counter backend; the name is kept whichever backend runs. */
  backendError: 'ratelimit.service.call.should_rate_limit.redis_error',
  /** Failed decisions because of the request or a missing configuration. */
  serviceError: 'ratelimit.service.call.should_rate_limit.service_error',
  /** Gauges of the local over-limit cache; `localCacheStatNames` lists what follows the prefix. */
  localCachePrefix: 'ratelimit.localcache.',
  /** Connections of the main counter backend; followed by a name of `poolStatNames`. */
  redisPoolPrefix: 'ratelimit.redis_pool.',
  /** Connections of the per-second counter backend; followed by a name of `poolStatNames`. */
  redisPerSecondPoolPrefix: 'ratelimit.redis_per_second_pool.',
  certsLoadAttempts: 'certs.load_attempts',
  certsLoadFailures: 'certs.load_failures',
  certsNumValues: 'certs.num_values',
  runtimeLoadAttempts: 'runtime.load_attempts',
  runtimeLoadFailures: 'runtime.load_failures',
  runtimeNumValues: 'runtime.num_values',
  /**
   * Ours (gauge): 0 while the rules that were sent or written last are not the ones in force,
   * because they were rejected.
   */
  configCurrent: 'ratelimit.service.config_current',
  /**
   * Ours: decisions, with a tag `result`: `ok`, `near_limit` (OK, and near the limit of a
   * descriptor), `over_limit`.
   */
  decisions: 'ratelimit.decisions',
  /** Ours, with CONFIG_TYPE=GRPC_XDS_SOTW: 1 while the management server has a stream with us on which it has sent something. */
  xdsConnected: 'ratelimit.xds.connected',
  /** Ours: responses of the management server that were put in force, or held what already was. */
  xdsAccepted: 'ratelimit.xds.accepted',
  /** Ours: responses of the management server that were rejected. */
  xdsRejected: 'ratelimit.xds.rejected',
  /** Once per tag of `EXTRA_TAGS` that has a meaning of its own in many metrics systems. */
  reservedTag: 'reserved_tag',
  /** Ours: dynamic series given up because they were idle while the registry was full. */
  droppedSeries: 'ratelimit.stats.dropped_series',
  /** Ours: look-ups that were answered with the shared `_other` series because the registry was full. */
  overflowedLookups: 'ratelimit.stats.overflowed_lookups',
  /** Ours: timings that were not sent one by one because too many came between two flushes. */
  droppedTimings: 'ratelimit.stats.dropped_timings',
  /** Ours: bytes of statistics thrown away because the statsd server did not take them. */
  droppedBytes: 'ratelimit.stats.dropped_bytes',
} as const;

/** What every rule and every unknown domain is counted under: `<prefix><domain>.<level>…<stat>`. */
export const ruleStatPrefix = 'ratelimit.service.rate_limit.';

/** The last part of the name of the counter for requests to a domain without configuration. */
export const domainNotFoundStat = 'domain_not_found';

/** Hits that the local cache refused; the last part of the name. */
export const localCacheStat = 'over_limit_with_local_cache';

/** The counters of one rule: field of `RuleCounters` → last part of the name. */
export const ruleStats = [
  ['totalHits', 'total_hits'],
  ['overLimit', 'over_limit'],
  ['nearLimit', 'near_limit'],
  ['overLimitWithLocalCache', localCacheStat],
  ['withinLimit', 'within_limit'],
  ['shadowMode', 'shadow_mode'],
] as const;

/** Gauges of the local cache, spelled as in the original (camel case among snake case). */
export const localCacheStatNames = [
  'evacuateCount',
  'expiredCount',
  'entryCount',
  'averageAccessTime',
  'hitCount',
  'missCount',
  'lookupCount',
  'overwriteCount',
] as const;

/** Per connection pool: `cx_active` is a gauge, the others are counters. */
export const poolStatNames = {
  active: 'cx_active',
  total: 'cx_total',
  closed: 'cx_local_close',
  /** Ours: batches that found all connections busy for longer than the pool waits. */
  exhausted: 'exhausted',
} as const;

/** With BACKEND_TYPE=memcache; the first three have a tag `code` that says what came of it. */
export const memcachedStatNames = {
  multiGet: 'ratelimit.memcache.multiget',
  increment: 'ratelimit.memcache.increment',
  add: 'ratelimit.memcache.add',
  keysRequested: 'ratelimit.memcache.keys_requested',
  keysFound: 'ratelimit.memcache.keys_found',
  /** Ours: hits that were let through without being counted, because their server did not answer. */
  uncountedHits: 'ratelimit.memcache.uncounted_hits',
  /** Ours: servers that there are (gauge). */
  servers: 'ratelimit.memcache.servers',
  /** Ours: servers to which there is no connection (gauge). */
  unreachableServers: 'ratelimit.memcache.unreachable_servers',
} as const;

/** Names the counter of calls of one gRPC method, for example `ShouldRateLimit`. */
export function totalRequestsName(method: string): string {
  return `ratelimit_server.${method}.total_requests`;
}

/** Names the timer (milliseconds) of one gRPC method, for example `ShouldRateLimit`. */
export function responseTimeName(method: string): string {
  return `ratelimit_server.${method}.response_time`;
}

// Letters that statsd lines give a meaning to, and control characters: a new line in a value that a client chose
// must not become a line of its own.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const unsafe = /[:|\u0000-\u001f\u007f]/g;
const ipv4Like = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/**
 * Makes a domain, a level or a whole dotted key fit for the name of a statistic: `:`, `|` and control characters become
 * `_`, and so do the dots inside what looks like an IPv4 address. Other dots stay.
 */
export function sanitiseStatKey(key: string): string {
  return key.replace(unsafe, '_').replace(ipv4Like, (address) => address.replaceAll('.', '_'));
}

/** Joins a domain and its levels with dots, unsanitised. */
export function joinStatKey(domain: string, levels: readonly string[]): string {
  let key = domain;
  for (const level of levels) key += `.${level}`;
  return key;
}
