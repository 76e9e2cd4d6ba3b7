import { bool, float, int, oneOf, text } from '@tollgate/kit/settings';

const group = 'Decisions';

/** How requests are decided. */
export const decisionSettings = {
  shadowMode: bool({
    env: 'SHADOW_MODE',
    group,
    default: false,
    doc: 'Answer OK overall whatever the limits say; statistics and statuses tell what would have been.',
  }),
  quotaMode: bool({
    env: 'QUOTA_MODE',
    group,
    default: false,
    doc: 'Treat every descriptor as a quota: a request is over its limit only when all of them are used up. A descriptor without a rule counts as a quota that is left; an unlimited one does not count.',
  }),
  nearLimitRatio: float({
    env: 'NEAR_LIMIT_RATIO',
    group,
    default: 0.8,
    min: 0,
    max: 1,
    clamp: true,
    doc: 'Part of a limit from which on hits count as near it.',
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
    doc: 'Header with the limit.',
  }),
  remainingHeader: text({
    env: 'LIMIT_REMAINING_HEADER',
    group,
    default: 'RateLimit-Remaining',
    doc: 'Header with what remains of it.',
  }),
  resetHeader: text({
    env: 'LIMIT_RESET_HEADER',
    group,
    default: 'RateLimit-Reset',
    doc: 'Header with the seconds until it starts anew.',
  }),
  responseDynamicMetadata: bool({
    env: 'RESPONSE_DYNAMIC_METADATA',
    group,
    default: false,
    doc: 'Answer with dynamic metadata for Envoy: the request as it was asked and the metadata of its rules.',
  }),
};

const cacheGroup = 'Counters';

/** How counters are kept, whatever the backend. */
export const counterSettings = {
  backendType: oneOf(['redis', 'memcache', 'memory'], {
    env: 'BACKEND_TYPE',
    group: cacheGroup,
    default: 'redis',
    synonyms: { '': 'redis' },
    doc: 'Where counters are kept: in Redis or in memcached. `memory` keeps them in the process: for one instance, or to try things.',
  }),
  memoryMaxCounters: int({
    env: 'MEMORY_MAX_COUNTERS',
    group: cacheGroup,
    default: 1_000_000,
    min: 1,
    doc: 'Counters that the memory backend holds at most (about 250 bytes each); then what expires soonest gives way.',
  }),
  cacheKeyPrefix: text({
    env: 'CACHE_KEY_PREFIX',
    group: cacheGroup,
    default: '',
    doc: 'Put before the name of every counter.',
  }),
  expirationJitterMaxSeconds: int({
    env: 'EXPIRATION_JITTER_MAX_SECONDS',
    group: cacheGroup,
    default: 300,
    min: 0,
    max: 31_536_000,
    clamp: true,
    doc: 'Up to so many seconds are added to the life of each counter so that they do not all expire at once; 0 adds none.',
  }),
  localCacheSizeBytes: int({
    env: 'LocalCacheSizeInBytes',
    aliases: ['LOCAL_CACHE_SIZE_IN_BYTES'],
    group: cacheGroup,
    default: 0,
    min: 0,
    doc: 'Size of the cache that remembers counters over their limit, so that the backend is not asked again; 0 for none; what is smaller than 524288 counts as that.',
  }),
  stopIncrementWhenOverLimit: bool({
    env: 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
    group: cacheGroup,
    default: false,
    doc: 'When one limit of a request is over, leave its other counters alone. Costs one more round trip.',
  }),
};
