import { compareText } from '@tollgate/kit/text';
import type { StatsRegistry, StatTags } from './registry.ts';

/**
 * Names of all statistics, as dashboards and alerts of existing deployments use them. `registry.ts`
 * adds domains and rule keys.
 * @see spec section 6 "Emitted statistics"
 */
export const statsNames = {
  configLoadSuccess: 'ratelimit.service.config_load_success',
  configLoadError: 'ratelimit.service.config_load_error',
  globalShadowMode: 'ratelimit.service.global_shadow_mode',
  /** Decisions that failed because of the counter store, whichever it is. */
  backendError: 'ratelimit.service.call.should_rate_limit.redis_error',
  /** Decisions that failed because of the request or a missing configuration. */
  serviceError: 'ratelimit.service.call.should_rate_limit.service_error',
  /** Gauges of the local over-limit cache; `localCacheStatNames` lists what follows the prefix. */
  localCachePrefix: 'ratelimit.localcache.',
  /** Connections of the main counter store; followed by a name of `poolStatNames`. */
  redisPoolPrefix: 'ratelimit.redis_pool.',
  /** Connections of the per-second counter store; followed by a name of `poolStatNames`. */
  redisPerSecondPoolPrefix: 'ratelimit.redis_per_second_pool.',
  certsLoadAttempts: 'certs.load_attempts',
  certsLoadFailures: 'certs.load_failures',
  certsNumValues: 'certs.num_values',
  runtimeLoadAttempts: 'runtime.load_attempts',
  runtimeLoadFailures: 'runtime.load_failures',
  runtimeNumValues: 'runtime.num_values',
  /**
   * Ours (gauge): 0 while the last rules that were received are not active, because they were
   * rejected.
   */
  configCurrent: 'ratelimit.service.config_current',
  /**
   * Ours: decisions, with a tag `result`: `ok`, `near_limit` (OK, and near a limit), `over_limit`.
   */
  decisions: 'ratelimit.decisions',
  /**
   * Ours: descriptors that were decided without the counter store, with a tag `policy`: `allow`,
   * `deny`, `local`.
   */
  storeFailure: 'ratelimit.store_failure',
  /**
   * Ours: checks with 0 hits of limits with `charge: allowed`, which lose usage that is reported
   * after the response.
   */
  unchargedUsageChecks: 'ratelimit.uncharged_usage_checks',
  /**
   * Ours, with CONFIG_TYPE=GRPC_XDS_SOTW: 1 while there is a stream on which the management server
   * has responded.
   */
  xdsConnected: 'ratelimit.xds.connected',
  xdsAccepted: 'ratelimit.xds.accepted',
  xdsRejected: 'ratelimit.xds.rejected',
  /** Ours: requests that were not compared with rules on trial, because too many were waiting. */
  trialDropped: 'ratelimit.trial.dropped',
  /** Ours: requests that were not compared with rules on trial, because the store failed. */
  trialFailed: 'ratelimit.trial.failed',
  /** Ours (gauge): bytes of incomplete requests and unread replies. */
  clientBufferBytes: 'ratelimit.client_buffers.bytes',
  /**
   * Ours: requests and connections that were ended because clients held too much, with a tag
   * `protocol`: `grpc`, `http`.
   */
  clientBufferRefused: 'ratelimit.client_buffers.refused',
  /** Once for each reserved tag in `EXTRA_TAGS`. */
  reservedTag: 'reserved_tag',
  /** Ours: series that were dropped because they were idle while the registry was full. */
  droppedSeries: 'ratelimit.stats.dropped_series',
  /** Ours: look-ups that returned the shared `_other` series because the registry was full. */
  overflowedLookups: 'ratelimit.stats.overflowed_lookups',
  /** Ours: single timings that were dropped because there were too many between two flushes. */
  droppedTimings: 'ratelimit.stats.dropped_timings',
  /** Ours: bytes of statistics that were dropped because the statsd server did not receive them. */
  droppedBytes: 'ratelimit.stats.dropped_bytes',
} as const;

/** Prefix of the statistics of rules and unknown domains: `<prefix><domain>.<level>…<stat>`. */
export const ruleStatPrefix = 'ratelimit.service.rate_limit.';

/** The last part of the name of the counter for requests to a domain without configuration. */
export const domainNotFoundStat = 'domain_not_found';

/** Hits that the local cache rejected; the last part of the name. */
export const localCacheStat = 'over_limit_with_local_cache';

export const ruleStats = [
  ['totalHits', 'total_hits'],
  ['overLimit', 'over_limit'],
  ['nearLimit', 'near_limit'],
  ['overLimitWithLocalCache', localCacheStat],
  ['withinLimit', 'within_limit'],
  ['shadowMode', 'shadow_mode'],
  ['totalNegativeHits', 'total_negative_hits'],
] as const;

/** Ours: prefixes of the statistics of a rule on trial, and of a domain with such rules. */
export const trialRulePrefix = 'ratelimit.trial.rule.';
export const trialDomainPrefix = 'ratelimit.trial.domain.';

/** Requests that rules on trial were compared for; the last part of the name. */
export const trialStats = [
  ['requests', 'requests'],
  ['wouldRefuse', 'would_refuse'],
  ['refused', 'refused'],
  ['newlyRefused', 'newly_refused'],
  ['newlyAllowed', 'newly_allowed'],
] as const;

/** Gauges of the local cache, spelled as in envoyproxy/ratelimit. */
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

/** Prefixes of the names of a connection pool. */
export const poolPrefixes = {
  redis: statsNames.redisPoolPrefix,
  redis_per_second: statsNames.redisPerSecondPoolPrefix,
} as const;

/** Statistics per connection pool; counters unless said otherwise, `cx_active` is a gauge. */
export const poolStatNames = {
  active: 'cx_active',
  total: 'cx_total',
  closed: 'cx_local_close',
  /** Ours: batches that found all connections busy for longer than the pool waits. */
  exhausted: 'exhausted',
  /** Ours (gauge): servers whose circuit breaker is open or half-open. */
  openBreakers: 'breaker_open',
  /** Ours: requests that failed without Redis because a circuit breaker was open. */
  breakerRejected: 'breaker_rejected',
  /** Ours: open connections that logged in again with changed credentials. */
  loginRenewed: 'login_renewed',
  /** Ours: the same, but Redis refused them. */
  loginRefused: 'login_refused',
  /** Ours: changes of credentials from a file or program. */
  credentialsReloaded: 'credentials_reloaded',
  /** Ours: the same, but the file or the program failed. */
  credentialsFailed: 'credentials_failed',
} as const;

/** Stores whose exchanges are measured. */
export type StoreName = 'redis' | 'redis_per_second' | 'memcache';

/**
 * Why an exchange with a store failed: there was no connection, it took too long, the connection
 * was lost, or the store refused it as a whole (`READONLY`, `OOM`).
 */
export const storeErrorReasons = ['unavailable', 'timeout', 'lost', 'refused'] as const;

/** Ours: names the timer (milliseconds) of exchanges, each with the hits of a batch. */
export function storeTimeName(store: StoreName): string {
  return `ratelimit.store.${store}.exchange_time`;
}

/** Ours: names the counters of exchanges that failed, by the tag `reason` (`storeErrorReasons`). */
export function storeErrorName(store: StoreName): string {
  return `ratelimit.store.${store}.exchange_error`;
}

/** Statistics with BACKEND_TYPE=memcache; the first three have a tag `code` with the result. */
export const memcachedStatNames = {
  multiGet: 'ratelimit.memcache.multiget',
  increment: 'ratelimit.memcache.increment',
  add: 'ratelimit.memcache.add',
  keysRequested: 'ratelimit.memcache.keys_requested',
  keysFound: 'ratelimit.memcache.keys_found',
  /** Ours: hits that were allowed without being counted, because their server did not answer. */
  uncountedHits: 'ratelimit.memcache.uncounted_hits',
  /** Ours (gauge): known servers. */
  servers: 'ratelimit.memcache.servers',
  /** Ours (gauge): servers without a connection. */
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

// Separators of statsd lines, and control characters: a newline in a value of a client must not
// start another line.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this matches
const unsafe = /[:|\u0000-\u001f\u007f]/g;
const ipv4Like = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g;

/**
 * Converts a domain, a level or a dotted key for the name of a statistic: `:`, `|` and control
 * characters become `_`, and so do the dots of IPv4 addresses.
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

/** Tag names that many metrics systems set; their use in `EXTRA_TAGS` is counted, not refused. */
const reservedTags: ReadonlySet<string> = new Set([
  'asg',
  'az',
  'backend',
  'canary',
  'host',
  'period',
  'region',
  'shard',
  'window',
  'source',
  'project',
  'facet',
  'envoyservice',
]);

/** Counts the reserved tags in `EXTRA_TAGS`; called once at the start. */
export function countReservedTags(registry: StatsRegistry, extraTags: StatTags): void {
  const found = Object.keys(extraTags).filter((key) => reservedTags.has(key));
  if (found.length > 0) registry.counter(statsNames.reservedTag).value += found.length;
}

/**
 * Tags as a suffix of a name for plain statsd: `.__key=value` for each, sorted by key. Empty keys
 * and values are omitted; `.`, `:`, `|` and control characters become `_`. Later arguments override
 * equal keys.
 */
export function tagSuffix(...tagSets: readonly (StatTags | undefined)[]): string {
  const tags: Record<string, string> = Object.assign({}, ...tagSets);
  return Object.keys(tags)
    .sort(compareText)
    .filter((key) => key !== '' && tags[key] !== '')
    .map((key) => `.__${cleanTag(key)}=${cleanTag(tags[key] ?? '')}`)
    .join('');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this matches
const unsafeInTag = /[.:|\u0000-\u001f\u007f]/g;

/** Replaces what separates tags and lines, and dots. */
export function cleanTag(text: string): string {
  return text.replace(unsafeInTag, '_');
}
