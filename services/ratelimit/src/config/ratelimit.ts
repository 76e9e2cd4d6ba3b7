import { bool, float, int, oneOf, text } from '@tollgate/kit/settings';

const group = 'Decisions';

/** RFC 9110 §5.1: a token. */
const headerName = {
  pattern: /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/,
  form: 'the name of a header, an RFC 9110 token such as X-Limit',
};

export const decisionSettings = {
  shadowMode: bool({
    env: 'SHADOW_MODE',
    group,
    default: false,
    doc: 'Return OK as the overall code in any case; statistics and statuses still show the real result.',
  }),
  quotaMode: bool({
    env: 'QUOTA_MODE',
    group,
    default: false,
    doc: 'Treat every descriptor as a quota: a request is over its limit only when all quotas are used up. A descriptor without a rule is a quota that is left; an unlimited one is ignored.',
  }),
  useCalendarMonths: bool({
    env: 'USE_CALENDAR_MONTH_RATE_LIMIT',
    group,
    default: false,
    doc: 'Limits with the unit `month` are for calendar months in UTC instead of 30 days since the epoch, also those of requests. Without it, `time_zone` in a rule does that for one limit. Not for other algorithms than `fixed_window`.',
  }),
  nearLimitRatio: float({
    env: 'NEAR_LIMIT_RATIO',
    group,
    default: 0.8,
    min: 0,
    max: 1,
    clamp: true,
    doc: 'Fraction of a limit above which hits count as near it.',
  }),
  responseHeadersEnabled: bool({
    env: 'LIMIT_RESPONSE_HEADERS_ENABLED',
    group,
    default: false,
    doc: 'Add the three headers below to responses.',
  }),
  limitHeader: text({
    env: 'LIMIT_LIMIT_HEADER',
    group,
    default: 'RateLimit-Limit',
    matches: headerName,
    doc: 'Header with the limit.',
  }),
  remainingHeader: text({
    env: 'LIMIT_REMAINING_HEADER',
    group,
    default: 'RateLimit-Remaining',
    matches: headerName,
    doc: 'Header with the remaining requests.',
  }),
  resetHeader: text({
    env: 'LIMIT_RESET_HEADER',
    group,
    default: 'RateLimit-Reset',
    matches: headerName,
    doc: 'Header with the seconds until the limit resets.',
  }),
  standardHeadersEnabled: bool({
    env: 'LIMIT_STANDARD_HEADERS_ENABLED',
    group,
    default: false,
    doc: 'Add `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10) with the limits of a request, except those in shadow mode, and `Retry-After` when it is refused.',
  }),
  responseDynamicMetadata: bool({
    env: 'RESPONSE_DYNAMIC_METADATA',
    group,
    default: false,
    doc: 'Return dynamic metadata to Envoy: the request and the metadata of its rules.',
  }),
  onStoreFailure: oneOf(['fail', 'allow', 'deny', 'local'], {
    env: 'LIMIT_ON_STORE_FAILURE',
    group,
    default: 'fail',
    synonyms: { '': 'fail' },
    doc: 'What decides limits without `on_store_failure` while the counter store fails. `fail`: the call fails, and `failure_mode_deny` of Envoy decides. `local`: the process counts, with its share of the limit. With memcached, which fails open, `fail` and `allow` only.',
  }),
  onStoreFailureReplicas: int({
    env: 'LIMIT_ON_STORE_FAILURE_REPLICAS',
    group,
    default: 1,
    min: 1,
    max: 10_000,
    doc: 'Number of limiters that share each limit while they count by `local`. Each takes 1/n of it, rounded up.',
  }),
};

const cacheGroup = 'Counters';

export const counterSettings = {
  backendType: oneOf(['redis', 'memcache', 'memory'], {
    env: 'BACKEND_TYPE',
    group: cacheGroup,
    default: 'redis',
    synonyms: { '': 'redis' },
    doc: 'Store of the counters. `memory` keeps them in the process, for a single instance or for tests.',
  }),
  memoryMaxCounters: int({
    env: 'MEMORY_MAX_COUNTERS',
    group: cacheGroup,
    default: 1_000_000,
    min: 1,
    doc: 'Maximum number of counters in the memory backend (about 250 bytes each), and of those of rules on trial. When full, those of windows that end soonest are evicted, and the smallest of other algorithms.',
  }),
  cacheKeyPrefix: text({
    env: 'CACHE_KEY_PREFIX',
    group: cacheGroup,
    default: '',
    doc: 'Prefix of all counter keys.',
  }),
  cacheKeyEscape: bool({
    env: 'CACHE_KEY_ESCAPE',
    group: cacheGroup,
    default: false,
    doc: 'Write `_` as `~_` and `~` as `~~` in the domains, keys and values of the keys of fixed windows, so that no two descriptors share a counter. Other algorithms always do. Leave it off while envoyproxy/ratelimit uses the same store. Switching starts counters with such characters again.',
  }),
  expirationJitterMaxSeconds: int({
    env: 'EXPIRATION_JITTER_MAX_SECONDS',
    group: cacheGroup,
    default: 300,
    min: 0,
    max: 31_536_000,
    clamp: true,
    doc: 'Maximum number of seconds that is added to the TTL of a counter, at random, so that counters do not all expire at once. 0 disables the jitter.',
  }),
  localCacheSizeBytes: int({
    env: 'LocalCacheSizeInBytes',
    aliases: ['LOCAL_CACHE_SIZE_IN_BYTES'],
    group: cacheGroup,
    default: 0,
    min: 0,
    doc: 'Size of the in-process cache of counters over their limit, which saves calls of the backend. 0 disables it; smaller values than 524288 are raised to that.',
  }),
  stopIncrementWhenOverLimit: bool({
    env: 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
    group: cacheGroup,
    default: false,
    doc: 'When a limit of a request is exceeded, do not increment its other counters, even if that limit is in shadow mode or a quota. Costs an additional round trip. Concurrent requests may still be counted: `atomic: true` in a domain is exact.',
  }),
};
